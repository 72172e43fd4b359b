"""The lesson about measuring: right copies pass and are never timed on the CPU device, planted faults are found, bad
input is refused in one sentence, and the write-up has a place for each table."""

import csv
import re
import signal
import subprocess
import time

import pytest

from conftest import BACKEND, BUILD, ENVIRONMENT, ROOT, make, run

LESSON = "lectures/W1L2_memory_bandwidth"
PROGRAM = BUILD / LESSON / "memory_bandwidth_test"
TABLES = ["copy_ladder", "cold_warm", "launch", "pitfalls"]
COPY_TILE = [
    f"{number:02}_{name}"
    for number, name in enumerate(
        "float float2 float4 float4_x4 persistent streaming block_128 block_512 block_1024".split(), start=2
    )
]
VARIANTS = ["01_strided", *COPY_TILE, "11_read_only", "12_write_only", "13_memcpy"]
cpu_only = pytest.mark.skipif(BACKEND != "cpu", reason="a GPU is timed, which takes longer than a test should")


def refused(result):
    """The one sentence of a refusal: exit code 2, nothing on stdout, one line on stderr."""
    assert result.returncode == 2, result.stdout + result.stderr
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1, result.stdout + result.stderr
    return result.stderr


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cpu_only
def test_every_variant_passes_and_none_is_timed(tmp_path):
    result = run(PROGRAM, "--csv-dir", tmp_path / "new")
    assert result.returncode == 0 and result.stderr == "", result.stdout + result.stderr
    assert f"{len(VARIANTS)} variants PASS" in result.stdout and "GB/s" not in result.stdout
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["copy_ladder.csv"]
    rows = read(tmp_path / "new/copy_ladder.csv")
    assert [row["variant"] for row in rows] == VARIANTS
    for row in rows:
        assert row["variant"] in result.stdout and row["gpu"] == "CPU device (simt)"
        assert row["microseconds"] == row["gb_per_s"] == row["percent_of_datasheet"] == row["is_ceiling"] == ""
        assert row["cuda_runtime"] and row["driver"] and re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])


@cpu_only
def test_modelled_sectors_are_those_counted_by_hand(tmp_path):
    """A warp's 32 lanes: 256 bytes apart each has a sector of its own; side by side 32 bytes fill one."""
    assert run(PROGRAM, "--experiment", 1, "--csv-dir", tmp_path).returncode == 0
    rows = {row["variant"]: (row["sectors_per_request"], row["used_bytes_per_sector"]) for row in read(tmp_path / "copy_ladder.csv")}
    assert rows["01_strided"] == ("32", "4")
    assert rows["02_float"] == ("4", "32")
    assert rows["03_float2"] == ("8", "32")
    assert rows["04_float4"] == ("16", "32")
    assert rows["13_memcpy"] == ("", "")


@cpu_only
@pytest.mark.parametrize("experiment", [2, 3, 4])
def test_an_experiment_that_needs_a_gpu_says_so(tmp_path, experiment):
    result = run(PROGRAM, "--experiment", experiment, "--csv-dir", tmp_path)
    assert result.returncode == 0 and "need a GPU" in result.stdout, result.stdout + result.stderr
    assert list(tmp_path.iterdir()) == []


@cpu_only
@pytest.mark.parametrize("order", ["reversed", "7"])
def test_the_order_of_threads_does_not_matter(order):
    result = run(PROGRAM, SIMT_ORDER=order)
    assert result.returncode == 0 and "variants PASS" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--experiment", "5"], "--experiment '5'"),
        (["--experiment", "-1"], "--experiment"),
        (["--experiment", "ladder"], "--experiment 'ladder'"),
        (["--experiment", ""], "--experiment"),
        (["--experiment"], "--experiment"),
        (["--iterations", "0"], "--iterations '0'"),
        (["--iterations", "1e3"], "--iterations '1e3'"),
        (["--iterations", "99999999999999999999"], "--iterations"),
        (["--csv-dir", ""], "--csv-dir"),
        (["--csv-dir", "/nonexistent/x/y"], "--csv-dir /nonexistent/x/y"),
        (["--csv-dir", "/dev/null"], "--csv-dir /dev/null"),
        (["--bogus"], "--bogus"),
        (["surplus"], "surplus"),
    ],
)
def test_bad_argument_is_refused_in_one_sentence(tmp_path, arguments, said):
    start = time.monotonic()
    assert said in refused(run(PROGRAM, *arguments, cwd=tmp_path))
    assert time.monotonic() - start < 5
    assert list(tmp_path.iterdir()) == []


def test_a_csv_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "copy_ladder.csv").mkdir()
    assert "--csv-dir" in refused(run(PROGRAM, "--experiment", 1, "--csv-dir", tmp_path))


def test_help_and_list():
    shown = run(PROGRAM, "--help")
    assert shown.returncode == 0 and shown.stderr == ""
    for option in ("--experiment", "--iterations", "--csv-dir", "--list", "--help"):
        assert option in shown.stdout
    listed = run(PROGRAM, "--list")
    assert listed.returncode == 0
    assert re.findall(r"^(\d\d_\w+)", listed.stdout, re.M) == VARIANTS
    assert re.findall(r"^\d (\w+)", listed.stdout, re.M) == TABLES


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


# file, what stands there, what is planted, and the variants that must be rejected, each with what must be said of it.
FAULTS = [
    [
        ("kernel.cuh", "min(first + kChunk, count)", "min(first + kChunk, count + 1)", ["01_strided"], "guard words"),
        ("kernel.cuh", "tile += gridDim.x", "tile += 2 * gridDim.x", ["06_persistent"], "words wrong"),
        ("kernel.cuh", "count * sizeof(float), cuda", "count, cuda", ["13_memcpy"], "words wrong"),
        ("one_way.cuh", " + held[k].w;", ";", ["11_read_only"], "the sum of"),
        ("one_way.cuh", "pattern(first + 3)", "pattern(first + 2)", ["12_write_only"], "words wrong"),
    ],
    [
        ("kernel.cuh", "i < last; i += blockDim.x", "i < last - 1; i += blockDim.x", COPY_TILE, "words wrong"),
        ("one_way.cuh", "sums[blockIdx.x] =", "sums[0] =", ["11_read_only"], "the sum of"),
    ],
]


@pytest.mark.parametrize("faults", FAULTS, ids=["each kernel", "the tails"])
def test_planted_faults_are_found_and_nothing_else(tree, faults):
    folder = tree / LESSON
    before = {name: (folder / name).read_text(encoding="utf-8") for name in ("kernel.cuh", "one_way.cuh")}
    after, expected = dict(before), {}
    for name, right, wrong, variants, said in faults:
        assert after[name].count(right) == 1, right
        after[name] = after[name].replace(right, wrong)
        expected.update(dict.fromkeys(variants, said))
    try:
        for name, text in after.items():
            (folder / name).write_text(text, encoding="utf-8")
        built = make(f"BACKEND={BACKEND}", "program", cwd=folder)
        assert built.returncode == 0, built.stdout + built.stderr
        result = run(tree / "build" / BACKEND / LESSON / "memory_bandwidth_test", "--experiment", 1)
    finally:
        for name, text in before.items():
            (folder / name).write_text(text, encoding="utf-8")
    assert result.returncode == 1 and "not timed" in result.stdout, result.stdout + result.stderr
    failures = dict(re.findall(r"^(\w+) FAIL: (.*)$", result.stdout, re.M))
    assert sorted(failures) == sorted(expected), result.stdout
    for variant, said in expected.items():
        assert said in failures[variant], failures[variant]


def test_files_have_the_shape_of_a_stage():
    def lines(name):
        return (ROOT / LESSON / name).read_text(encoding="utf-8").splitlines()

    assert 25 <= len(lines("kernel.cuh")) <= 160
    assert len(lines("main.cu")) <= 20
    makefile = lines("Makefile")
    assert len(makefile) == 3 and makefile[0] == "NAME := memory_bandwidth_test"
    assert makefile[2] == "include ../../mk/stage.mk"


@pytest.mark.parametrize("table", TABLES)
def test_write_up_has_a_place_for_each_table(table):
    readme = (ROOT / LESSON / "README.md").read_text(encoding="utf-8")
    assert re.findall(f"^<!-- table:{table}:(begin|end)\\b.*-->$", readme, re.M) == ["begin", "end"]
