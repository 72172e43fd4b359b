"""The tensor-parallel ladder: what its ranks send to each other is what the page on scaling derives."""

import pytest
from conftest import BACKEND, ROOT, make, run
from fakes import read
from ladder.core import ladders

pytestmark = pytest.mark.full

LADDER = ladders.find("tensor_parallel")
ROWS, COLS = 8, 256
SENT = {  # the stage, where it stores into a peer's memory, and the bytes that a rank sends of a partial result's M
    "05_data_is_flag": (["Word(reinterpret_cast<uint32_t*>(to)[i]).store"], lambda ranks: ranks - 1),
    "06_two_shots": (["= partial.p[p];", "= y.p[p];"], lambda ranks: 2 * (ranks - 1) / ranks),
}


@pytest.fixture(scope="module")
def program():
    built = make("BACKEND=cpu", f"{LADDER.path}/analyzed", timeout=900)
    assert built.returncode == 0, built.stdout + built.stderr
    return ROOT / "build/analyze" / LADDER.path / LADDER.program


def test_more_ranks_than_a_host_has_are_a_bad_command_line(program):
    result = run(program, "--ranks", 9)
    assert result.returncode == 2 and "--ranks '9': give a whole number from 2 to 8" in result.stderr


@pytest.mark.skipif(BACKEND != "cpu", reason="the CPU device counts")
@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("stage", SENT)
def test_ranks_send_what_the_page_derives(program, tmp_path, stage, ranks):
    given = ["--stage", stage, "--profile", "--rows", ROWS, "--cols", COLS, "--ranks", ranks]
    run(ROOT / "simt/analyze", "--program", program, "--csv", tmp_path / "counts.csv", "--", *given, cwd=ROOT)
    lines, sent = SENT[stage]
    stores = [
        int(row["bytes"])
        for row in read(tmp_path / "counts.csv")
        if row["file"] and row["what"].startswith("global store") and any(line in row["source"] for line in lines)
    ]
    assert len(stores) == len(lines)
    assert sum(stores) == ranks * sent(ranks) * 2 * ROWS * COLS
