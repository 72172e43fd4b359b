"""The workspaces that the package gives the streams of long rows: python/binding/workspace.cu without Python."""

import re

import pytest
from conftest import ROOT, run

FOLDER = ROOT / "python/binding"
libinfo = pytest.importorskip("tvm_ffi.libinfo")


def outcome(folder, text):
    (folder / "workspace.cu").write_text(text, encoding="utf-8")
    of_ffi = libinfo.find_include_path(), libinfo.find_dlpack_include_path()
    includes = [f"-I{path}" for path in (folder, FOLDER, ROOT / "include", *of_ffi)]
    source = ROOT / "tests/python/workspaces.cu"
    made = run(ROOT / "simt/simtcc", "-std=c++17", "-O0", *includes, source, "-o", folder / "program", timeout=600)
    assert made.returncode == 0, made.stderr
    return run(folder / "program")


@pytest.mark.full
def test_streams_that_are_gone_leave_their_workspaces_to_others(tmp_path):
    result = outcome(tmp_path, (FOLDER / "workspace.cu").read_text(encoding="utf-8"))
    assert result.returncode == 0, result.stdout + result.stderr
    first, second = map(int, re.findall(r"^(\d+) workspaces", result.stdout, re.MULTILINE))
    assert 2 <= first <= 33 and 1 <= second <= 50, result.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    "pattern, replacement, said",
    [
        (r"kMostStreams = 32", "kMostStreams = 10000", "301 workspaces"),
        (r"\+\+entry\.calls;", "", "wrong: no other call has it"),
    ],
    ids=["leaks", "taken from a call"],
)
def test_wrong_workspaces_are_rejected(tmp_path, pattern, replacement, said):
    text, count = re.subn(pattern, replacement, (FOLDER / "workspace.cu").read_text(encoding="utf-8"))
    assert count == 1
    assert said in outcome(tmp_path, text).stdout
