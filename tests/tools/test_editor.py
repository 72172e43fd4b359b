"""compile_commands.json: with it, clang reads kernels, which only the CPU device's translator makes C++, without errors."""

import shutil
import subprocess

import pytest
from conftest import LADDER, ROOT
from ladder.core import editor

COMMANDS = {command["file"]: command["arguments"] for command in editor.commands()}
FILES = [f"{LADDER}/05_warp_shuffle/kernel.cuh", "lectures/W2L1_reduction/reduction5.cu", "common/table.cpp"]


def test_every_kernel_has_a_command():
    kernels = {str(path.relative_to(ROOT)) for path in (ROOT / LADDER).glob("*/kernel.cuh")}
    assert kernels and kernels <= set(COMMANDS)


@pytest.mark.skipif(not shutil.which("clang++"), reason="no clang on this machine")
@pytest.mark.parametrize("file", FILES)
def test_clang_reads_it_without_errors(file):
    read = subprocess.run([*COMMANDS[file], "-fsyntax-only"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert read.returncode == 0, read.stderr
