"""The backward ladder: every type and every kind of call, refusals, and which stage promises the same bits.

The generic tests check its stages, mutants, counts and pages as those of every ladder.
"""

import re

import pytest
from conftest import program, run
from ladder.core import ladders
from ladder.measure import cpu_device

LADDER = ladders.find("backward")
builds = pytest.mark.builds(LADDER.path)
KEEPS_A_ROW = {stage.name for stage in LADDER.stages if stage.number >= 5}


def verdicts(*options):
    result = run(program(LADDER.path), "--no-timing", "--no-small", *options)
    assert result.returncode == 0, result.stdout + result.stderr
    return dict(re.findall(r"^(\w+) +(PASS|skipped)\b", result.stdout, re.MULTILINE)), result.stdout


@builds
@pytest.mark.parametrize(
    "options, said",
    [
        (["--dtype", "half"], "weight, no dsum, no rstd, dweight"),
        (["--dtype", "float", "--with-dsum", "--with-rstd"], "weight, dsum, rstd, dweight"),
        (["--no-weight", "--no-dweight"], "no weight, no dsum, no rstd, no dweight"),
    ],
)
def test_every_kind_of_call_is_right(options, said):
    found, output = verdicts("--rows", 37, "--cols", 1000, *options)
    assert found == {stage.name: "PASS" for stage in LADDER.stages} and said in output


@builds
def test_rows_that_no_block_keeps_are_refused_with_a_reason():
    found, output = verdicts("--rows", 2, "--cols", 8193)
    assert {name for name, verdict in found.items() if verdict == "skipped"} == KEEPS_A_ROW
    assert "give at most 8192 cols" in output


def test_only_the_atomics_may_give_other_bits():
    unordered = [stage.name for stage in LADDER.stages if "AnyOrder> stage" in stage.source.read_text(encoding="utf-8")]
    assert unordered == ["02_atomics"]


def counted(name):
    return cpu_device.counted(cpu_device.path_of(LADDER.stage(name)), LADDER.analyze)


def test_the_bytes_fall_as_the_pages_predict():
    """Of 2-byte elements: dy and x three times, and the weight for each row twice; one time; wider."""
    asked = {stage.name: counted(stage.name)["asked"] for stage in LADDER.stages}
    assert asked["01_basic"] == asked["03_block_per_column"] == asked["04_column_tiles"] > 3 * 4
    assert asked["05_partial_sums"] < asked["04_column_tiles"] - 4
    assert 4 < asked["09_cluster"] < asked["08_prefetch"] < asked["06_registers"] <= 5
    assert (2, 32.0) in counted("03_block_per_column")["loads"] and (2, 32.0) not in counted("04_column_tiles")["loads"]
    assert (16, 16.0) in counted("07_vectorized")["loads"]
