"""The lesson about Hopper's features: each pair does the same work, its page says what was counted, and the analysis sees
the faults of the mutants."""

import json
import re

import pytest
from conftest import BACKEND, ROOT, make, program, run
from fakes import read
from ladder.core import ladders, results
from test_claims_of_types_and_rows import counter

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
    assert re.findall(r"^(\d\d_\w+) +PASS ", result.stdout, re.M) == ["03_cluster"] and "\n1000 uint32" in result.stdout


@builds
@cpu_only
@pytest.mark.parametrize("order", ["reversed", "5"])
def test_the_order_of_threads_does_not_matter(order):
    result = run(PROGRAM, "--n", 70000, SIMT_ORDER=order)
    assert result.returncode == 0 and "FAIL" not in result.stdout, result.stdout + result.stderr


@builds
def test_every_experiment_is_listed_and_has_its_place_on_the_page():
    listed = run(PROGRAM, "--list").stdout.split("\n\n")[1]
    assert re.findall(r"^\d +(\w+)", listed, re.M) == ["stages", *EXPERIMENTS]
    source = (LESSON / "experiments.cu").read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        (columns,) = re.findall(rf"^<!-- table:{name}:begin (.*) -->$", PAGE, re.M)
        for column in columns.split():
            assert f'{{"{column}", "' in source, column


def test_the_experiments_find_every_kernel_they_name():
    source, kernels = ((LESSON / name).read_text(encoding="utf-8") for name in ("experiments.cu", "main.cu"))
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


def test_code_on_the_page_is_code_of_the_files():
    files = [path.read_text(encoding="utf-8") for path in sorted(LESSON.glob("*.cuh"))]
    blocks = re.findall(r"^```cuda\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(blocks) == 4
    for block in blocks:
        assert any(block in file for file in files), block


def test_every_question_is_folded_and_says_whether_it_needs_a_gpu():
    questions = PAGE.split("## Three questions")[1]
    asked = re.findall(r"^\*\*\d\.\*\* .*?(?=<details>)", questions, re.M | re.S)
    assert len(asked) == 3 == questions.count("<details><summary>Answer</summary>\n\n")
    assert all(re.match(r"\*\*\d\.\*\* \[(any machine|GPU)\] ", question) for question in asked)


RACES = {
    "cluster_sums_read_early": "sum += sums[block]",
    "bytes_not_awaited": "memcpy_async_tx",
    "refilled_too_early": "memcpy_async_tx",
    "parity_never_turns": "memcpy_async_tx",
}


@builds
@pytest.mark.parametrize("name", RACES)
def test_the_analysis_sees_the_race(tmp_path, name):
    """compute-sanitizer's tools look for these on a GPU."""
    target = tmp_path / "found.json"
    run(ROOT / "simt/analyze", LESSON / "mutants/main.cu", "--json", target, "--", "--mutant", name)
    hazards = json.loads(target.read_text(encoding="utf-8"))["hazards"]
    races = [hazard for hazard in hazards if (hazard["what"], hazard["space"]) == ("race", "shared")]
    assert races and all(
        any(RACES[name] in end["source"] for end in (race["first"], race["second"])) for race in races
    ), hazards


# --- What the page says in words of the stored times and counters ------------------------------------------------

H200 = results.store() / "h200/W4L1"


def stored(name, key):
    """{a row's key: {column: microseconds}} of an experiment."""
    rows = read(H200 / f"{name}.csv")
    ends = "_microseconds"
    return {row[key]: {c[: -len(ends)]: float(v) for c, v in row.items() if c.endswith(ends) and v} for row in rows}


def main_times():
    return {row["stage"]: float(row["microseconds"]) for row in read(H200 / "main.csv")}


def on_gpu(stage, name):
    return counter(H200, stage, name)


def test_clusters_gain_with_few_groups_and_lose_with_many():
    took = stored("cluster", "groups")
    for groups in ("1", "4", "16"):
        assert min(took[groups], key=took[groups].get).startswith("cluster_")
    assert took["1"]["cluster_8"] == pytest.approx(took["1"]["one_block"] / 2, rel=0.05)
    assert took["1"]["cluster_8"] == pytest.approx(0.9 * took["1"]["two_kernels"], rel=0.05)
    for groups in ("64", "132", "256", "1024", "4096"):
        assert max(took[groups], key=took[groups].get) == "cluster_8"
        assert groups == "64" or min(took[groups], key=took[groups].get) == "one_block"
    many = took["4096"]
    assert many["one_block"] < min(many["cluster_2"], many["cluster_4"]) <= max(many["cluster_2"], many["cluster_4"])
    assert max(many["cluster_2"], many["cluster_4"]) < many["cluster_8"]
    assert main_times()["03_cluster"] > 1.1 * main_times()["02_two_kernels"] > main_times()["01_one_block"]


def test_a_cluster_s_warps_wait_less_for_data_and_more_at_barriers():
    two, cluster = "02_two_kernels", "03_cluster"
    assert on_gpu(two, "dram_read") == pytest.approx(2 * on_gpu(cluster, "dram_read"), rel=0.01)
    assert on_gpu(cluster, "dram_busy") < on_gpu(two, "dram_busy") and on_gpu(cluster, "occupancy") > on_gpu(
        two, "occupancy"
    )
    assert on_gpu(cluster, "global_wait") < on_gpu(two, "global_wait") and on_gpu(two, "barrier") == 0 < on_gpu(
        cluster, "barrier"
    )
    reasons = "global_wait barrier lg_throttle mio_throttle shared_wait latency math_throttle not_selected fetch drain selected"
    for stage, lacking in (("01_one_block", 0.5), (two, 0.5), (cluster, 9)):
        assert on_gpu(stage, "waits") - sum(on_gpu(stage, name) for name in reasons.split()) == pytest.approx(
            lacking, abs=0.5
        )
    assert [on_gpu(stage, "limit_registers") for stage in ("01_one_block", cluster)] == [1, 2]


def test_bulk_copies_keep_the_memory_busy_with_few_threads():
    assert 4.7 < main_times()["04_by_threads"] / main_times()["05_bulk_copy"] < 5.4
    assert on_gpu("04_by_threads", "l2_to_l1") == on_gpu("05_bulk_copy", "l2_to_l1")
    assert on_gpu("05_bulk_copy", "load_requests") == 0 and on_gpu("05_bulk_copy", "dram_busy") == pytest.approx(
        36, abs=0.6
    )
    assert round(on_gpu("04_by_threads", "global_wait")) == 57 and round(on_gpu("05_bulk_copy", "global_wait")) == 1
    rows = list(stored("bulk_copy", "threads").values())
    for before, after in zip(rows, rows[1:]):
        assert 0.5 < after["by_threads"] / before["by_threads"] < 0.67
    assert (
        rows[0]["bulk"] > 1.2 * rows[1]["bulk"] > 1.2 * rows[2]["bulk"] < 1.02 * 1.2 * min(row["bulk"] for row in rows)
    )


def test_a_dependent_launch_saves_about_a_microsecond_at_every_size():
    took = stored("dependent_launch", "buffer")
    assert all(0.8 <= row["saved"] <= 1.31 for row in took.values())
    assert took["4 KiB"]["saved"] == pytest.approx(0.4 * took["4 KiB"]["in_order"], rel=0.03)
    assert took["128 MiB"]["saved"] == pytest.approx(0.01 * took["128 MiB"]["in_order"], rel=0.05)
    warps = 2 * on_gpu("07_dependent", "blocks") * 8
    assert on_gpu("07_dependent", "instructions") - on_gpu("06_in_order", "instructions") == 2 * warps
    assert on_gpu("07_dependent", "duration") > on_gpu("06_in_order", "duration")
    assert main_times()["07_dependent"] < main_times()["06_in_order"]


def test_hints_and_windows_gain_with_middling_tables_and_a_window_loses_with_large_ones():
    for stage in ("08_normal", "09_held", "10_window"):
        assert on_gpu(stage, "dram_read") == pytest.approx(4 * LADDER.main["n"] * 9 / 8, rel=0.001)
    assert on_gpu("09_held", "instructions") - on_gpu("08_normal", "instructions") == 2 * 8 * on_gpu(
        "09_held", "blocks"
    )
    main = main_times()
    assert main["09_held"] / main["08_normal"] == pytest.approx(1.04, abs=0.005)
    assert main["10_window"] == pytest.approx(main["08_normal"], rel=0.005)
    took = stored("residency", "table")
    over = {size: row["normal"] / row["stream"] - 1 for size, row in took.items()}
    assert [over[size] for size in ("4 MiB", "8 MiB", "16 MiB")] == [
        pytest.approx(x, abs=0.006) for x in (0.05, 0.09, 0.44)
    ]
    for size in ("4 MiB", "8 MiB", "16 MiB"):
        assert took[size]["normal"] - took[size]["held"] > 0.5 * (took[size]["normal"] - took[size]["stream"])
    gains = {(size, name): 1 - row[name] / row["normal"] for size, row in took.items() for name in ("held", "window")}
    for size, held, window in (("16 MiB", 0.22, 0.12), ("24 MiB", 0.06, 0.12)):
        assert gains[size, "held"] == pytest.approx(held, abs=0.006) and gains[size, "window"] == pytest.approx(
            window, abs=0.006
        )
    for size in ("32 MiB", "48 MiB", "64 MiB"):
        assert 0 <= gains[size, "held"] < 0.01
    assert -0.01 < gains["32 MiB", "window"] < 0 and all(
        -0.5 < gains[size, "window"] < -0.45 for size in ("48 MiB", "64 MiB")
    )
