"""The header on shapes outside the peers' tables: the program of bench/norm/shapes, and what it stored."""

import pytest
from conftest import program, run
from ladder.core import results

SHAPES = "bench/norm/shapes"
STORED = sorted(results.store().glob("*/header/shapes.csv"))


@pytest.mark.full
@pytest.mark.builds(SHAPES)
def test_answers_without_a_gpu(tmp_path):
    result = run(program(SHAPES), "--csv", tmp_path / "times.csv")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count(" right\n") > 25 and "nothing was timed" in result.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.full
@pytest.mark.builds(SHAPES)
@pytest.mark.parametrize("arguments", [["--nonsense"], ["--iterations", "0"], ["--csv", "/no/such/folder/times.csv"]])
def test_bad_command_lines(arguments):
    refused = run(program(SHAPES), *arguments)
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1, refused.stderr


# How many times as long as a copy of the same bytes a shape may take. bench/norm/README.md says why some are slower.
MOST = 1.15
SLOWER = {"one row": 1.25, "odd, short": 1.19}


@pytest.mark.skipif(not STORED, reason="no header/shapes.csv stored yet: make bench on a GPU writes it")
def test_nothing_large_is_far_from_a_copy():
    for path in STORED:
        rows = results.read(path, ["shape", "bytes", "times_copy", "x", "weight"])
        slow = []
        for row in rows:
            if float(row["bytes"]) > 32e6 and not float(row["times_copy"]) <= SLOWER.get(row["shape"], MOST):
                slow.append((row["shape"], row["times_copy"]))
        assert len(rows) > 20 and not slow, f"{results.shown(path)}: {slow}"
