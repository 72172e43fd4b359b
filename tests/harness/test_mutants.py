"""Every known-wrong kernel must be rejected by the checks that a stage must pass, and for the reason that it names.

Builds nothing: the programs stand below build/, where the tests' set-up puts them. One process per mutant, since a fault
may end the CUDA context.
"""

import re
import subprocess

import pytest
from conftest import BUILD, ROOT
from ladder import ladders

REJECTED, NOT_SHOWN_HERE = 1, 77


def program_of(ladder):
    (name,) = re.findall(r"^NAME := (\w+)$", (ladder.folder / "mutants/Makefile").read_text(encoding="utf-8"), re.M)
    return BUILD / ladder.path / "mutants" / name


PROGRAMS = {ladder: program_of(ladder) for ladder in ladders.all_ladders() if ladder.mutants}
LARGE = {
    "matrix/byte_offset_overflow"
}  # its fault shows beyond 2 GiB: 40 seconds of a processor and 8 GB, with FULL=1 only
each_program = pytest.mark.parametrize("ladder", PROGRAMS, ids=lambda ladder: ladder.id)


def run(ladder, *arguments):
    command = [str(PROGRAMS[ladder]), *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=600,
    )


def listed(ladder):
    """{name: what the rejection must say} of each mutant; empty if the program cannot say it."""
    if not PROGRAMS[ladder].is_file():
        return {}
    rows = [re.split(r"\s{2,}", line.strip()) for line in run(ladder, "--list").stdout.splitlines()]
    return {row[0]: row[2] for row in rows if len(row) == 4 and row[1] in ("cpu", "any", "sm_90")}


def every_mutant():
    for ladder in PROGRAMS:
        for name, reason in listed(ladder).items():
            identity = f"{ladder.id}/{name}"
            yield pytest.param(ladder, name, reason, id=identity, marks=[pytest.mark.full] if identity in LARGE else [])


@each_program
def test_every_mutant_is_listed(ladder):
    assert PROGRAMS[ladder].is_file(), f"{PROGRAMS[ladder]} is not built: run make in {ladder.path}/mutants"
    assert sorted(listed(ladder)) == ladder.mutants, run(ladder, "--list").stdout


@pytest.mark.parametrize("ladder, name, reason", every_mutant())
def test_mutant_is_rejected(ladder, name, reason):
    result = run(ladder, "--mutant", name)
    if result.returncode == NOT_SHOWN_HERE:
        pytest.skip(f"{name}: {result.stdout.strip()}")
    assert result.returncode == REJECTED, f"exit code {result.returncode}: {result.stdout}"
    assert "rejected: " in result.stdout and reason in result.stdout, f"not for the reason '{reason}': {result.stdout}"


@each_program
def test_unknown_mutant_is_a_bad_command_line(ladder):
    assert run(ladder, "--mutant", "no_such_mutant").returncode == 2
