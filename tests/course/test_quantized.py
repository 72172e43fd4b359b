"""The quantized ladder: formats, kinds of calls, refusals, and what its pages predict of bytes and barriers.

The generic tests check its stages, mutants, counts and pages as those of every ladder.
"""

import re

import pytest
from conftest import program, run
from ladder.core import ladders, results
from ladder.measure import cpu_device

LADDER = ladders.find("quantized")
builds = pytest.mark.builds(LADDER.path)


def verdicts(*options):
    result = run(program(LADDER.path), "--no-timing", "--no-small", *options)
    assert result.returncode == 0, result.stdout + result.stderr
    return dict(re.findall(r"^(\w+) +(PASS|skipped)\b", result.stdout, re.MULTILINE)), result.stdout


@pytest.mark.full
@builds
@pytest.mark.parametrize(
    "options, said",
    [
        (["--format", "int8", "--with-residual", "--with-residual-out"], "residual, no scale, scales, residual-out"),
        (["--with-scale", "--no-scales", "--with-y", "--no-weight"], "no weight, no residual, scale, no scales"),
    ],
)
def test_every_kind_of_call_is_right(options, said):
    found, output = verdicts("--rows", 37, "--cols", 1000, *options)
    assert found == {stage.name: "PASS" for stage in LADDER.stages} and said in output


@pytest.mark.full
@builds
def test_what_a_stage_cannot_do_is_refused_with_a_reason():
    found, output = verdicts("--rows", 2, "--cols", 8193)
    assert {name for name, verdict in found.items() if verdict == "skipped"} == {
        stage.name for stage in LADDER.stages if stage.number >= 4
    }
    assert "give at most 8192 cols" in " ".join(output.split())
    found, output = verdicts("--rows", 3, "--cols", 1000, "--format", "int8-blocks")
    assert [name for name, verdict in found.items() if verdict == "PASS"] == ["06_blocks", "07_fewer_warps"]


def test_the_counts_are_what_the_pages_predict():
    counts = {stage.number: cpu_device.counted(cpu_device.path_of(stage), LADDER.analyze) for stage in LADDER.stages}
    assert [counts[number]["asked"] for number in range(1, 8)] == [10, 10, 8, 4, 4, 4, 4]
    assert [counts[number]["barriers"] for number in range(1, 8)] == [1, 2, 1, 1, 1, 1, 1]
    assert (2, 2.0) in counts[1]["stores"] and (2, 2.0) not in counts[2]["stores"]  # y through memory
    assert (8, 8.0) in counts[5]["stores"] and (16, 16.0) in counts[5]["loads"]


@pytest.mark.full
@builds
def test_an_outlier_costs_int8_its_digits_and_e4m3_none(tmp_path):
    found = run(program(LADDER.path), "--no-small", "--experiment", 2, "--csv-dir", tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    stored = results.store() / results.CPU_DEVICE / "quantized/outliers.csv"
    columns = ["outlier", "e4m3_row", "int8_row", "int8_block"]
    here, there = (results.read(path, columns) for path in (tmp_path / stored.name, stored))
    assert [{name: row[name] for name in there[0]} for row in here] == there
    rows = {int(row["outlier"]): row for row in there}
    errors = {size: [float(row[way]) for way in ("e4m3_row", "int8_row", "int8_block")] for size, row in rows.items()}
    assert errors[1][1] < 0.5 * errors[1][0] and errors[256][1] > 10 * errors[256][0] > 0
    assert errors[256][2] < 0.25 * errors[256][1] and errors[1024][0] < 1.05 * errors[1][0]
