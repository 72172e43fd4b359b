"""The course's tools: its ladders, what is stored of them, and the jobs of the Makefile (python3 -m ladder --help)."""

import sys

if sys.version_info < (3, 9):  # noqa: UP036
    sys.exit(f"python3 is {sys.version.split()[0]}, and the course's tools need 3.9 or newer first on PATH")
