"""The header on shapes outside the peers' tables: the program of bench/shapes, and what it stored."""

import os
import sys

import pytest

from conftest import ROOT, make, run

sys.path.insert(0, str(ROOT / "scripts"))

import results  # noqa: E402

SHAPES = "bench/shapes"
STORED = sorted((ROOT / "profiling_results").glob(f"*/{results.SHAPES_CSV}"))


@pytest.fixture(scope="module")
def program():
    made = make("BACKEND=cpu", f"{SHAPES}/program")
    assert made.returncode == 0, made.stdout + made.stderr
    return ROOT / "build/cpu" / SHAPES / "shapes"


def test_answers_without_a_gpu(program, tmp_path):
    result = run(program, "--csv", tmp_path / "times.csv")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count(" right\n") > 25 and "nothing was timed" in result.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--iterations", "0"], ["--csv", "/no/such/folder/times.csv"]])
def test_bad_command_lines(program, arguments):
    refused = run(program, *arguments)
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1, refused.stderr


@pytest.mark.skipif(not STORED, reason="no header_shapes.csv stored yet: make bench on a GPU writes it")
def test_nothing_large_is_far_from_a_copy():
    for path in STORED:
        rows = results.read(path, ["shape", "bytes", "times_copy"])
        slow = [row["shape"] for row in rows if float(row["bytes"]) > 32e6 and not float(row["times_copy"]) <= 1.15]
        assert len(rows) > 20 and not slow, f"{os.path.relpath(path, ROOT)}: {slow}"
