"""The lesson about measuring: right copies pass and are never timed on the CPU device, planted faults are found, and bad
input is refused in one sentence."""

import re
import signal
import subprocess
import time

import pytest
from conftest import BACKEND, ENVIRONMENT, full_but, make, program, run
from fakes import read
from ladder.core import ladders

LESSON = "lectures/W1L2_memory_bandwidth"
PROGRAM = program(LESSON)
pytestmark = pytest.mark.builds(LESSON)
EXPERIMENTS = ["stages", "cold_warm", "launch", "pitfalls"]
COPY_TILE = [
    f"{number:02}_{name}"
    for number, name in enumerate(
        "float float2 float4 float4_x4 persistent streaming block_128 block_512 block_1024".split(), start=2
    )
]
KERNELS = ["01_strided", *COPY_TILE, "11_read_only", "12_write_only"]
STAGES = [*KERNELS, "13_memcpy"]
SMALL = ("--n", 1000)  # the main input; the checks on odd sizes are the same
cpu_only = pytest.mark.skipif(BACKEND != "cpu", reason="a GPU is timed, which takes longer than a test should")


def refused(result):
    """The one sentence of a refusal: exit code 2, nothing on stdout, one line on stderr."""
    assert result.returncode == 2, result.stdout + result.stderr
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1, result.stdout + result.stderr
    return result.stderr


@cpu_only
def test_every_stage_passes_and_none_is_timed(tmp_path):
    result = run(PROGRAM, *SMALL, "--csv-dir", tmp_path / "new")
    assert result.returncode == 0 and result.stderr == "", result.stdout + result.stderr
    assert "checked on 72 small problems" in result.stdout and "GB/s" not in result.stdout
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["main.csv"]
    rows = read(tmp_path / "new/main.csv")
    assert [row["stage"] for row in rows] == STAGES
    for row in rows:
        assert re.search(f"^{row['stage']} +PASS ", result.stdout, re.M) and row["device"] == "CPU device (simt)"
        assert row["verdict"] == "PASS" and row["n"] == "1000"
        assert row["microseconds"] == row["gb_per_s"] == row["percent_of_copy"] == row["speedup_over_strided"] == ""


def test_the_tools_know_every_kernel():
    """The runtime's own copy is no kernel of the program, so none of it can be counted."""
    assert [stage.name for stage in ladders.find("W1L2").stages] == KERNELS


@cpu_only
@pytest.mark.parametrize("experiment", full_but([2, 3, 4], 2))
def test_an_experiment_that_needs_a_gpu_says_so(tmp_path, experiment):
    result = run(PROGRAM, *SMALL, "--experiment", experiment, "--csv-dir", tmp_path)
    assert result.returncode == 0 and "need a GPU" in result.stdout, result.stdout + result.stderr
    assert list(tmp_path.iterdir()) == []


@cpu_only
@pytest.mark.parametrize("order", full_but(["reversed", "7"], "7"))
def test_the_order_of_threads_does_not_matter(order):
    result = run(PROGRAM, *SMALL, SIMT_ORDER=order)
    assert result.returncode == 0 and "FAIL" not in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--experiment", "5"], "--experiment '5'"),
        (["--experiment", "-1"], "--experiment"),
        (["--experiment", "ladder"], "--experiment 'ladder'"),
        (["--experiment", ""], "--experiment"),
        (["--experiment"], "--experiment"),
        (["--csv-dir", ""], "--csv-dir"),
        (["--csv-dir", "/nonexistent/x/y"], "--csv-dir /nonexistent/x/y"),
        (["--csv-dir", "/dev/null"], "--csv-dir /dev/null"),
    ],
)
def test_bad_argument_is_refused_in_one_sentence(tmp_path, arguments, said):
    start = time.monotonic()
    assert said in refused(run(PROGRAM, *arguments, cwd=tmp_path))
    assert time.monotonic() - start < 5
    assert list(tmp_path.iterdir()) == []


def test_a_csv_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "main.csv").mkdir()
    assert "--csv-dir" in refused(run(PROGRAM, "--experiment", 1, "--csv-dir", tmp_path))


def test_help_and_list():
    shown = run(PROGRAM, "--help")
    assert shown.returncode == 0 and shown.stderr == ""
    for option in ("--stage", "--n", "--experiment", "--iterations", "--csv-dir", "--list", "--help"):
        assert option in shown.stdout
    listed = run(PROGRAM, "--list")
    assert listed.returncode == 0
    stages, experiments = listed.stdout.split("\n\n")
    assert re.findall(r"^\d+ +(\d\d_\w+)", stages, re.M) == STAGES
    assert re.findall(r"^\d +(\w+)", experiments, re.M) == EXPERIMENTS


@cpu_only
def test_interrupted_run_leaves_no_csv(tmp_path):
    process = subprocess.Popen(
        [PROGRAM, "--csv-dir", tmp_path], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.readline()  # the device; the checks have begun
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130 and b"interrupted" in errors
    assert list(tmp_path.iterdir()) == []


# The text in kernel.cuh, the fault that replaces it, and the stages that must be rejected, each with its message.
FAULTS = [
    [
        ("min(first + kChunk, n)", "min(first + kChunk, n + 1)", ["01_strided"], "guard element"),
        ("tile += gridDim.x", "tile += 2 * gridDim.x", ["06_persistent"], "elements wrong"),
        ("n * sizeof(float), cuda", "n, cuda", ["13_memcpy"], "elements wrong"),
        (" + held[k].w;", ";", ["11_read_only"], "the sum of"),
        ("pattern(i + 3)", "pattern(i + 2)", ["12_write_only"], "elements wrong"),
    ],
    [
        ("i < last; i += blockDim.x) to[i]", "i < last - 1; i += blockDim.x) to[i]", COPY_TILE, "(1 never written)"),
        ("sums[blockIdx.x] =", "sums[0] =", ["11_read_only"], "the sum of"),
    ],
]


@pytest.mark.parametrize("faults", FAULTS, ids=["each kernel", "the tails"])
def test_planted_faults_are_found_and_nothing_else(tree, faults):
    folder, expected = tree / LESSON, {}
    before = after = (folder / "kernel.cuh").read_text(encoding="utf-8")
    for right, wrong, stages, said in faults:
        assert after.count(right) == 1, right
        after = after.replace(right, wrong)
        expected.update(dict.fromkeys(stages, said))
    try:
        (folder / "kernel.cuh").write_text(after, encoding="utf-8")
        built = make(f"BACKEND={BACKEND}", "program", cwd=folder)
        assert built.returncode == 0, built.stdout + built.stderr
        result = run(tree / "build" / BACKEND / LESSON / "memory_bandwidth_test", *SMALL, "--experiment", 1)
    finally:
        (folder / "kernel.cuh").write_text(before, encoding="utf-8")
    assert result.returncode == 1, result.stdout + result.stderr
    found = re.findall(r"^(\w+) FAIL: (.*(?:\n .*)*)", result.stdout, re.M)
    failures = {stage: " ".join(said.split()) for stage, said in found}
    assert sorted(failures) == sorted(expected), result.stdout
    for stage, said in expected.items():
        assert said in failures[stage], failures[stage]
