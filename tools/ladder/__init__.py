"""The course's tools: its ladders, what is stored of them, and the jobs of the Makefile (python3 -m ladder --help)."""
