"""The program's command line: what it prints, writes and returns, and one sentence for everything it refuses."""

import csv
import math
import os
import pty
import signal
import subprocess
import time

import pytest
from conftest import BACKEND, ENVIRONMENT, LADDER, ROOT, full_but, program, run

pytestmark = pytest.mark.builds(LADDER)

PROGRAM = program(LADDER)
STAGES = sorted(path.name for path in (ROOT / LADDER).glob("[0-9]*_*"))
SMALL = ("--rows", "3", "--cols", "33", "--no-small", "--no-timing")


def refused(result):
    """The one sentence of a refusal: exit code 2, nothing on stdout, one line on stderr."""
    assert result.returncode == 2, result.stdout + result.stderr
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--rows", "-1"], "--rows -1"),
        (["--rows", "1e3"], "--rows 1e3"),
        (["--rows", ""], "--rows"),
        (["--rows"], "--rows"),
        (["--rows", "99999999999999999999"], "--rows"),
        (["--cols", "0"], "--cols 0"),
        (["--cols", "-5"], "--cols -5"),
        (["--cols", "12.5"], "--cols 12.5"),
        (["--cols", "nan"], "--cols nan"),
        (["--seed", "one"], "--seed one"),
        (["--iterations", "0"], "--iterations 0"),
        (["--iterations", "-3"], "--iterations -3"),
        (["--pause", "-1"], "--pause -1"),
        (["--pause", "60001"], "--pause 60001"),
        (["--stage", "99"], "--stage 99"),
        (["--stage", "0"], "--stage 0"),
        (["--stage", ""], "--stage"),
        (["--stage", "nonsense"], "--stage nonsense"),
        (["--stage", "05_warp_shuffle,nonsense"], "nonsense"),
        (["--bogus"], "--bogus"),
        (["surplus"], "surplus"),
        (["--csv", ""], "--csv"),
        (["--csv", "/nonexistent/x"], "/nonexistent/x"),
        (["--csv", "/"], "--csv /"),
    ],
)
def test_bad_argument_is_refused_in_one_sentence(tmp_path, arguments, said):
    sentence = refused(run(PROGRAM, *arguments, cwd=tmp_path))
    assert all(word in sentence for word in said.split()), sentence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rows, cols", [(10**6, 10**6), (2**40, 2**40), (1, 2**40), (2**40, 1)])
def test_matrix_larger_than_memory_is_refused(tmp_path, rows, cols):
    target = tmp_path / "result.csv"
    start = time.monotonic()
    said = refused(run(PROGRAM, "--rows", rows, "--cols", cols, "--csv", target))
    assert "memory" in said and "--rows" in said
    assert time.monotonic() - start < 5
    assert not target.exists()


def test_csv_is_refused_before_any_work():
    start = time.monotonic()
    refused(run(PROGRAM, "--csv", "/nonexistent/x"))
    assert time.monotonic() - start < 1


def test_help():
    shown = run(PROGRAM, "--help")
    assert shown.returncode == 0 and shown.stderr == ""
    for option in ("--stage", "--rows", "--cols", "--seed", "--iterations", "--csv", "--list", "--help"):
        assert option in shown.stdout


def test_list_names_every_stage():
    listed = run(PROGRAM, "--list")
    assert listed.returncode == 0 and listed.stderr == ""
    assert [line.split()[1] for line in listed.stdout.splitlines()[1:]] == STAGES
    assert [line.split()[1] for line in listed.stdout.splitlines() if line.endswith("(W2L3_TILE)")] == ["03_tiled"]


@pytest.mark.parametrize("form", ["05_warp_shuffle", "warp_shuffle", "5", "05", "FAST", "fast"])
def test_stage_by_number_or_name(form):
    result = run(PROGRAM, "--stage", form, *SMALL)
    assert result.returncode == 0, result.stderr
    assert [stage for stage in STAGES if f"\n{stage}  " in result.stdout] == ["05_warp_shuffle"]


@pytest.mark.parametrize("forms", [["--stage", "6,1"], ["--stage", "1", "--stage", "06", "--stage", "1"]])
def test_several_stages_run_once_each_in_order(tmp_path, forms):
    target = tmp_path / "result.csv"
    assert run(PROGRAM, *forms, *SMALL, "--csv", target).returncode == 0
    assert [row["stage"] for row in read(target)] == ["01_basic", "06_vectorized"]


@pytest.mark.builds(LADDER + "/{name}")
@pytest.mark.parametrize("name", full_but(STAGES, "05_warp_shuffle"))
def test_each_stage_has_a_program_of_its_own(name):
    own = program(f"{LADDER}/{name}")
    result = run(own, *SMALL)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"\n{name}  PASS" in result.stdout
    refused(run(own, "--stage", "1"))


@pytest.mark.parametrize("rows, cols", [(0, 5), (1, 1), (3, 8193), (989, 31)])
def test_odd_shapes_pass(rows, cols):
    result = run(PROGRAM, "--rows", rows, "--cols", cols, "--no-small", "--no-timing")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("PASS") == len(STAGES)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv_holds_what_the_table_shows(tmp_path):
    target = tmp_path / "result.csv"
    target.write_text("what was here before\n")
    result = run(PROGRAM, "--rows", 5, "--cols", 1025, "--seed", 7, "--no-small", "--csv", target)
    assert result.returncode == 0, result.stderr
    rows = read(target)
    assert [row["stage"] for row in rows] == STAGES
    assert list(tmp_path.iterdir()) == [target]
    for row in rows:
        assert (row["verdict"], row["rows"], row["cols"], row["seed"]) == ("PASS", "5", "1025", "7")
        assert 0 <= float(row["worst_error"]) <= float(row["tolerance"]) < math.inf
        assert row["stage"] in result.stdout and row["device"] in result.stdout
        if BACKEND == "cpu":  # nothing there is ever timed
            assert row["microseconds"] == row["gb_per_s"] == row["speedup_over_basic"] == ""
            assert float(row["barriers_per_block"]) >= 0
    if BACKEND == "cpu":
        assert "GB/s" not in result.stdout


def test_same_seed_same_result_another_seed_another(tmp_path):
    errors = []
    for position, seed in enumerate((1, 1, 2)):
        target = tmp_path / f"{position}.csv"
        shape = ("--stage", 5, "--rows", 64, "--cols", 777, "--no-small", "--no-timing")
        assert run(PROGRAM, *shape, "--seed", seed, "--csv", target).returncode == 0
        errors.append([row["worst_error"] for row in read(target)])
    assert errors[0] == errors[1] != errors[2]


@pytest.mark.parametrize("number", full_but([signal.SIGINT, signal.SIGTERM], signal.SIGTERM))
def test_interrupted_run_leaves_no_csv(tmp_path, number):
    """Interrupted at several moments: exit code 128 + signal, one sentence, and no file, whole or half."""
    target = tmp_path / "result.csv"
    for delay in (0.2, 0.6, 1.2):
        process = subprocess.Popen(
            [PROGRAM, "--rows", "20000", "--csv", target],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )
        time.sleep(delay)
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 128 + number
        assert len(errors.strip().splitlines()) == 1 and "interrupted" in errors
        assert list(tmp_path.iterdir()) == []


def test_interrupted_run_keeps_the_csv_that_was_there(tmp_path):
    target = tmp_path / "result.csv"
    target.write_text("older result\n")
    process = subprocess.Popen(
        [PROGRAM, "--rows", "20000", "--csv", target], env=ENVIRONMENT, stderr=subprocess.DEVNULL
    )
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    assert target.read_text() == "older result\n"


def test_progress_is_for_terminals_only():
    command = (PROGRAM, "--stage", "1", *SMALL)
    assert run(*command).stderr == ""
    try:
        parent, child = pty.openpty()
    except OSError as error:
        pytest.skip(f"this machine has no pseudo-terminals: {error}")
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=child)
    os.close(child)
    shown = b""
    try:
        while chunk := os.read(parent, 4096):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    os.close(parent)
    assert process.wait(timeout=60) == 0
    assert b"01_basic" in shown and b"\n" not in shown


def test_full_disk_is_an_error():
    """Output that cannot be written must not end in exit code 0."""
    with open("/dev/full", "w") as full:
        command = (PROGRAM, "--stage", "1", *SMALL)
        process = subprocess.run(command, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert process.returncode != 0


@pytest.mark.parametrize("rows", full_but(["256", "8192"], "256"))
def test_every_stage_is_right_on_the_real_input(rows):
    """8192 × 8192, of which a quick run takes a thirty-second, after the small problems, which most tests here leave out.

    On the CPU device within 20 seconds of two cores for six stages, and under 3 GB. Processor time depends less than time on
    what else the machine does.
    """
    given = () if rows == "8192" else ("--rows", rows)
    process = subprocess.Popen([PROGRAM, *given], env=ENVIRONMENT, stdout=subprocess.PIPE, universal_newlines=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0 and output.count("PASS") == len(STAGES), output
    if BACKEND == "cpu":
        assert usage.ru_utime + usage.ru_stime < 2 * 20 * len(STAGES) / 6
        assert usage.ru_maxrss * 1024 < 3e9
