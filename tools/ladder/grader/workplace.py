"""Where a student's file is built: build/grade/<ladder>/<stage>/, a folder with a program as any other."""

import contextlib
import os
import re

from ..core import machine, results
from . import exercises, programs, sandbox
from .exercises import ROOT

COMPILING = 60  # seconds of computing that each of the compiler's programs may take
LAUNCH = [
    "namespace ladder::judged {",
    "template <class Op>",
    "static void of(const Stage<Op>& stage, const Arguments& arguments, cudaStream_t stream) {",
    "  call(Op{}, stage.launch, arguments, stream);",
    "}",
    '__attribute__((visibility("default"))) void launch(const Arguments& arguments, cudaStream_t stream) {',
]


class Workplace:
    """build/grade/<ladder>/<stage>/: a leaf folder as any other, whose main.cu includes the student's file."""

    def __init__(self, exercise, file, name=""):
        self.exercise, self.file = exercise, file
        self.path = ROOT / "build/grade" / (name or exercise.id)
        self.path.mkdir(parents=True, exist_ok=True)
        self.write("main.cu", self.main())
        self.write(self.declared, [exercise.skeleton([])])
        self.write("judge.cu", self.judge())
        (self.path / "student").mkdir(exist_ok=True)
        self.write("student/student.cu", self.student())
        self.write("Makefile", self.makefile())

    @classmethod
    @contextlib.contextmanager
    def of(cls, exercise, file, name=""):
        """The workplace, for one grader at a time."""
        with exercises.locked(ROOT / "build/grade" / (name or exercise.id) / ".lock"):
            yield cls(exercise, file, name)

    def makefile(self):
        of = f"override LADDER := {self.exercise.stage.ladder.path}"  # which is not above this folder
        rules = f"include {os.path.relpath(ROOT, self.path)}/mk/grade.mk"
        return ["NAME := graded", "SOURCES := main.cu", of, rules]

    @property
    def students(self):
        """The student's files, which may lie anywhere."""
        return [self.file.resolve()]

    @property
    def inside(self):
        """What of the folders that are hidden in the sandbox its programs read."""
        return [self.path, *(file.parent.parent for file in self.objects), *self.students]

    @property
    def space(self):
        """The namespace of the stage."""
        one = self.exercise.stage
        return f"ladder::{one.ladder.namespace}::{one.namespace}"

    @property
    def declared(self):
        """The skeleton: what the judge knows of the stage is its name and which inputs it accepts."""
        return f"declared{self.exercise.stage.source.suffix}"

    def main(self):
        """The program that make try starts. A stage that is one file brings its own, LADDER_MAIN, unless it is told that
        others are there."""
        return [
            "#define LADDER_ALL_STAGES",
            f'#include "{results.shown(self.file)}"',
            "",
            f"int main(int argc, char** argv) {{ return ladder::run_all({{{self.space}::stage}}, argc, argv); }}",
        ]

    def judge(self):
        return [
            "#define LADDER_ALL_STAGES",
            '#include "common/judge/judge.h"',
            f'#include "{self.declared}"',
            "",
            f"int main(int argc, char** argv) {{ return ladder::judge::run({self.space}::stage, argc, argv); }}",
        ]

    def student(self):
        """The student's file as an object of its own, with one function that others see."""
        return [
            "#define LADDER_ALL_STAGES",
            f'#include "{results.shown(self.file)}"',
            *LAUNCH,
            f"  of({self.space}::stage, arguments, stream);",
            "}",
            "}",
        ]

    def write(self, name, lines):
        text = "\n".join([*lines, ""])
        path = self.path / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

    def make(self, backend, *targets, waiting=None, before=()):
        """(exit code, what make said); before: the start of the command"""
        words = ["--no-print-directory", "-C", self.path, f"-j{machine.cores()}", f"BACKEND={backend}", *targets]
        return programs.make(waiting or programs.Waiting(), *words, before=before)

    def prepare(self, waiting=None):
        return self.make("cpu", "judge", "prepared", waiting=waiting)

    def compile(self, waiting=None):
        """(exit code, what make said): first the judge, then the student's file, in the sandbox, which may write what make
        builds in this folder."""
        code, output = self.prepare(waiting)
        if code:
            return code, output
        folders = [file.parent for file in self.objects]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        before = sandbox.command([], COMPILING, folders, self.inside)
        return self.make("cpu", "LIBS=ready", "student", waiting=waiting, before=before)

    def link(self, waiting=None):
        return self.make("cpu", "LIBS=ready", "runner", waiting=waiting)

    def said_of_file(self, output):
        """What the compiler said of the file when it was compiled last, which may be longer ago than this output."""
        path = self.path / "compiler.txt"
        if re.search(r"^\s+compile ", output, re.M):
            path.write_text(output, encoding="utf-8")
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def built(self, kind):
        """A program: the judge, its runner, the runner that counts, or the one with everything, for cpu or cuda."""
        backend, name = {
            "judge": ("cpu", "judge"),
            "runner": ("cpu", "runner"),
            "counts": ("analyze", "runner"),
        }.get(kind, (kind, "graded"))
        return ROOT / "build" / backend / self.path.relative_to(ROOT) / name

    @property
    def objects(self):
        """The student's, of both runners, in folders that hold nothing else."""
        return [self.built(kind).parent / "student/student.cu.o" for kind in ("runner", "counts")]

    @property
    def command(self):
        """What the student types to see the kernel line by line."""
        return f"make analyze S={results.shown(self.file)}"
