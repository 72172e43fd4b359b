"""The vector ladder's programs: command line, odd lengths, the real input within its time, and bfloat16."""

import os
import re
import subprocess

import pytest
from conftest import BACKEND, ENVIRONMENT, full_but, program, run
from ladder.core import ladders

FOLDER = "assignment1/rms_norm/vector"
PROGRAM = program(FOLDER)
STAGES = [stage.name for stage in ladders.find("vector").stages]

pytestmark = pytest.mark.builds(FOLDER)


def passed(result):
    """The names of the rows, all of which must have passed."""
    assert result.returncode == 0, result.stdout + result.stderr
    rows = re.findall(r"^(\d\d_\w+) +(\w+)", result.stdout, re.MULTILINE)
    assert {verdict for _, verdict in rows} == {"PASS"}, result.stdout
    return [name for name, _ in rows]


def test_list_names_stages_and_experiments():
    listed = run(PROGRAM, "--list").stdout
    assert re.findall(r"^\d+ +(\d\d_\w+)", listed, re.MULTILINE) == STAGES
    assert re.findall(r"^[1-9] +([a-z]+) ", listed, re.MULTILINE) == ["stages", "warm", "waits"]


@pytest.mark.parametrize(
    "arguments", [["--n", "0"], ["--n", "-1"], ["--rows", "3"], ["--stage", "99"], ["--experiment", "4"]]
)
def test_bad_argument_is_refused_in_one_sentence(arguments):
    result = run(PROGRAM, *arguments)
    assert result.returncode == 2 and result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert arguments[0] in result.stderr


@pytest.mark.parametrize("n", full_but([1, 33, 8193, 100003], 8193))
def test_odd_lengths_pass(n):
    assert passed(run(PROGRAM, "--n", n, "--no-small", "--no-timing")) == STAGES


def test_what_the_only_stage_refuses_is_a_bad_command_line():
    result = run(PROGRAM, "--n", 2**24 + 1, "--stage", 1, "--no-small", "--no-timing")
    assert result.returncode == 2 and "no stage takes n = 16777217: " in result.stderr
    assert "give at most 2^24 elements" in result.stderr and "PASS" not in result.stdout


@pytest.mark.full
@pytest.mark.builds(f"{FOLDER}/bfloat16")
@pytest.mark.parametrize("given", [["--n", "40963", "--no-small"], []])
def test_bfloat16_is_right(given):
    assert len(passed(run(program(f"{FOLDER}/bfloat16"), "--no-timing", *given))) > 10


@pytest.mark.full
def test_every_stage_is_right_on_the_real_input():
    """After the small problems; on the CPU device in half a minute of two cores."""
    process = subprocess.Popen([PROGRAM], env=ENVIRONMENT, stdout=subprocess.PIPE, universal_newlines=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0 and output.count("PASS") == len(STAGES), output
    assert "1048576 float32" in output
    if BACKEND == "cpu":
        assert usage.ru_utime + usage.ru_stime < 2 * 30
        assert "the experiments need a GPU" in output


@pytest.mark.full
@pytest.mark.builds("tests/course/vector_graphs")
def test_stages_can_be_captured_and_replayed():
    """Each launch recorded in a graph, on inputs of two lengths in turn, and the graph replayed: the same bits as without."""
    result = run(program("tests/course/vector_graphs"))
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("same bits") == len(STAGES)
