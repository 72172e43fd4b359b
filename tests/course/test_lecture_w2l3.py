"""The lecture on the transpose: what its page says of the two halves of v0, what its stages refuse, and its controls."""

import json
import re

import pytest
from conftest import BACKEND, ROOT, full_but, program, run

LESSON = "lectures/W2L3_transpose"
CONTROLS = f"{LESSON}/controls"
SMALL = ("--rows", 100, "--cols", 36, "--no-timing")


def verdicts(*options, **environment):
    """{stage: verdict} of a run that must end well, and what it printed."""
    result = run(program(LESSON), *options, **environment)
    assert result.returncode == 0, result.stdout + result.stderr
    return dict(re.findall(r"^(\w*v\d\w*) +(PASS|FAIL|skipped) ", result.stdout, re.MULTILINE)), result.stdout


@pytest.mark.builds(LESSON)
@pytest.mark.parametrize("order", full_but(["forward", "reversed", "7"], "reversed"))
def test_stages_are_right_in_any_order_of_threads_and_only_a_square_is_turned_in_place(order):
    found, said = verdicts(*SMALL, SIMT_ORDER=order)
    stages = [f"transpose_v{number}" for number in range(9)]
    assert found == {**dict.fromkeys(stages, "PASS"), "transpose_v8": "skipped"} or BACKEND != "cpu"
    assert "transpose_v8 skipped: 100 x 36: only a square matrix keeps its shape in place" in " ".join(said.split())
    found, said = verdicts(
        "--rows", 97, "--cols", 97, "--stage", "transpose_v0,transpose_v8", "--no-small", "--no-timing"
    )
    assert found == {"transpose_v0": "PASS", "transpose_v8": "PASS"}


@pytest.mark.full
@pytest.mark.builds(CONTROLS)
def test_the_other_half_of_v0_has_its_counts_exchanged(tmp_path):
    counted = tmp_path / "counted.json"
    given = ["--stage", "v0_strided_reads", "--rows", 64, "--cols", 96, "--no-small"]
    result = run(ROOT / "simt/analyze", ROOT / LESSON / "controls/main.cu", "--json", counted, "--", *given)
    assert result.returncode == 0, result.stdout + result.stderr
    (kernel,) = json.loads(counted.read_text())["kernels"]
    each = {
        access["kind"]: access["sectors"] / access["requests"]
        for access in kernel["accesses"]
        if access["space"] == "global"
    }
    assert each == {"load": 32, "store": 4}
