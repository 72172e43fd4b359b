"""Every known-wrong kernel must be rejected by the checks that a stage must pass, and for the reason that it names.

One process per mutant, since a fault may end the CUDA context.
"""

import functools
import re

import pytest
from conftest import full_but, program, run
from ladder.core import ladders

pytestmark = pytest.mark.builds("{ladder.path}/mutants")

REJECTED, NOT_SHOWN_HERE = 1, 77


LADDERS = [ladder for ladder in ladders.all_ladders() if ladder.mutants]
QUICK = {"W1L1", "matrix"}
LARGE = {
    "matrix/byte_offset_overflow"
}  # its fault shows beyond 2 GiB: 40 seconds of a processor and 8 GB, with FULL=1 only
each_ladder = pytest.mark.parametrize(
    "ladder", full_but(LADDERS, *(one for one in LADDERS if one.id in QUICK)), ids=lambda ladder: ladder.id
)


def start(ladder, *arguments):
    result = run(program(f"{ladder.path}/mutants"), *arguments, timeout=600)
    return result.returncode, result.stdout + result.stderr


@functools.cache
def listed(ladder):
    """{name: what the rejection must say} of each mutant."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in start(ladder, "--list")[1].splitlines()[1:]]
    return {name: reason for name, _, reason, _ in rows}


def every_mutant():
    for ladder in LADDERS:
        for name in ladder.mutants:
            identity = f"{ladder.id}/{name}"
            full = identity in LARGE or ladder.id not in QUICK
            yield pytest.param(ladder, name, id=identity, marks=[pytest.mark.full] if full else [])


@each_ladder
def test_every_mutant_is_listed(ladder):
    assert sorted(listed(ladder)) == ladder.mutants


@pytest.mark.parametrize("ladder, name", every_mutant())
def test_mutant_is_rejected(ladder, name):
    status, said = start(ladder, "--mutant", name)
    if status == NOT_SHOWN_HERE:
        pytest.skip(f"{name}: {said.strip()}")
    assert status == REJECTED, f"exit code {status}: {said}"
    assert "rejected: " in said and listed(ladder)[name] in said, f"not for the reason '{listed(ladder)[name]}': {said}"


@each_ladder
def test_unknown_mutant_is_a_bad_command_line(ladder):
    assert start(ladder, "--mutant", "no_such_mutant")[0] == 2
