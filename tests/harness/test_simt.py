"""The CPU device's own tests, which know nothing of the course."""

from conftest import cores, make


def test_cpu_device():
    tests = make(f"-j{cores()}", "-C", "simt", "test", timeout=1200)
    assert tests.returncode == 0, tests.stdout + tests.stderr
