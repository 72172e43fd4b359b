"""The lesson about latency: the same walk by every kernel, a clock that only a GPU has, and counts of each step."""

import re

import pytest
from conftest import BACKEND, ROOT, program, run
from fakes import read
from ladder.core import ladders, results
from ladder.measure import cpu_device

FOLDER = "lectures/W2L2_latency"
LESSON, PROGRAM = ROOT / FOLDER, program(FOLDER)
pytestmark = pytest.mark.builds(FOLDER)
PAGE = (LESSON / "README.md").read_text(encoding="utf-8")
LADDER = ladders.find("W2L2")
STEPS = 1026
EXPERIMENTS = ["latency", "footprint", "l2_sides"]
cpu_only = pytest.mark.skipif(BACKEND != "cpu", reason="a GPU is timed, which takes longer than a test should")


@cpu_only
def test_every_kernel_passes_and_no_latency_is_printed(tmp_path):
    result = run(PROGRAM, "--n", 1024, "--warps", 3, "--apart", 5, "--csv-dir", tmp_path)
    assert result.returncode == 0 and result.stderr == "", result.stdout + result.stderr
    assert re.findall(r"^([a-z_]+\d+) +PASS ", result.stdout, re.M) == [stage.name for stage in LADDER.stages]
    assert "need a GPU" in result.stdout and [path.name for path in tmp_path.iterdir()] == ["main.csv"]
    assert not re.search(r"cycle|nanosecond|\bns\b|\bus\b", result.stdout)
    assert not [row for row in read(tmp_path / "main.csv") if row["microseconds"]]


@cpu_only
@pytest.mark.parametrize("order", ["reversed", "5"])
def test_the_order_of_threads_does_not_matter(order):
    result = run(PROGRAM, "--n", 64, "--warps", 32, SIMT_ORDER=order)
    assert result.returncode == 0 and "FAIL" not in result.stdout, result.stdout + result.stderr


@cpu_only
@pytest.mark.parametrize(
    "given, why",
    [
        (["--n", 96], "a walk needs a power of two"),
        (["--warps", 33], "one block has at most 32 warps"),
        (["--n", 16384, "--stage", "shared2"], "shared memory holds 8192 words"),
    ],
)
def test_what_a_kernel_cannot_do_it_refuses(given, why):
    result = run(PROGRAM, *given, "--no-small")
    assert result.returncode == 2 and why in result.stderr
    assert "PASS" not in result.stdout and "FAIL" not in result.stdout


def test_every_experiment_is_listed_and_has_its_columns_on_the_page():
    listed = run(PROGRAM, "--list").stdout.split("\n\n")[1]
    assert re.findall(r"^\d +(\w+)", listed, re.M) == ["stages", *EXPERIMENTS]
    source = (LESSON / "experiments/experiments.cu").read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        (columns,) = re.findall(rf"^<!-- table:{name}:begin (.*) -->$", PAGE, re.M)
        for column in columns.split():
            assert re.search(rf'\{{"{column}",\s+(?:"|nullptr)', source), column


def of_a_step(stage, what):
    """(requests, transfers of each) of the line that makes a request at every step."""
    sums, rows = cpu_device.read(results.store() / results.CPU_DEVICE / f"W2L2/{stage}.csv")
    found = [row for row in rows if row["what"] == what and int(row["requests"]) == STEPS]
    assert len(found) == 1, (stage, what)
    (row,) = found
    return float(row["sectors"] or row["wavefronts"] or 0) / STEPS


@pytest.mark.parametrize(
    "stage, what, least, most",
    [
        ("shared2", "shared load", 1, 1),
        ("exchange5", "shared load", 1, 1),
        ("exchange5", "shared store", 1, 1),
        ("cached6", "global load", 31, 32),
        ("uncached7", "global load", 31, 32),
        ("cluster8", "shared load", 1, 1),
        ("shared_atomic9", "shared atomic", 1, 1),
        ("global_atomic10", "global atomic", 31, 32),
        ("launch12", "global store", 4, 4),
    ],
)
def test_every_step_goes_through_its_unit(stage, what, least, most):
    """A kernel that computes its steps has the right result, too, but no such requests."""
    assert least <= of_a_step(stage, what) <= most


def test_what_the_other_kernels_do_at_each_step():
    rows = {
        stage.name: cpu_device.read(results.store() / results.CPU_DEVICE / f"W2L2/{stage.name}.csv")[1]
        for stage in LADDER.stages
    }
    assert cpu_device.operations(rows["shuffle1"]) == (0, STEPS)
    assert cpu_device.operations(rows["syncthreads4"]) == cpu_device.operations(rows["exchange5"]) == (STEPS, 0)
    assert cpu_device.operations(rows["register0"]) == cpu_device.operations(rows["uncached7"]) == (0, 0)

    def waits(stage, what):
        blocks = cpu_device.product(rows[stage][0]["grid"])
        return sum(int(row["requests"]) for row in rows[stage] if row["what"] == what) / blocks

    assert waits("syncwarp3", "warp_sync") == STEPS
    assert waits("grid_barrier11", "grid_barrier") == STEPS + 1, "and the one before the clock"
    assert int(rows["launch12"][0]["launches"]) == STEPS
    assert {row["what"] for row in rows["register0"]} == {"global load", "global store"}
