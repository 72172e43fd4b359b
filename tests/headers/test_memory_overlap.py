"""Which tensors the two headers call overlapping: include/memory_overlap.cuh beside the tensors' bytes."""

import re
import shutil

import pytest
from conftest import ROOT, full_but, run

SOURCE = ROOT / "tests/headers/memory_overlap.cpp"
HEADER = ROOT / "include/memory_overlap.cuh"


def outcome(folder, header):
    (folder / "tests/headers").mkdir(parents=True)
    (folder / "include").mkdir()
    shutil.copy(SOURCE, folder / "tests/headers")
    (folder / "include" / HEADER.name).write_text(header, encoding="utf-8")
    options = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    made = run("g++", *options, folder / "tests/headers" / SOURCE.name, "-o", folder / "program")
    assert made.returncode == 0, made.stderr
    return run(folder / "program")


def test_what_overlaps_is_found_and_what_does_not_is_accepted(tmp_path):
    result = outcome(tmp_path, HEADER.read_text(encoding="utf-8"))
    assert result.returncode == 0 and len(result.stdout.splitlines()) == 6, result.stdout + result.stderr


# name: (what is replaced, by what)
WRONG_RULES = {
    "low": (r"distance < low\.size \|\| ", ""),
    "high": (r" \|\| distance \+ high\.size > period", ""),
    "direction": (r"if \(stride < 0\) begin \+= span;", ""),
    "gaps": (r"may_meet\(\*this, other\) && ", ""),
    "blocks": (r" &&\s+may_meet\(joined\(\), other\.joined\(\)\)", ""),
}


@pytest.mark.parametrize("name", full_but(WRONG_RULES, "low"))
def test_a_wrong_rule_is_rejected(tmp_path, name):
    text, count = re.subn(*WRONG_RULES[name], HEADER.read_text(encoding="utf-8"))
    assert count == 1
    assert outcome(tmp_path, text).returncode == 1
