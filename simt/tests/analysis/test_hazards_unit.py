"""The detector of hazards alone, driven by made-up events."""

import os
import pathlib
import shutil
import subprocess

import pytest

SIMT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("hazards") / "hazards_test"
    sources = [SIMT / "tests/analysis/hazards_test.cpp", *sorted((SIMT / "analysis").glob("hazards*.cpp"))]
    gxx = os.environ.get("CXX") or shutil.which("g++")
    flags = ["-std=gnu++17", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{SIMT}", f"-I{SIMT / 'include'}"]
    subprocess.run([*gxx.split(), *flags, *sources, "-o", path], check=True)
    return path


def test_the_detector_finds_what_is_not_ordered(program):
    done = subprocess.run([program], stdout=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 0, done.stdout
