"""The build rules: right after any change of sources, flags and backend, quick, and clear about what they cannot do.

All work on a copy of the tree, in a folder with blanks in its name.
"""

import os
import resource

import pytest
from conftest import BACKEND, FULL, LADDER, NVCC, cores, full_but, make, run
from ladder.core import ladders

# What make builds; in a quick run it is asked for the first ladder alone.
ALL = [one.path for one in ladders.all_ladders() if one.path.parts[0].startswith("assignment")]
pytestmark = pytest.mark.builds(*(ALL if FULL else [LADDER]))
ASKED = [] if FULL else [f"{LADDER}/linked"]

STAGE = "05_warp_shuffle"
FAST = "-Ofc max" if NVCC and "--Ofast-compile" in run(NVCC, "--help").stdout else ""


@pytest.fixture(scope="module")
def built(tree):
    """The copy after `make`, so that whatever a test builds in it is new."""
    build(tree)
    return tree


def build(tree, *arguments):
    result = make(f"BACKEND={BACKEND}", *(arguments or (ASKED if (tree / "mk").is_dir() else [])), cwd=tree)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def processor_seconds():
    """What all finished child processes took: on an idle machine, no less than the time that passes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_programs_start_from_root_and_from_their_folder(built):
    for ladder in ("matrix", "vector") if FULL else ["matrix"]:
        for folder in (built, built / f"assignment1/rms_norm/{ladder}"):
            listed = run(f"./rms_norm_{ladder}_test", "--list", cwd=folder)
            assert listed.returncode == 0 and STAGE in listed.stdout, listed.stderr


def test_make_of_what_is_built_compiles_nothing(built):
    output = build(built)
    assert "compile" not in output and "link" not in output
    assert "is ready" in output


def test_backend_is_said_in_one_line(built):
    lines = build(built).splitlines()
    said = [line for line in lines if line.startswith("backend: ")]
    assert len(said) == 1 and said[0].startswith(f"backend: {BACKEND} ") and said[0].endswith("(as asked)")


@pytest.mark.parametrize("suffix", full_but(["kernel.cuh", "main.cu"], "kernel.cuh"))
def test_touched_kernel_is_rebuilt_soon(built, suffix):
    (built / LADDER / STAGE / suffix).touch()
    start = processor_seconds()
    output = build(built) + build(built / LADDER / STAGE)
    assert processor_seconds() - start < 15
    assert f"{LADDER}/{STAGE}/main.cu" in output
    assert (f"{LADDER}/main.cu" in output) == (suffix == "kernel.cuh")
    assert "01_basic" not in output


def test_touched_header_rebuilds_its_users_only(built):
    (built / "common/operators/copy.h").touch()
    output = build(built)
    assert "common/operators/copy.cpp" in output and "common/operators/sum.cpp" not in output


def test_change_of_a_kernel_reaches_the_program(built):
    kernel = built / LADDER / STAGE / "kernel.cuh"
    before = kernel.read_text(encoding="utf-8")
    try:
        kernel.write_text(before.replace("rsqrtf(", "2.0f * rsqrtf("), encoding="utf-8")
        build(built)
        wrong = run("./rms_norm_matrix_test", "--stage", STAGE, "--rows", 3, cwd=built)
        assert wrong.returncode == 1 and "FAIL" in wrong.stdout, wrong.stdout + wrong.stderr
    finally:
        kernel.write_text(before, encoding="utf-8")
    build(built)
    right = run("./rms_norm_matrix_test", "--stage", STAGE, "--rows", 3, cwd=built)
    assert right.returncode == 0 and "PASS" in right.stdout, right.stdout + right.stderr


def test_broken_kernel_fails_and_leaves_no_program_that_claims_to_be_new(built):
    kernel = built / LADDER / STAGE / "kernel.cuh"
    before = kernel.read_text(encoding="utf-8")
    try:
        kernel.write_text(before + "\nint broken = ;\n", encoding="utf-8")
        for _ in range(2):  # the second make must fail as the first did
            broken = make(f"BACKEND={BACKEND}", *ASKED, cwd=built)
            assert broken.returncode != 0 and "is ready" not in broken.stdout
            assert "kernel.cuh:" in broken.stderr and "error" in broken.stderr
    finally:
        kernel.write_text(before, encoding="utf-8")
    build(built)


def test_deleted_header_is_no_dead_end(built):
    header = built / LADDER / STAGE / "extra.cuh"
    kernel = built / LADDER / STAGE / "kernel.cuh"
    before = kernel.read_text(encoding="utf-8")
    header.write_text("// nothing\n")
    kernel.write_text(before + '#include "extra.cuh"\n', encoding="utf-8")
    build(built / LADDER / STAGE)
    header.unlink()
    kernel.write_text(before, encoding="utf-8")
    build(built / LADDER / STAGE)


def test_new_flags_rebuild(built):
    build(built)
    flags_file = built / "build" / BACKEND / "flags.txt"
    before, times = flags_file.read_text(), flags_file.stat()
    flags = "CUFLAGS=-O1 -std=c++17 -I."
    for _ in range(2):
        build(built, "-f", "mk/libs.mk", flags, f"build/{BACKEND}/flags.txt")
        assert " -O1 " in flags_file.read_text()
        assert flags_file.stat().st_mtime_ns > times.st_mtime_ns
    assert f"compile  {LADDER}/main.cu" in build(built, "-C", LADDER, "-n")
    flags_file.write_text(before)
    os.utime(flags_file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "compile  " not in build(built, "-C", LADDER)


@pytest.mark.parametrize("asked", full_but(["nonsense", "CPU", "cpu cuda"], "cpu cuda"))
def test_unknown_backend_is_refused(built, asked):
    refused = make(f"BACKEND={asked}", cwd=built)
    assert refused.returncode == 2
    assert f"BACKEND={asked} is not a backend" in refused.stderr
    assert "Traceback" not in refused.stderr and len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("form", full_but([STAGE, "05", "5", f"{LADDER}/{STAGE}", f"{LADDER}/{STAGE}/"], "05"))
def test_stage_by_number_name_or_folder(built, form):
    output = build(built, "stage", f"S={form}", "ARGS=--rows 3 --cols 33")
    assert f"{STAGE}  " in output and "PASS" in output and "01_basic" not in output


@pytest.mark.parametrize(
    "form", full_but(["nonsense", "99", "", "-1", "'; echo injected; '", "$(HOME)"], "'; echo injected; '")
)
def test_unknown_stage_lists_the_choices(built, form):
    refused = make("stage", f"S={form}", cwd=built)
    assert refused.returncode == 2
    assert f"matrix/{STAGE}" in refused.stderr and "injected" not in refused.stdout


def test_make_from_another_folder(built, tmp_path):
    output = make("-C", built, f"BACKEND={BACKEND}", "stage", f"S={STAGE}", "ARGS=--rows 1 --cols 7", cwd=tmp_path)
    assert output.returncode == 0 and "PASS" in output.stdout, output.stderr
    assert list(tmp_path.iterdir()) == []


def test_missing_tool_is_named_with_the_command_that_installs_it(built):
    refused = run("scripts/check_tools.sh", "cpu", cwd=built, CXX="no-such-compiler")
    assert refused.returncode == 1
    assert "apt-get install g++" in refused.stderr and len(refused.stderr.splitlines()) == 1


@pytest.mark.skipif(not NVCC and not FULL, reason="no nvcc on this machine")
class TestWithNvcc:
    # The oldest architecture that the pages name, and the one with Hopper's own instructions; to compile is what matters,
    # and not how fast the code is.
    CHOICE = {"cuda": ["ARCHS=80 90a", f"OPTIMIZATION=-O0 {FAST}"], "cpu": []}

    @pytest.mark.full
    def test_backends_do_not_mix(self, built):
        """cpu, cuda, cpu again: each has its own objects, and the program is always the one that was asked for."""
        said = {}
        for backend in ("cuda", "cpu", "cuda", "cpu"):
            result = make(
                f"-j{cores()}", f"BACKEND={backend}", *self.CHOICE[backend], "-C", f"{LADDER}/{STAGE}", cwd=built
            )
            assert result.returncode == 0, result.stdout + result.stderr
            assert ("compile" in result.stdout) == (backend not in (BACKEND, *said))
            said[backend] = os.path.realpath(built / LADDER / STAGE / "rms_norm_test")
            assert f"/build/{backend}/" in said[backend]

    def test_unknown_architecture_is_refused(self, built):
        refused = make("BACKEND=cuda", "ARCHS=80 77", "-C", LADDER, cwd=built)
        assert refused.returncode == 2
        assert "has no sm_77; it has" in refused.stderr and "compile" not in refused.stdout

    @pytest.mark.full
    def test_every_file_compiles(self, built):
        """The GPU's code of all, and of one ladder the host's, which g++ compiles for the CPU device, too; a test above has
        compiled the library."""
        for asked in (
            ["gpu-code", "ARCHS=80 90a"],
            ["objects", *self.CHOICE["cuda"], "-C", "assignment1/rms_norm/serving"],
        ):
            result = make(f"-j{cores()}", "BACKEND=cuda", *asked, cwd=built, timeout=1800)
            assert result.returncode == 0, result.stdout + result.stderr

    @pytest.mark.full
    @pytest.mark.parametrize("ladder", ["assignment2/q4_gemm", "lectures/W4L1_hopper"])
    def test_what_asks_for_hopper_compiles_for_a_newer_gpu_without_its_instructions(self, built, ladder):
        result = make(f"-j{cores()}", "gpu-code", "BACKEND=cuda", "ARCHS=120", "-C", ladder, cwd=built)
        assert result.returncode == 0, result.stdout + result.stderr
