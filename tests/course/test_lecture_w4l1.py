"""The lesson about Hopper's features: each pair does the same work, its page says what was counted, and the analysis sees
the faults of the mutants."""

import json
import re

import pytest
from conftest import BACKEND, ROOT, full_but, make, program, run
from fakes import read
from ladder.core import ladders, results

FOLDER = "lectures/W4L1_hopper"
LESSON, PROGRAM = ROOT / FOLDER, program(FOLDER)
builds = pytest.mark.builds(FOLDER)
PAGE = (LESSON / "README.md").read_text(encoding="utf-8")
LADDER = ladders.find("W4L1")
EXPERIMENTS = ["cluster", "bulk_copy", "dependent_launch", "residency"]
cpu_only = pytest.mark.skipif(BACKEND != "cpu", reason="a GPU is timed, which takes longer than a test should")


@builds
@cpu_only
def test_every_kernel_passes_and_none_is_timed(tmp_path):
    result = run(PROGRAM, "--n", 100003, "--csv-dir", tmp_path)
    assert result.returncode == 0 and result.stderr == "", result.stdout + result.stderr
    assert re.findall(r"^(\d\d_\w+) +PASS ", result.stdout, re.M) == [stage.name for stage in LADDER.stages]
    assert "need a GPU" in result.stdout and [path.name for path in tmp_path.iterdir()] == ["main.csv"]


@builds
@cpu_only
def test_make_stage_runs_one_kernel_on_the_input_that_is_given():
    result = make("stage", "S=W4L1/03", f"BACKEND={BACKEND}", "ARGS=--n 1000 --no-small")
    assert result.returncode == 0, result.stdout + result.stderr
    assert (
        re.findall(r"^(\d\d_\w+) +PASS ", result.stdout, re.M) == ["03_cluster"]
        and "\nn = 1000 uint32" in result.stdout
    )


@builds
@cpu_only
@pytest.mark.parametrize("order", full_but(["reversed", "5"], "5"))
def test_the_order_of_threads_does_not_matter(order):
    result = run(PROGRAM, "--n", 70000, SIMT_ORDER=order)
    assert result.returncode == 0 and "FAIL" not in result.stdout, result.stdout + result.stderr


@builds
def test_every_experiment_is_listed_and_has_its_place_on_the_page():
    listed = run(PROGRAM, "--list").stdout.split("\n\n")[1]
    assert re.findall(r"^\d +(\w+)", listed, re.M) == ["stages", *EXPERIMENTS]
    source = (LESSON / "experiments/experiments.cu").read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        (columns,) = re.findall(rf"^<!-- table:{name}:begin (.*) -->$", PAGE, re.M)
        for column in columns.split():
            assert f'{{"{column}", "' in source, column


def test_the_experiments_find_every_kernel_they_name():
    source, kernels = (
        (LESSON / name).read_text(encoding="utf-8") for name in ("experiments/experiments.cu", "main.cu")
    )
    defined = re.findall(r'Stage<\w+>\{"(\w+)"', kernels)
    assert defined[:10] == [stage.name for stage in LADDER.stages] and len(set(defined)) == len(defined)
    named = set(re.findall(r'named\("(\w+)"\)', source)) | set(re.findall(r'add\(\d+, "(\w+)", "\w+"\)', source))
    assert {"06_in_order", "10_window", "stream_alone", "by_threads_32"} <= named <= set(defined)
    for threads in (128, 256, 512):
        assert {f"by_threads_{threads}", f"bulk_copy_{threads}"} <= set(defined)
    assert {"cluster_2", "cluster_4"} <= set(defined)


def counted(number, what):
    """(requests, bytes asked for) of a stage's accesses of that kind."""
    rows = read(results.store() / results.CPU_DEVICE / f"W4L1/{LADDER.stage(str(number)).name}.csv")
    rows = [row for row in rows if row["file"] and row["what"].startswith(what)]
    return sum(int(row["requests"]) for row in rows), sum(int(row["bytes"]) for row in rows)


@pytest.mark.parametrize("one, other", [(1, 3), (6, 7), (8, 9), (8, 10)])
def test_a_pair_makes_the_same_requests(one, other):
    for what in ("global load", "global store"):
        assert counted(one, what) == counted(other, what)


def test_what_the_page_says_of_the_counts():
    assert 2 <= counted(2, "global load")[1] / counted(3, "global load")[1] < 2.1, "twice the bytes"
    assert counted(4, "global load")[1] == counted(5, "global load")[1]
    assert counted(4, "global load")[0] == 16 * counted(5, "global load")[0], "one request for sixteen"
    assert counted(4, "global store") == counted(5, "global store")


RACES = {
    "cluster_sums_read_early": "sum += sums[block]",
    "bytes_not_awaited": "memcpy_async_tx",
    "refilled_too_early": "memcpy_async_tx",
    "parity_never_turns": "memcpy_async_tx",
}


@builds
@pytest.mark.parametrize("name", full_but(RACES, "bytes_not_awaited"))
def test_the_analysis_sees_the_race(tmp_path, name):
    """compute-sanitizer's tools look for these on a GPU."""
    target = tmp_path / "found.json"
    run(ROOT / "simt/analyze", LESSON / "mutants/main.cu", "--json", target, "--", "--mutant", name)
    hazards = json.loads(target.read_text(encoding="utf-8"))["hazards"]
    races = [hazard for hazard in hazards if (hazard["what"], hazard["space"]) == ("race", "shared")]
    assert races and all(
        any(RACES[name] in end["source"] for end in (race["first"], race["second"])) for race in races
    ), hazards
