"""The controls, kernels between two stages: they are checked as strictly as stages, and lie where the pages say.

Without a GPU this shows that they are right, and not what they are worth: the stages' pages say that, from their stored times.
"""

import re

import pytest
from conftest import LADDER, ROOT, program, run

pytestmark = pytest.mark.builds(f"{LADDER}/controls")

FOLDER = ROOT / LADDER / "controls"
PROGRAM = program(f"{LADDER}/controls")
STAGES = sorted(path.parent.name for path in (ROOT / LADDER).glob("[0-9]*_*/kernel.cuh"))


def listed():
    return re.findall(r'"(\d\d_\w+)"|(\w+)::stage', (FOLDER / "main.cu").read_text(encoding="utf-8"))


def checked(*options):
    result = run(PROGRAM, "--no-timing", *options)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = re.findall(r"^(\d\d_\w+) +(\w+)", result.stdout, re.MULTILINE)
    assert len(rows) == len(listed()) > 10 and {verdict for _, verdict in rows} == {"PASS"}
    return [name for name, _ in rows]


def test_every_control_is_right_on_rows_with_a_tail():
    names = checked("--rows", "3", "--cols", "1025", "--no-small")
    controls = [name for name in names if name not in STAGES]
    assert names == sorted(names, key=lambda name: name[:2]), "a control stands beside the stages that it lies between"
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(\d\d_\w+)`", page)) == set(controls), "the page explains every control"


@pytest.mark.full
def test_every_control_passes_what_a_stage_must_pass():
    checked("--rows", "64", "--cols", "8192")
