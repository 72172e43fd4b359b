"""The CPU device's own tests, which know nothing of the course."""

from conftest import cores, make


def test_cpu_device():
    tests = make(f"-j{cores()}", "-C", "simt", "test", timeout=1200)
    # What failed stands at the end; a report of everything before it would be cut there.
    assert tests.returncode == 0, "\n".join([*tests.stdout.splitlines()[-80:], *tests.stderr.splitlines()[-20:]])
