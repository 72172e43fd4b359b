"""CUDA C++ on a CPU. This folder is laid out as a CUDA toolkit: give its path, TOOLKIT, as CUDA_HOME to other tools."""

import os
import sys
from pathlib import Path

TOOLKIT = Path(__file__).resolve().parent


def simtcc():
    """The command simtcc, which takes nvcc's options."""
    _run("simtcc")


def analyze():
    """The command simt-analyze, which builds and runs a program and reports what its kernels do to memory."""
    _run("analyze")


def _run(script):
    os.execv(sys.executable, [sys.executable, str(TOOLKIT / "share/simt" / script), *sys.argv[1:]])
