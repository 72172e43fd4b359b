"""64-bit Arm: what Debian's cross compiler makes of the course, run under emulation, says what it says on x86-64.

arm64/aarch64-linux-gnu-g++ takes the place of g++; the tree that it builds stays below build/, where only what has
changed is compiled again. Emulation on x86-64 does not show what a host's weaker order of memory would do.
"""

import os
import re
import shutil
import sys

import pytest
from conftest import LADDER, ROOT, cores, program, run

STAND_IN = ROOT / "tests/harness/arm64"
HOME = ROOT / "build/arm64"
TREE = HOME / "tree"
HAS_TOOLS = shutil.which("aarch64-linux-gnu-g++") and (
    shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
)
LECTURE = "lectures/W1L1_first_kernel"

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not HAS_TOOLS, reason="apt-get install g++-aarch64-linux-gnu qemu-user-static"),
]


def on_arm(*command, cwd=TREE, **environment):
    path = os.pathsep.join([str(STAND_IN), os.environ["PATH"]])
    return run(
        *command,
        cwd=cwd,
        timeout=1500,
        PATH=path,
        CXX="aarch64-linux-gnu-g++",
        BACKEND="cpu",
        FULL="0",
        ARM64_LIBRARIES=str(HOME / "lib"),
        SIMT_BUILD_DIR=str(TREE / "build/simt"),
        PYTHONPATH=str(TREE / "tools"),
        **environment,
    )


@pytest.fixture(scope="module", autouse=True)
def tree():
    """A copy of the tree whose builds are those for Arm."""
    fetched = run(STAND_IN / "libraries.sh", HOME / "lib")
    if fetched.returncode:
        pytest.skip(f"no Boost.Context for Arm: {fetched.stderr.strip().splitlines()[-1]}")
    names = run("git", "ls-files", "--cached", "--others", "--exclude-standard").stdout.splitlines()
    for source, target in ((ROOT / name, TREE / name) for name in names if (ROOT / name).is_file()):
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)  # as new as it is there


def right(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def is_for_arm(script):
    """What the script that stands in for a program has emulated; the program's own name may have been another."""
    with open(re.search(r"'(.+)'", script.read_text())[1], "rb") as file:
        return file.read(20)[18] == 183  # e_machine of its ELF header


def test_the_devices_own_tests():
    """With pages of 4 KB, and what protects pages and handles faults with those of 16 and 64 KB that Arm's kernels have."""
    tests = [f"../build/simt/tests/{name}_test.passed" for name in ("scheduler", "barrier", "memory", "devices")]
    right(on_arm("make", f"-j{cores()}", "-C", "simt", "BUILD=../build/simt", *tests))
    scheduler = TREE / "build/simt/tests/scheduler_test"
    assert is_for_arm(scheduler)
    for size in ("16384", "65536"):
        right(on_arm(scheduler, QEMU_PAGESIZE=size))


def test_the_known_answers_of_the_analysis():
    pytest_here = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    said = right(on_arm(*pytest_here, "tests/analysis/test_known_answers.py", cwd=TREE / "simt"))
    assert int(re.search(r"(\d+) passed", said)[1]) > 150


def test_a_ladder_and_a_lecture():
    right(on_arm("make", f"-j{cores()}", f"{LADDER}/program", f"{LECTURE}/programs"))
    for folder, size in ((LADDER, ["--rows", "33", "--cols", "128"]), (LECTURE, ["--n", "3000"])):
        there = TREE / program(folder).relative_to(ROOT)
        assert is_for_arm(there)
        stages = [line.split()[1] for line in right(run(there, "--list")).splitlines() if re.match(r"\d", line)]
        said = right(on_arm(there, *size))
        assert stages and all(re.search(f"^{stage} +PASS ", said, re.MULTILINE) for stage in stages), said


def test_an_analysis_counts_what_is_stored(tmp_path):
    right(on_arm("simt/analyze", f"{LECTURE}/vector_add1.cu", "--root", TREE, "--csv", tmp_path / "counts"))
    stored = (ROOT / "profiling_results/cpu_device/W1L1/vector_add1.csv").read_text(encoding="utf-8")
    counted = (tmp_path / "counts").read_text(encoding="utf-8")
    assert counted.replace("ladder::first_kernel::vector_add1::", "") == stored


def test_a_grade():
    (TREE / "my").mkdir(exist_ok=True)
    shutil.copy(ROOT / LADDER / "05_warp_shuffle/kernel.cuh", TREE / "my/05_warp_shuffle.cuh")
    # The stand-in for g++, and what it links, lie outside of the copied tree.
    assert "passed" in right(on_arm("make", "grade", "S=matrix/05", SANDBOX="off"))
