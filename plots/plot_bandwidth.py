#!/usr/bin/env python3
"""Draws the stored results: python3 -m ladder plot, which --help explains, with tools/ on PYTHONPATH."""

import os
import pathlib
import sys

tools = pathlib.Path(__file__).resolve().parent.parent / "tools"
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(tools), os.environ.get("PYTHONPATH")]))
os.execv(sys.executable, [sys.executable, "-m", "ladder", "plot", *sys.argv[1:]])
