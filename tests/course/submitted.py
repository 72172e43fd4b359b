"""Solutions as students write them, wrong and right: edits of the stage's own source, in submissions/<ladder>.txt.

    == W1L1/2: a title
    -what stands in the stage's source
    +what takes its place
    > a part of what the grader must say, or "passed"

A line `-` after a `+` begins another edit. Each text stands in the source at least once, and all its places are changed.
Lines `+` without `-` are the whole file, from the namespace's first line to the declaration of the stage; such a
submission may be one of several exercises, whose names stand one after the other.
"""

import functools
import pathlib
import re
from dataclasses import dataclass, field

from ladder.grader import exercises

LADDERS = exercises.COURSE
FOLDER = pathlib.Path(__file__).parent / "submissions"


@dataclass
class Submission:
    asked: str  # S= of the exercise
    name: str
    edits: list = field(default_factory=list)  # [old, new]
    said: list = field(default_factory=list)

    @property
    def passes(self):
        return self.said == ["passed"]


def read(path):
    found, last = [], ""
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, text = line[:1], line[1:]
        if line.startswith("== "):
            names, _, title = line[3:].partition(": ")
            of_all = [[], []]  # edits and sentences
            found += [Submission(asked, title, *of_all) for asked in names.split()]
        elif kind == ">":
            found[-1].said.append(text.strip())
        elif kind == "+" and last not in ("+", "-"):
            found[-1].edits.append(["", text])
        elif kind == "-" and last != "-":
            found[-1].edits.append([text, None])
        elif kind == "-":
            found[-1].edits[-1][0] += "\n" + text
        elif kind == "+":
            edit = found[-1].edits[-1]
            edit[1] = text if edit[1] is None else edit[1] + "\n" + text
        elif line:
            raise ValueError(f"{path.name}: {line}")
        last = kind
    return found


def of(*ladders):
    return [one for name in ladders for one in read(FOLDER / f"{name}.txt")]


def all_of():
    """Those that are graded and break no rule of the text."""
    return of(*LADDERS, "one_thread", "unusual")


exercise_of = functools.cache(exercises.find)


def source(exercise):
    return exercise.stage.source.read_text(encoding="utf-8")


def edited(submission):
    """The stage's source with the edits."""
    text = source(exercise_of(submission.asked))
    for old, new in submission.edits:
        if not old:
            begin, end = re.search(r"^namespace .*\n", text, re.M).end(), text.index("inline const Stage")
            text = f"{text[:begin]}\n{new}\n\n" + re.sub(r"\blaunch<[^<>]*>", "launch", text[end:])
            continue
        assert old in text, f"{submission.asked}, {submission.name}: the solution has no {old!r}"
        text = text.replace(old, new)
    return text
