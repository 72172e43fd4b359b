"""What was found until then is reported, however the program ends."""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest
from conftest import full_but

HERE = pathlib.Path(__file__).resolve().parent
SIMT = HERE.parents[1]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    made = tmp_path_factory.mktemp("ends") / "ends"
    subprocess.run([SIMT / "simtcc", "--analyze", HERE / "ends.cu", "-o", made], check=True)
    return made


def results(path):
    raw = json.loads(path.read_text())
    return [hazard["what"] for hazard in raw["hazards"]], [kernel["name"] for kernel in raw["kernels"]]


ENDS = {
    "throw": -signal.SIGABRT,
    "abort": -signal.SIGABRT,
    "fault": -signal.SIGSEGV,
    "quick": 3,
    "none": 0,
}


@pytest.mark.parametrize("how", full_but(list(ENDS), "throw", "fault"))
def test_the_program_ends_by_itself(program, tmp_path, how):
    dump = tmp_path / "dump.json"
    done = subprocess.run([program, how], env={**os.environ, "SIMT_ANALYSIS": str(dump)}, stderr=subprocess.PIPE)
    assert done.returncode == ENDS[how]
    hazards, kernels = results(dump)
    assert set(hazards) == {"race"} and kernels[0] == "races"


@pytest.mark.parametrize("how, sees_later", [("shared", True), ("global", False)])
def test_kernels_after_a_fault(program, tmp_path, how, sees_later):
    """They run on where only the faulty kernel's own shared memory was concerned; every call returns the error even so."""
    dump = tmp_path / "dump.json"
    done = subprocess.run([program, how], env={**os.environ, "SIMT_ANALYSIS": str(dump)}, stderr=subprocess.PIPE)
    assert done.returncode == 4
    hazards, kernels = results(dump)
    assert set(hazards) == {"race", "out_of_bounds"}
    assert ("comes_after" in kernels) == sees_later


def blocked_by_other_threads(pid, sent):
    """Whether each thread but the first one blocks a signal: the device's own threads, one of which is the watchdog."""
    statuses = [path / "status" for path in pathlib.Path(f"/proc/{pid}/task").iterdir() if path.name != str(pid)]
    masks = [re.search(r"^SigBlk:\s*(\w+)$", path.read_text(), re.MULTILINE)[1] for path in statuses]
    return [bool(int(mask, 16) >> (sent - 1) & 1) for mask in masks]


@pytest.mark.parametrize("sent", full_but([signal.SIGTERM, signal.SIGINT], signal.SIGTERM))
def test_a_kernel_is_interrupted(program, tmp_path, sent):
    dump = tmp_path / "dump.json"
    running = subprocess.Popen(
        [program, "spin"],
        env={**os.environ, "SIMT_ANALYSIS": str(dump)},
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert running.stdout.readline() == b"spins\n"
    blocked = blocked_by_other_threads(running.pid, sent)
    running.send_signal(sent)
    assert running.wait(timeout=60) == -sent
    assert blocked == [True], "the watchdog may get the signal while the program's thread holds what it needs"
    running.stdout.close()
    hazards, kernels = results(dump)
    assert set(hazards) == {"race"} and kernels[0] == "races"


@pytest.mark.parametrize("sent", full_but([signal.SIGTERM, signal.SIGHUP], signal.SIGTERM))
def test_an_analysis_that_is_ended_ends_its_program_and_leaves_no_folder(program, tmp_path, sent):
    words = [SIMT / "analyze", "--program", program, "--", "spin"]
    with subprocess.Popen(words, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"spins\n"
        assert list(tmp_path.iterdir())
        running.send_signal(sent)
        assert running.stdout.read() == b""  # until the program has closed it, too
        assert running.wait(timeout=60) == 128 + sent
    assert not list(tmp_path.iterdir())


def test_the_report_says_how_it_ended(program):
    done = subprocess.run(
        [SIMT / "analyze", "--program", program, "--", "throw"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "race" in done.stdout and "the program was ended by the signal SIGABRT" in done.stderr


def test_it_says_that_it_builds(tmp_path):
    """The runtime is built once, for a minute or two, and a silent wait looks like a hang."""
    fake = tmp_path / "make"
    fake.write_text('#!/bin/sh\necho "  compile  simt/runtime/launch.cpp"\nexit 1\n')
    fake.chmod(0o755)
    done = subprocess.run(
        [SIMT / "analyze", HERE / "ends.cu", "--", "none"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SIMT_BUILD_DIR": str(tmp_path / "new")},
        capture_output=True,
        text=True,
    )
    assert done.stderr.startswith("simtcc: building the CPU device for analyses, which takes a minute or two")
