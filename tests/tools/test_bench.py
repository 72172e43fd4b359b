"""make bench: what it writes, when it refuses, and that a failure leaves no files. All on invented numbers."""

import json
import re

import pytest
from conftest import LADDER, ROOT
from fake_ladder import STAGES, header
from fakes import CONTROLS, LADDERS, LECTURE, NAMES, VECTOR, WITH_CONTROLS, Machine, executable, read, refused

MATRIX = ["by_columns", "few_rows", "long_rows", "main", "repeat"]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_every_ladder_is_stored_under_its_name(machine):
    result = machine.run("bench")
    assert result.returncode == 0, result.stderr
    assert machine.files("profiling_results/fake-9000") == [
        *("W2L1/main.csv", "W2L1/repeat.csv", "environment.txt"),
        *(f"matrix/{name}.csv" for name in MATRIX),
        *(f"vector/{name}.csv" for name in ("lengths", "main", "repeat")),
    ]
    stored = machine.root / "profiling_results/fake-9000"
    assert [row["stage"] for row in read(stored / "matrix/main.csv")] == STAGES
    assert [row["stage"] for row in read(stored / "vector/main.csv")] == STAGES[:2]
    assert [row["n"] for row in read(stored / "vector/lengths.csv")] == ["1024", "1024", "2048", "2048"]
    assert [row["stage"] for row in read(stored / "W2L1/main.csv")] == ["reduction0", "reduction5"]

    sweep = read(stored / "matrix/by_columns.csv")
    assert [(row["rows"], row["cols"]) for row in sweep[:: len(STAGES)]] == [("8192", "8192"), ("1024", "65536")]
    assert [row["stage"] for row in read(stored / "matrix/long_rows.csv")] == STAGES[1:]
    repeat = {row["kernel"]: row for row in read(stored / "matrix/repeat.csv")}
    assert list(repeat) == ["copy kernel", *STAGES]
    assert repeat["02_reduction5"]["difference_percent"] == "+0.00"
    assert (repeat["02_reduction5"]["limit_percent"], repeat["04_short"]["limit_percent"]) == ("2.0", "")

    said = (stored / "environment.txt").read_text()
    assert "\ndatasheet bandwidth: 5000 GB/s\n" in said
    for line in ("GPU: NVIDIA Fake 9000", "CUDA runtime: 13.0", "SM clock right after: 1234 MHz", "driver: 999.99"):
        assert line in said.splitlines()
    assert str(machine.root) not in said
    (build,) = machine.makes.read_text().splitlines()
    assert build.endswith(f"BACKEND=cuda {LADDER}/program {VECTOR}/program {LECTURE}/program")


def test_a_ladder_is_checked_whole_twice_and_its_sweeps_on_their_own_inputs(machine):
    assert machine.run("bench", "matrix").returncode == 0
    calls = machine.calls.read_text().splitlines()
    assert ["--no-small" in call for call in calls] == [False] + 5 * [True] + [False]
    assert ["--stage 02_reduction5,03_tiled,04_short" in call for call in calls] == 5 * [False] + [True, False]
    assert "--rows 1 --cols 65536" in calls[5]


def test_one_ladder_alone_keeps_the_others_and_says_for_itself_where_it_was_measured(machine):
    assert machine.run("bench").returncode == 0
    stored = machine.root / "profiling_results/fake-9000"
    before = {path: path.read_bytes() for path in stored.rglob("*") if path.is_file()}
    assert machine.run("bench", "vector", FAKE_SLOW="02_reduction5=1.01").returncode == 0
    for path, content in before.items():
        assert path.parent.name == "vector" or path.read_bytes() == content, path
    assert (stored / "vector/environment.txt").is_file()
    assert machine.run("bench").returncode == 0 and not (stored / "vector/environment.txt").exists()


def test_a_gpu_that_does_not_say_its_clocks_is_not_measured(machine):
    result = machine.run("bench", "vector", FAKE_CLOCKS="none")
    assert result.returncode == 1 and machine.files() == [] and not machine.calls.exists()
    assert "does not say this machine's SM clock, memory clock," in result.stderr


@pytest.mark.parametrize("visible, ranks", [("0,1", 2), ("2,3,4", 2), ("0,1,2,3", 4), ("", 2)])
def test_a_ladder_of_several_gpus_takes_those_that_programs_see(machine, visible, ranks):
    described = {**LADDERS[VECTOR], "main": {"n": 64, "ranks": 2}}
    described["sweeps"] = {"lengths": {"title": "Others", "inputs": [{"n": 128, "ranks": 2}]}}
    machine.add_ladder("assignment3/parallel", described, STAGES[:2])
    result = machine.run("bench", "parallel", CUDA_VISIBLE_DEVICES=visible)
    assert result.returncode == 0, result.stderr
    stored = machine.root / f"profiling_results/fake-9000x{ranks}/parallel"
    for file, n in ("main", "64"), ("lengths", "128"):
        assert {(row["n"], row["ranks"]) for row in read(stored / f"{file}.csv")} == {(n, str(ranks))}
    assert (stored / "repeat.csv").is_file()
    assert machine.run("bench", "parallel/lengths", CUDA_VISIBLE_DEVICES="0,1,2,3").returncode == 0
    assert (machine.root / "profiling_results/fake-9000x4/parallel/lengths.csv").is_file()


def test_a_lecture_with_experiments_writes_its_own_tables(machine):
    described = {**LADDERS[LECTURE], "title": "Memory", "program": "memory_test", "stages": NAMES[LECTURE]}
    machine.add_ladder("lectures/W1L2_memory", described, NAMES[LECTURE])
    result = machine.run("bench", "W1L2")
    assert result.returncode == 0, result.stderr
    names = ["copies.csv", "environment.txt", "main.csv", "repeat.csv"]
    assert machine.files() == [f"fake-9000/W1L2/{name}" for name in names]
    first, again = machine.calls.read_text().splitlines()
    assert "--csv-dir" in first and again.endswith("W1L2_again.csv --experiment 1")


def test_what_programs_print_is_stored_whatever_their_exit_codes(machine, tmp_path):
    described = {
        **LADDERS[LECTURE],
        "outputs": {"wrong": "./errors wrong", "sanitized": "compute-sanitizer --x ./errors y"},
    }
    machine.add_ladder(LECTURE, described, NAMES[LECTURE])
    said = '#!/bin/bash\necho "$*"; echo "an error at $0:3  " >&2; exit 3\n'
    executable(machine.root / "build/cuda" / LECTURE / "errors", said)
    path = machine.without("compute-sanitizer")
    result = machine.run("bench", "W2L1", PATH=path)
    assert result.returncode == 0, result.stderr
    stored = machine.root / "profiling_results/fake-9000/W2L1/outputs"
    assert (stored / "wrong.txt").read_text() == f"wrong\nan error at build/cuda/{LECTURE}/errors:3\n"
    assert "sanitized was left out" in result.stdout and not (stored / "sanitized.txt").exists()
    executable(machine.bin / "compute-sanitizer", '#!/bin/bash\necho "$1 looks at ${2##*/} $3"\n')
    assert machine.run("bench", "W2L1").returncode == 0
    assert (stored / "sanitized.txt").read_text() == "--x looks at errors y\n"
    machine.add_ladder(LECTURE, {**described, "outputs": {"none": "./nothing"}}, NAMES[LECTURE])
    refused(machine.run("bench", "W2L1"), "./nothing did not run")


def test_a_sweep_may_be_that_of_a_program_of_controls(machine):
    """It is built too, and its kernels are checked on small problems, once."""
    machine.add_ladder(LADDER, WITH_CONTROLS, STAGES)
    result = machine.run("bench", "matrix")
    assert result.returncode == 0, result.stderr
    assert "fake-9000/matrix/controls.csv" in machine.files()
    rows = read(machine.root / "profiling_results/fake-9000/matrix/controls.csv")
    assert [row["stage"] for row in rows] == 2 * CONTROLS
    assert [row["rows"] for row in rows] == 3 * ["8192"] + 3 * ["1024"]
    calls = machine.calls.read_text().splitlines()
    assert [call.split()[0] for call in calls].count("rms_norm_controls") == 2
    assert ["--no-small" in call for call in calls] == [False, False, True, False]
    (build,) = machine.makes.read_text().splitlines()
    assert build.endswith(f"BACKEND=cuda {LADDER}/program {LADDER}/controls/program")


def test_one_sweep_can_be_measured_alone(machine):
    machine.add_ladder(
        LADDER, {**WITH_CONTROLS, "sweeps": {**WITH_CONTROLS["sweeps"], **LADDERS[LADDER]["sweeps"]}}, STAGES
    )
    for name, built in (("controls", "controls/program"), ("few_rows", "program")):
        machine.makes.unlink(missing_ok=True)
        result = machine.run("bench", f"matrix/{name}")
        assert result.returncode == 0, result.stderr
        assert machine.makes.read_text().endswith(f"BACKEND=cuda {LADDER}/{built}\n")
    assert machine.files() == [f"fake-9000/matrix/{name}.csv" for name in ("controls", "few_rows")]
    assert machine.run("bench", "matrix/nonsense").returncode == 2


def test_a_sweep_may_time_a_few_stages(machine):
    few = {"title": "Few", "inputs": [{"rows": 1, "cols": 65536}], "stages": ["01_basic", "03_tiled"]}
    machine.add_ladder(LADDER, {**LADDERS[LADDER], "sweeps": {"few": few}}, STAGES)
    assert machine.run("bench", "matrix").returncode == 0
    rows = read(machine.root / "profiling_results/fake-9000/matrix/few.csv")
    assert [row["stage"] for row in rows] == few["stages"]
    machine.add_ladder(LADDER, {**LADDERS[LADDER], "sweeps": {"few": {**few, "stages": ["09_none"]}}}, STAGES)
    refused(machine.run("bench", "matrix"), "sweeps", "09_none")


def test_a_stage_is_no_ladder(machine):
    refused(machine.run("bench", "vector/1"), "make stage S=vector/01_basic")
    assert machine.run("bench", "nonsense").returncode == 2


def test_a_directory_can_be_given(machine, tmp_path):
    result = machine.run("bench", "matrix", "--results", tmp_path / "mine")
    assert result.returncode == 0 and (tmp_path / "mine/matrix/repeat.csv").is_file()
    assert machine.files() == []


@pytest.mark.parametrize("slow", ["02_reduction5=1.021", "02_reduction5=0.979", "01_basic=1.02"])
def test_a_long_kernel_that_does_not_repeat_fails_and_nothing_is_stored(machine, slow):
    name = slow.split("=")[0]
    refused(machine.run("bench", "vector", FAKE_SLOW=slow), f"vector/{name}", "2 %", "build/bench/results")
    assert machine.files() == []


@pytest.mark.parametrize("slow", ["02_reduction5=1.019", "02_reduction5=0.981", "04_short=1.2"])
def test_small_differences_and_short_kernels_pass(machine, slow):
    assert machine.run("bench", "matrix", FAKE_SLOW=slow).returncode == 0
    assert "fake-9000/matrix/repeat.csv" in machine.files()


@pytest.mark.parametrize("number", [1, 3, 7])
def test_a_failure_anywhere_keeps_what_was_stored_before(machine, number):
    assert machine.run("bench", "matrix").returncode == 0
    stored = machine.root / "profiling_results/fake-9000"
    before = {path: path.read_bytes() for path in stored.rglob("*.csv")}
    machine.calls.unlink()
    refused(machine.run("bench", "matrix", FAKE_FAILS_AT=str(number), FAKE_SLOW="04_short=2"), "wrong on purpose")
    assert {path: path.read_bytes() for path in stored.rglob("*.csv")} == before


def test_a_run_that_timed_nothing_is_no_result(machine):
    refused(machine.run("bench", "matrix", FAKE_UNTIMED="1"), "timed nothing")
    assert machine.files() == []


def test_a_build_that_fails_is_said_once(machine):
    refused(machine.start("bench", FAKE_BUILD_FAILS="1"), "no nvcc", "the build failed")
    assert machine.files() == []


def test_a_place_that_cannot_be_written_is_named(machine):
    refused(machine.run("bench", "vector", "--results", "/dev/null/results"), "/dev/null/results", "cannot be written")


def test_without_a_gpu_it_says_so_in_two_sentences_and_ends_well(tmp_path):
    result = Machine(tmp_path, gpu=False).run("bench")
    assert result.returncode == 0 and result.stderr == ""
    assert len(result.stdout.splitlines()) == 2
    for word in ("no GPU", "make plots", "make readme"):
        assert word in result.stdout


def test_the_invented_csv_has_no_column_that_the_program_does_not_write():
    """What the real program writes is checked in test_cli.py; the stand-in must not drift from it."""
    source = (ROOT / "common/report.cpp").read_text(encoding="utf-8")
    main = json.loads((ROOT / LADDER / "ladder.json").read_text(encoding="utf-8"))["main"]
    for column in set(header({})) - {"speedup_over_basic", "weight"}:
        assert re.search(rf"\b{column}\b", source), column
    assert list(main) == ["rows", "cols"] and "speedup_over_" in source
