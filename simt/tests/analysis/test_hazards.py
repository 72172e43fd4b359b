"""Programs with one known fault each, and programs without: what the analysis says about them.

faults/NAME.cu carries a line `// hazard: KIND SPACE`, and `// fault: first`, `// fault: second` where the hazard's two
accesses stand; `// detail: TEXT` is what the report calls it. Nothing else may be reported. clean/NAME.cu must give no hazard at all.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import full_but

HERE = pathlib.Path(__file__).resolve().parent
SIMT = HERE.parents[1]
sys.path.insert(0, str(SIMT))

from report import model

ORDERS = ["forward", "reversed"]
FAULTS = sorted((HERE / "faults").glob("*.cu"))
CLEAN = sorted((HERE / "clean").glob("*.cu"))

QUICK_CLEAN = [
    HERE / "clean" / f"{name}.cu" for name in ("tree_reduction", "block_pipeline", "last_block", "dependent_launches")
]


def name(path):
    return path.stem


def expected_of(source):
    text = source.read_text()
    kind, space = re.search(r"^// hazard: (\w+) ?(\w*)$", text, re.MULTILINE).groups()
    lines = {}
    for number, line in enumerate(text.splitlines(), 1):
        for end in re.findall(r"first|second", line.partition("// fault:")[2]):
            lines[end] = number
    assert "first" in lines, f"{source.name} does not say where its fault is"
    return kind, space or None, frozenset(lines.values())


def first_of_each_kind():
    """One fault of each kind and space, and one between launches."""
    between_launches = HERE / "faults/dependent_two_launches_back.cu"
    return {*{expected_of(source)[:2]: source for source in reversed(FAULTS)}.values(), between_launches}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """built(source) compiles it once for the analysis and returns the program."""
    folder = tmp_path_factory.mktemp("hazards")

    def build(source):
        program = folder / source.stem
        if not program.exists():
            subprocess.run([SIMT / "simtcc", "--analyze", source, "-o", program], check=True)
        return program

    return build


def analyze(program, order, expected_code=0):
    """The hazards of a run: [(kind, space or None, {lines})], and the dump."""
    dump = program.with_suffix(".json")
    environment = {**os.environ, "SIMT_ANALYSIS": str(dump), "SIMT_ORDER": order, "SIMT_TIMEOUT": "2"}
    done = subprocess.run([program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == expected_code, done.stdout.decode()
    raw = json.loads(dump.read_text())
    found = []
    for hazard in raw["hazards"]:
        ends = [end for end in (hazard["first"], hazard["second"]) if end]
        found.append((hazard["what"], hazard["space"], frozenset(end["line"] for end in ends)))
    return found, raw


@pytest.mark.parametrize("order", full_but(ORDERS, "forward"))
@pytest.mark.parametrize("source", full_but(FAULTS, *first_of_each_kind()), ids=name)
def test_a_fault_is_found_where_it_is(built, source, order):
    found, raw = analyze(built(source), order)
    assert expected_of(source) in found, raw["hazards"]
    kind, space, lines = expected_of(source)
    for other_kind, other_space, other_lines in found:
        assert (other_kind, other_space) == (kind, space) and other_lines <= lines, raw["hazards"]
    details = {hazard.detail for hazard in model.read(raw).hazards}
    assert {re.search("// detail: (.*)|$", source.read_text())[1]} <= details | {None}
    assert all(hazard["sentence"] and hazard["kernel"] and hazard["count"] > 0 for hazard in raw["hazards"])


@pytest.mark.parametrize("order", full_but(ORDERS, "reversed"))
@pytest.mark.parametrize("source", full_but(CLEAN, *QUICK_CLEAN), ids=name)
def test_a_right_program_gives_no_alarm(built, source, order):
    _, raw = analyze(built(source), order)
    assert raw["hazards"] == [] and raw["error"] is None
    assert raw["kernels"] and all(kernel["sites"] for kernel in raw["kernels"])


def test_there_are_faults_and_right_programs_enough():
    assert len(FAULTS) >= 20 and len(CLEAN) >= 15
