"""What simtcc is made of: it reads nvcc's command line, and has g++ and the translator make what that asks for.

simtcc             starts it, and ends it with a sentence and an exit code
command.py         what a command line asks for
options.py         nvcc's options: which there are, and which have no effect
compiler.py        objects, programs and dependencies, step by step
builds.py          what g++ is given for each kind of program
tools.py           finds g++, and runs it and other programs
messages.py        g++'s messages, in the student's words
absent.py          the parts of CUDA that the device does not have
runtime_library.py builds libsimt.a on demand
bytecode.py        keeps what Python makes of these modules
jobs.py            how many compilers may run at once
failure.py         what ends simtcc
"""

import sys
from pathlib import Path

if sys.version_info < (3, 9):  # noqa: UP036
    sys.exit(f"simtcc: python3 is {sys.version.split()[0]}, and 3.9 or newer is needed first on PATH")

VERSION = "0.1.0"  # of the CPU device alone; pyproject.toml and version.json take it from here
SIMT = Path(__file__).resolve().parent.parent
# In a checkout the headers and the runtime's sources stand beside simtcc; "make install" lays PREFIX/share/simt/simtcc
# and, as in a CUDA toolkit, PREFIX/include and PREFIX/lib64.
TOOLKIT = None if (SIMT / "Makefile").exists() else SIMT.parent.parent
INCLUDES = [TOOLKIT / "include"] if TOOLKIT else [SIMT / "include", SIMT / "extras/include"]
