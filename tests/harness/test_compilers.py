"""Every g++ from 12 on that is installed beside the usual one builds the course without a warning, and it is right."""

import re
import shutil
import sys

import pytest
from conftest import LADDER, ROOT, cores, make, run


def version(compiler):
    return run(compiler, "-dumpfullversion").stdout.strip() if shutil.which(compiler) else None


# make's own choice, which all other tests are built with, is the first of these.
NAMES = ["g++", "g++-15", "g++-14", "g++-13", "g++-12"]
INSTALLED = {
    version(name): name for name in reversed(NAMES) if version(name) and int(version(name).split(".")[0]) >= 12
}
OTHERS = [name for name in INSTALLED.values() if name != next(usual for usual in NAMES if usual in INSTALLED.values())]

if OTHERS:  # a test without parameters would count as skipped

    @pytest.fixture(scope="module")
    def clone(tmp_path_factory):
        """The tree without built files."""
        copy = tmp_path_factory.mktemp("compilers") / "copy"
        for name in run("git", "ls-files", "--cached", "--others", "--exclude-standard").stdout.splitlines():
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy / name)
        return copy

    @pytest.mark.full
    @pytest.mark.parametrize("compiler", OTHERS)
    def test_builds_without_a_warning_and_is_right(clone, compiler):
        choice = [f"-j{cores()}", "BACKEND=cpu", f"CXX={compiler}"]
        programs = [f"{folder}/program" for folder in (LADDER, "tests/harness/cpp", "tests/headers/rms_norm")]
        made = make(*choice, *programs, cwd=clone, timeout=1800)
        said = made.stdout + made.stderr
        assert made.returncode == 0 and not re.search("warning:|error:", said), said
        build = clone / "build/cpu"
        right = run(build / LADDER / "rms_norm_matrix_test", "--rows", 3, "--cols", 1000)
        assert right.returncode == 0 and "PASS" in right.stdout, right.stdout + right.stderr
        for program in (
            [build / "tests/harness/cpp/common_test"],
            [build / "tests/headers/rms_norm/header_test", "--quick"],
        ):
            right = run(*program, timeout=1200)
            assert right.returncode == 0, right.stdout + right.stderr
        device = make(*choice[::2], "-C", "simt", "programs", "BUILD=../build/simt", cwd=clone, timeout=1800)
        assert device.returncode == 0, device.stdout + device.stderr
        # What the analysis counts depends on the loads that g++'s optimizer keeps.
        counts = run(
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/analysis/test_known_answers.py"),
            cwd=clone / "simt",
            CXX=compiler,
            SIMT_BUILD_DIR=str(clone / "build/simt"),
        )
        assert counts.returncode == 0, counts.stdout + counts.stderr
