"""Where memory, address space or the right to write is short, programs say so and do what they can."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import BACKEND, ENVIRONMENT, ROOT, program

LADDER = "assignment1/rms_norm/matrix"
SEVERAL_GPUS = "assignment3/tensor_parallel"


def limited(kilobytes, *command):
    return subprocess.run(
        ["bash", "-c", f'ulimit -v {kilobytes}; exec "$@"', "bash", *map(str, command)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.builds(LADDER)
@pytest.mark.skipif(BACKEND != "cpu", reason="CUDA reserves more addresses than any such limit")
def test_inputs_shrink_to_the_address_space():
    arguments = [program(LADDER), "--stage", "5", "--no-small"]
    smaller = limited(800_000, *arguments)
    assert smaller.returncode == 0, smaller.stdout + smaller.stderr
    said = re.search(
        r"^8192 x 8192 needs .* GB of memory within ulimit -v, .* GB are free: the input is (.*); ", smaller.stdout
    )
    assert said and f"\n{said[1]} float32" in smaller.stdout and said[1] != "8192 x 8192"

    asked = limited(800_000, *arguments, "--rows", 8192)
    assert asked.returncode == 2 and "give smaller --rows or --cols" in asked.stderr

    none = limited(400_000, *arguments, "--rows", 1)
    assert none.returncode == 2 and "raise ulimit -v" in none.stderr

    many = limited(1_000_000, "env", "SIMT_WORKERS=64", *arguments, "--rows", 64)
    assert "raise ulimit -v, or set SIMT_WORKERS=1" in many.stderr


@pytest.mark.builds(SEVERAL_GPUS)
@pytest.mark.skipif(BACKEND != "cpu", reason="CUDA reserves more addresses than any such limit")
def test_several_devices_share_what_memory_there_is():
    """Not each a part of it: only the stacks of all blocks are too much."""
    done = limited(1_000_000, program(SEVERAL_GPUS), "--stage", "5", "--no-small")
    assert "raise ulimit -v; all blocks of several devices are there at once" in done.stderr

    large_stacks = ["bash", "-c", 'ulimit -s 900000; exec "$@"', "bash"]  # no thread can be started
    none = limited(1_000_000, *large_stacks, program(SEVERAL_GPUS), "--stage", "5", "--no-small")
    assert "raise ulimit -v or ulimit -u" in none.stderr and "terminate called" not in none.stderr


def jobs_module():
    spec = importlib.util.spec_from_file_location("jobs", ROOT / "simt/driver/jobs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "group, folder, limit, usage, of_all",
    [
        ("0::/a/b", "/sys/fs/cgroup/a", "memory.max", "memory.current", ""),
        ("4:memory:/a", "/sys/fs/cgroup/memory/a", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    ],
)
def test_as_many_compilers_as_memory_holds(monkeypatch, group, folder, limit, usage, of_all):
    jobs = jobs_module()
    files = {
        "/proc/meminfo": "MemTotal: 64000000 kB\nMemAvailable: 60000000 kB\n",
        "/proc/self/cgroup": f"1:cpu:/\n{group}\n",
        f"{folder}/{limit}": "2000000000\n",
        f"{folder}/{usage}": "1900000000\n",
        f"{folder}/memory.stat": f"anon 5\n{of_all}inactive_file 700000000\n{of_all}active_file 300000000\n",
    }
    monkeypatch.setattr(jobs, "text", lambda path: files.get(str(path), ""))
    monkeypatch.setattr(jobs.os, "sched_getaffinity", lambda process: range(8))
    assert jobs.free_memory() == 1_100_000_000  # what is cached of files is free
    assert jobs.jobs() == 2
    files[f"{folder}/{limit}"] = "1000000000\n"
    assert jobs.jobs() == 1
    files[f"{folder}/{limit}"] = "max\n"
    assert jobs.jobs() == 8


@pytest.mark.full
@pytest.mark.builds(LADDER)
@pytest.mark.skipif(BACKEND != "cpu", reason="builds the CPU device")
def test_simtcc_needs_no_write_access_to_what_is_built(tmp_path):
    source = tmp_path / "empty.cu"
    source.write_text("int main() {}\n")
    build = tmp_path / "simt"
    shutil.copytree(ROOT / "build/simt", build, ignore=lambda *_: ["lock", "analysis", "tests", "extras/tests"])
    (build / "lock").mkdir()  # which root cannot open for writing either
    command = [ROOT / "simt/simtcc", source, "-o", tmp_path / "empty"]
    environment = {**ENVIRONMENT, "SIMT_BUILD_DIR": str(build)}

    def simtcc():
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    done = simtcc()
    assert done.returncode == 0, done.stderr
    Path(build / "libsimt.a").unlink()
    assert "set SIMT_BUILD_DIR" in simtcc().stderr


@pytest.mark.parametrize(
    "tool, does, said",
    [
        ("python3", '[ "$1" = --version ] && echo Python 3.6.9 && exit; exit 1', "python3 is 3.6.9, and 3.9 or newer"),
        ("df", 'echo; echo "disk 9 1 8 10% $2"', "8 MB are free in /tmp, and a compiler needs 50 MB; TMPDIR="),
    ],
)
def test_set_up_says_what_there_is_too_little_of(tmp_path, tool, does, said):
    (tmp_path / tool).write_text(f"#!/bin/sh\n{does}\n")
    (tmp_path / tool).chmod(0o755)
    environment = {**ENVIRONMENT, "PATH": f"{tmp_path}:{ENVIRONMENT['PATH']}", "TMPDIR": "/tmp"}
    done = subprocess.run(
        [ROOT / "scripts/setup.sh", "start"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and said in done.stderr, done.stderr
