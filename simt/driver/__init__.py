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
failure.py         what ends simtcc
"""

from pathlib import Path

SIMT = Path(__file__).resolve().parent.parent
