"""Where a student's file is built: build/grade/<ladder>/<stage>/, a folder with a program as any other."""

import contextlib
import os
import re

from ..core import machine, results
from . import exercises, programs
from .exercises import ROOT

WARNINGS = "-Xcompiler -Wconversion -Xcompiler -Wsign-conversion"  # for indices that are too narrow


class Workplace:
    """build/grade/<ladder>/<stage>/: a leaf folder as any other, whose main.cu includes the student's file."""

    def __init__(self, exercise, file, name=""):
        self.exercise, self.file = exercise, file
        self.path = ROOT / "build/grade" / (name or exercise.id)
        self.path.mkdir(parents=True, exist_ok=True)
        self.write("main.cu", self.main())
        self.write("Makefile", self.makefile())

    @classmethod
    @contextlib.contextmanager
    def of(cls, exercise, file, name=""):
        """The workplace, for one grader at a time."""
        with exercises.locked(ROOT / "build/grade" / (name or exercise.id) / ".lock"):
            yield cls(exercise, file, name)

    def makefile(self):
        of = f"override LADDER := {self.exercise.stage.ladder.path}"  # which is not above this folder
        rules = f"include {os.path.relpath(ROOT, self.path)}/mk/stage.mk"
        return [
            "NAME := graded",
            "SOURCES := main.cu",
            of,
            rules,
            f"CUFLAGS += $(if $(filter cpu,$(BACKEND)),{WARNINGS})",
        ]

    def main(self):
        """The program's lines. A stage that is one file brings its own, LADDER_MAIN, unless it is told that others are there."""
        one = self.exercise.stage
        where = f"ladder::{one.ladder.namespace}::{one.namespace}::stage"
        return [
            "#define LADDER_ALL_STAGES",
            f'#include "{results.shown(self.file)}"',
            "",
            f"int main(int argc, char** argv) {{ return ladder::run_all({{{where}}}, argc, argv); }}",
        ]

    def write(self, name, lines):
        text = "\n".join([*lines, ""])
        path = self.path / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

    def make(self, backend, *targets, waiting=None):
        """(exit code, what make said)"""
        words = ["--no-print-directory", "-C", self.path, f"-j{machine.cores()}", f"BACKEND={backend}", *targets]
        return programs.make(waiting or programs.Waiting(), *words)

    def said_of_file(self, output):
        """What the compiler said of the file when it was compiled last, which may be longer ago than this output."""
        path = self.path / "compiler.txt"
        if re.search(r"^\s+compile ", output, re.M):
            path.write_text(output, encoding="utf-8")
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def built(self, kind):
        return ROOT / "build" / kind / self.path.relative_to(ROOT) / "graded"

    @property
    def command(self):
        """What the student types to see the kernel line by line."""
        return f"make analyze S={results.shown(self.file)}"
