"""Every known-wrong kernel must be rejected by the checks that a stage must pass, and for the reason that it names.

Builds nothing: MUTANTS_BIN names the program, or it stands in the mutants' folder, where `make` puts it. One process per
mutant, since a fault may end the CUDA context.
"""

import os
import pathlib
import re
import subprocess

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "assignment1/rms_norm/matrix/mutants"
PROGRAM = pathlib.Path(os.environ.get("MUTANTS_BIN", FOLDER / "rms_norm_mutants"))
REJECTED, NOT_SHOWN_HERE = 1, 77


def run(*arguments):
    command = [str(PROGRAM), *arguments]
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=600
    )


def listed():
    """(name, what the rejection must say) of each mutant; empty if the program cannot say it."""
    if not PROGRAM.is_file():
        return []
    rows = [re.split(r"\s{2,}", line.strip()) for line in run("--list").stdout.splitlines()]
    return [(row[0], row[2]) for row in rows if len(row) == 4 and row[1] in ("cpu", "any", "sm_90")]


MUTANTS = listed()
LARGE = {"byte_offset_overflow"}  # its fault shows beyond 2 GiB: 40 seconds of a processor and 8 GB, with FULL=1 only


@pytest.fixture(scope="module", autouse=True)
def built():
    assert PROGRAM.is_file(), f"{PROGRAM} is not built: run make in {FOLDER}"


def test_every_mutant_is_listed():
    files = {path.stem for path in FOLDER.glob("*.cuh")} - {"parts"}
    assert {name for name, _ in MUTANTS} == files, run("--list").stdout


@pytest.mark.parametrize(
    "name, reason",
    [pytest.param(*mutant, id=mutant[0], marks=[pytest.mark.full] if mutant[0] in LARGE else []) for mutant in MUTANTS],
)
def test_mutant_is_rejected(name, reason):
    result = run("--mutant", name)
    if result.returncode == NOT_SHOWN_HERE:
        pytest.skip(f"{name}: {result.stdout.strip()}")
    assert result.returncode == REJECTED, f"exit code {result.returncode}: {result.stdout}"
    assert "rejected: " in result.stdout and reason in result.stdout, f"not for the reason '{reason}': {result.stdout}"


def test_unknown_mutant_is_a_bad_command_line():
    assert run("--mutant", "no_such_mutant").returncode == 2
