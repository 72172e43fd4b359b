"""The controls, kernels between two stages: they are checked as strictly as stages, lie where the pages say, and their
page explains each. Without a GPU this shows that they are right, and not what they are worth."""

import re

import pytest
from conftest import full_but, program, run
from ladder.core import ladders

TAILS = {  # inputs that no vector and no tile divides
    "matrix": ["--rows", 3, "--cols", 1025],
    "vector": ["--n", 40963],
    "serving": ["--num-tokens", 3, "--hidden-size", 1025],
    "inference": ["--rows", 3, "--cols", 1025],
    "backward": ["--rows", 3, "--cols", 1025],
    "W1L2": ["--n", 100003],
    "W2L1": ["--n", 100003],
    "W2L3": ["--rows", 100, "--cols", 36],
}
LADDERS = [ladder for ladder in ladders.all_ladders() if (ladder.folder / "controls").is_dir()]


def passed(ladder, *options):
    """The names of the rows, none of which failed; a stage may refuse the input, a control may not, but for CUB's sum,
    which the CPU device lacks."""
    result = run(program(f"{ladder.path}/controls"), "--no-timing", *options, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = re.findall(r"^(\w+) +(PASS|FAIL|skipped)\b", result.stdout, re.MULTILINE)
    may_refuse = {stage.name for stage in ladder.stages} | {"cub_device_reduce"}
    assert rows and all(verdict == "PASS" or name in may_refuse for name, verdict in rows), result.stdout
    return [name for name, _ in rows]


@pytest.mark.builds("{ladder.path}/controls")
@pytest.mark.parametrize("ladder", full_but(LADDERS, ladders.find("matrix")), ids=lambda ladder: ladder.id)
def test_every_control_is_right_on_a_tail_and_explained(ladder):
    names = passed(ladder, "--no-small", *TAILS[ladder.id])
    if ladder.id in ("matrix", "inference"):
        assert names == sorted(names, key=lambda name: name[:2]), (
            "a control stands beside the stages between which it lies"
        )
    page = (ladder.folder / "controls/README.md").read_text(encoding="utf-8")
    explained = {
        name for cell in re.findall(r"^\| (`[^|]*)\|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    }
    assert explained == set(names) - {stage.name for stage in ladder.stages}


@pytest.mark.full
@pytest.mark.builds("{ladder.path}/controls")
@pytest.mark.parametrize(
    "ladder, given",
    [(ladders.find("matrix"), ["--rows", 64, "--cols", 8192]), (ladders.find("vector"), [])],
    ids=["matrix", "vector"],
)
def test_every_control_passes_what_a_stage_must_pass(ladder, given):
    passed(ladder, *given)
