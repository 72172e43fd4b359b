"""The analysis counts what known_answers.csv says, for every kernel of known_answers.cu."""

import re

import known_answers
import pytest
from conftest import full_but

EXPECTED = known_answers.expected()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    program = tmp_path_factory.mktemp("known_answers") / "program"
    known_answers.build(program)
    return program


@pytest.fixture(scope="module")
def report(program):
    return known_answers.analyse(program)


@pytest.fixture(scope="module")
def counted(report):
    return known_answers.totals(report)


@pytest.mark.parametrize("row", EXPECTED, ids=[f"{row['kernel']}-{row['kind']}" for row in EXPECTED])
def test_the_count_is_the_known_one(counted, row):
    counts = counted[row["kernel"]][row["space"], row["kind"]]
    wanted = {name: row[name] for name in known_answers.COUNTS if row[name] is not None}
    assert {name: counts[name] for name in wanted} == wanted, row["why"]


def test_every_kernel_has_a_known_answer():
    source = (known_answers.HERE / "known_answers.cu").read_text(encoding="utf-8")
    named = re.findall(r"^(?:(?:SHARED_)?(?:LOAD|STORE|ATOMIC)(?:_IF)?|REDUCTION|KERNEL|CASE)\(\s*(\w+),", source, re.M)
    assert len(named) > 150 and set(named) == {row["kernel"] for row in EXPECTED}


@pytest.mark.parametrize("order", full_but(["reversed", "7"], "reversed"))
def test_the_order_of_the_threads_changes_no_count(program, counted, order):
    assert known_answers.totals(known_answers.analyse(program, SIMT_ORDER=order)) == counted


def test_none_of_them_is_said_to_be_wrong(report):
    assert report["hazards"] == [] and report["error"] is None
