"""make bench: what it writes, when it refuses, and that a failure leaves nothing behind. All on invented numbers."""

import csv
import re

import pytest

from conftest import ROOT
from fake_ladder import HEADER, STAGES
from fakes import Machine


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def refused(result, *words):
    """Exit code 1, no traceback, and these words in what it says."""
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr, result.stderr


def test_stores_every_file_of_a_good_run(machine):
    result = machine.run("scripts/bench.py")
    assert result.returncode == 0, result.stderr
    assert machine.files() == [
        f"fake-9000/{name}"
        for name in (
            *("environment.txt", "few_rows.csv", "long_rows.csv", "matrix_8192x8192.csv", "matrix_by_columns.csv"),
            "repeat.csv",
        )
    ]
    stored = machine.root / "profiling_results/fake-9000"
    assert [row["stage"] for row in read(stored / "matrix_8192x8192.csv")] == list(STAGES)

    sweep = read(stored / "matrix_by_columns.csv")
    assert [int(row["cols"]) for row in sweep[:: len(STAGES)]] == [2**power for power in range(8, 17)]
    assert {int(row["rows"]) * int(row["cols"]) for row in sweep} == {2**26}
    assert all(row["copy_microseconds"] for row in sweep)

    few, long = read(stored / "few_rows.csv"), read(stored / "long_rows.csv")
    assert [(row["rows"], row["cols"]) for row in few[:: len(STAGES)]] == [(r, "4096") for r in ("1", "16", "64", "256")]
    assert {row["rows"] for row in long} == {"1"}
    assert [int(row["cols"]) for row in long[:: len(STAGES)]] == [65536, 262144, 1048576, 4194304]

    repeat = {row["kernel"]: row for row in read(stored / "repeat.csv")}
    assert list(repeat) == ["copy kernel", *STAGES]
    assert repeat["02_reduction5"]["difference_percent"] == "+0.00"
    assert (repeat["02_reduction5"]["limit_percent"], repeat["04_short"]["limit_percent"]) == ("2.0", "")

    said = (stored / "environment.txt").read_text()
    for line in ("GPU: NVIDIA Fake 9000", "CUDA runtime: 13.0", "SM clock right after: 1234 MHz", "driver: 999.99"):
        assert line in said.splitlines()
    assert str(machine.root) not in said


def test_the_ladder_is_checked_whole_twice_and_the_sweep_on_its_own_input(machine):
    machine.run("scripts/bench.py")
    calls = machine.calls.read_text().splitlines()
    assert ["--no-small" in call for call in calls] == [False] + 17 * [True] + [False]
    assert ["01_basic" not in call and "--stage" in call for call in calls] == 14 * [False] + 4 * [True] + [False]


def test_a_directory_can_be_given(machine, tmp_path):
    result = machine.run("scripts/bench.py", tmp_path / "mine")
    assert result.returncode == 0 and (tmp_path / "mine/repeat.csv").is_file()
    assert machine.files() == []


@pytest.mark.parametrize("slow", ["02_reduction5=1.021", "02_reduction5=0.979", "03_tiled=1.5", "01_basic=1.02"])
def test_a_long_kernel_that_does_not_repeat_fails_and_nothing_is_stored(machine, slow):
    refused(machine.run("scripts/bench.py", FAKE_SLOW=slow), slow.split("=")[0], "2 %", "build/bench/results")
    assert machine.files() == []


@pytest.mark.parametrize("slow", ["02_reduction5=1.019", "02_reduction5=0.981", "04_short=1.2"])
def test_small_differences_and_short_kernels_pass(machine, slow):
    assert machine.run("scripts/bench.py", FAKE_SLOW=slow).returncode == 0
    assert "fake-9000/repeat.csv" in machine.files()


@pytest.mark.parametrize("number", [1, 5, 12, 16, 19])
def test_a_failure_anywhere_keeps_what_was_stored_before(machine, number):
    assert machine.run("scripts/bench.py").returncode == 0
    stored = machine.root / "profiling_results/fake-9000"
    before = {path.name: path.read_bytes() for path in stored.iterdir()}
    machine.calls.unlink()
    refused(machine.run("scripts/bench.py", FAKE_FAILS_AT=str(number), FAKE_SLOW="04_short=2"), "wrong on purpose")
    assert {path.name: path.read_bytes() for path in stored.iterdir()} == before


def test_a_run_that_timed_nothing_is_no_result(machine):
    refused(machine.run("scripts/bench.py", FAKE_UNTIMED="1"), "timed nothing")
    assert machine.files() == []


def test_a_build_that_fails_is_said_once(machine):
    refused(machine.run("scripts/bench.py", FAKE_BUILD_FAILS="1"), "no nvcc", "the build failed")
    assert machine.files() == []


def test_a_place_that_cannot_be_written_is_named(machine):
    refused(machine.run("scripts/bench.py", "/dev/null/results"), "/dev/null/results", "cannot be written")


def test_without_a_gpu_it_says_so_in_two_sentences_and_ends_well(tmp_path):
    result = Machine(tmp_path, gpu=False).run("scripts/bench.py")
    assert result.returncode == 0 and result.stderr == ""
    assert len(result.stdout.splitlines()) == 2
    for word in ("no GPU", "make plots", "make readme"):
        assert word in result.stdout


def test_the_invented_csv_has_no_column_that_the_program_does_not_write():
    """What the real program writes is checked in test_cli.py; the stand-in must not drift from it."""
    source = (ROOT / "common/report.cpp").read_text(encoding="utf-8")
    written = re.search(r'"stage,verdict,.*?\\n"', source, re.DOTALL).group()
    written = re.sub(r'"\s*"', "", written).replace("\\n", "").strip('"').split(",")
    assert set(HEADER.split(",")) <= set(written)
