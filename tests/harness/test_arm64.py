"""64-bit Arm: what Debian's cross compiler makes of the course, run under emulation, says what it says on x86-64.

arm64/aarch64-linux-gnu-g++ takes the place of g++; the tree that it builds stays below build/, where only what has
changed is compiled again. Emulation on x86-64 does not show what a host's weaker order of memory would do.
"""

import os
import re
import shutil
import sys

import pytest
from conftest import LADDER, ROOT, cores, make, program, run

STAND_IN = ROOT / "tests/harness/arm64"
HOME = ROOT / "build/arm64"
TREE = HOME / "tree"
HAS_TOOLS = shutil.which("aarch64-linux-gnu-g++") and (shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64"))
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


def is_for_arm(path):
    with open(f"{path}.arm64", "rb") as file:
        return file.read(20)[18] == 183  # e_machine of its ELF header


def test_the_devices_own_tests():
    """With pages of 4 KB, and what protects pages and handles faults with those of 16 and 64 KB that Arm's kernels have."""
    right(on_arm("make", f"-j{cores()}", "-C", "simt", "programs", "BUILD=../build/simt"))
    for name in ("scheduler_test", "memory_test"):
        program = TREE / "build/simt/tests" / name
        assert is_for_arm(program)
        for size in ("16384", "65536"):
            right(on_arm(program, QEMU_PAGESIZE=size))


def test_the_known_answers_of_the_analysis():
    pytest_here = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    said = right(on_arm(*pytest_here, "tests/analysis/test_known_answers.py", cwd=TREE / "simt"))
    assert int(re.search(r"(\d+) passed", said)[1]) > 150


@pytest.mark.builds(LADDER)
def test_a_ladder_and_a_lecture_say_what_they_say_here():
    right(on_arm("make", f"-j{cores()}", f"{LADDER}/program", f"{LECTURE}/programs", "OPTIMIZATION=-O1"))
    there = TREE / program(LADDER).relative_to(ROOT)
    assert is_for_arm(there)
    size = ["--rows", "33", "--cols", "128"]

    def verdicts(said):
        """Stage, verdict and what was counted; the last digit of an error may be another."""
        return [[words[0], words[1], *words[4:]] for words in map(str.split, said.splitlines()) if words[1:2] == ["PASS"]]

    assert verdicts(right(on_arm(there, *size))) == verdicts(right(run(program(LADDER), *size)))
    assert "PASS" in right(on_arm(TREE / program(LECTURE).relative_to(ROOT)))


def test_an_analysis_counts_what_it_counts_here(tmp_path):
    source = f"{LADDER}/05_warp_shuffle/main.cu"
    counted = []
    for started in (on_arm, run):
        right(started("simt/analyze", source, "--csv", tmp_path / "counts", "--", "--rows", "2", "--cols", "128"))
        counted.append((tmp_path / "counts").read_text())
    assert "kernel.cuh" in counted[0] and counted[0].replace(str(TREE), str(ROOT)) == counted[1]


def test_a_grade():
    exercise = "matrix/05"
    (TREE / "my").mkdir(exist_ok=True)
    for old, new, verdict in (("", "", True), ("rsqrtf(", "2.0f * rsqrtf(", False)):
        solution = (ROOT / LADDER / "05_warp_shuffle/kernel.cuh").read_text(encoding="utf-8").replace(old, new)
        (TREE / "my/05_warp_shuffle.cuh").write_text(solution, encoding="utf-8")
        said = on_arm("make", "grade", f"S={exercise}")
        assert said.returncode == 0 and ("passed" in said.stdout) == verdict, said.stdout + said.stderr
