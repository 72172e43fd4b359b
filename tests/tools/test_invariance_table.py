"""The price of batch invariance: the table takes the shapes that the header takes, and finds a time for each."""

import re

import pytest
from conftest import ROOT
from ladder.core import results

from bench.norm import invariance_tables
from bench.tune.policies import ANY_SIZE
from bench.tune.rms_norm import policy

TUNED = results.store() / "h200" / policy.CSV
LINE = r"\{(\d+), (\w+), (\d+), (\d+), (\d+), Access::(\w+), Eviction::(\w+)\}"


@pytest.mark.parametrize("name", policy.TABLES)
def test_shapes_are_those_of_the_header(name):
    text = (ROOT / policy.POLICIES / "h200.cuh").read_text(encoding="utf-8")
    lines = re.findall(LINE, text.partition(f"{policy.TABLES[name]}[]")[2].partition("};\n")[0])
    assert len(lines) > 20
    found = invariance_tables.ratios(policy.read(TUNED), name)
    operator = policy.Operator(policy.read(TUNED), name)
    for packs in operator.packs:
        # takes() of include/rms_norm/launch.cuh: for problems of any size, and not for contiguous rows alone
        _, _, *of_header = next(
            line for line in lines if packs <= int(line[0]) and line[1] == "kAnySize" and line[5] != "contiguous"
        )
        taken = policy.taken(policy.table(operator), packs, ANY_SIZE, contiguous=False, clusters=True)
        assert [str(taken.vectors), str(taken.block), str(taken.parts), taken.access, taken.reads] == of_header
    assert all(ratio is not None and ratio > 0.9 for ratio in found.values())
    largest = max(size for _, size in found)
    assert all(ratio < 1.1 for (_, size), ratio in found.items() if size == largest)
    assert max(found.values()) > 1.1  # the small problems pay
