"""Writes the tree that students get: all that git knows of this one, without the solutions of the exercises.

In OUT, which must be new or empty, a stage with an exercise has its skeleton in place of its kernel, and
exercises/left_out.txt names it. The ladders' programs skip such a stage, make solution says that there is none, and all
other jobs run: the stored counts, by which the grader judges, are there, without the solutions' lines. The exercises'
pages have no cuts, and the other pages none of the blocks of code that hold a line of a solution. TEACHING.md, the tests
and the history of git stay here.

What is close to a solution and stays: kernels of the quiz, which have one fault each, controls, headers, stages without an
exercise, and skeletons of later exercises. The command names those that show half of a solution or more, so that a
teacher can choose other exercises.
"""

import csv
import io
import os
import pathlib
import re
import shutil
import sys

from ..core import ladders, machine, results
from ..core.ladders import LEFT_OUT, ROOT, BadCommand, Unusable
from . import exercises

STAYS_HERE = ("tests/", ".github/", ".ci/", "TEACHING.md")
MUCH, SEVERAL = 0.5, 3  # of the lines of a solution
SHORTEST = 20  # characters; shorter lines, such as braces and float sum = 0.0f, stand in any kernel
FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(?:#[^)]*)?\)")
LEAD = re.compile(rf"^(?:\| |- ){LINK.pattern}.*\n", re.M)  # a table's row or a list's item that leads to a page
LEFT_CODE = "*Here stands code of a solution, which this tree leaves out.*"
LEFT_LINE = "(an exercise)"


def arguments(parser):
    parser.add_argument("out", help="the folder to write, which is new or empty")
    parser.add_argument(
        "--exercise",
        action="append",
        metavar="S",
        help="leave out this one's solution: 05, W1L1/2, ...; by default all",
    )


def bare(line):
    """A line of code without its comment and blanks, and without the escapes of a table."""
    return re.sub(r"\s+", "", re.sub(r"//.*", "", line.replace("\\|", "|")))


def lines_of(text):
    return {line for line in map(bare, text.splitlines()) if len(line) >= SHORTEST}


def solution(exercise):
    """The lines that the stage has and the skeleton lacks."""
    return lines_of(exercise.stage.source.read_text(encoding="utf-8")) - lines_of(exercise.skeleton([]))


def tracked():
    """The files that git knows, from the root."""
    done = machine.run("git", "ls-files", "-z")
    names = done.stdout.decode().split("\0")[:-1] if done.returncode == 0 else []
    if not names:
        raise Unusable("git does not know the files of this tree; make student-tree needs a clone of the repository")
    return [name for name in names if (ROOT / name).exists() and not name.startswith(STAYS_HERE)]


def page(text, lines, folder, kept):
    """A page without the blocks of code that hold one of the lines, and without links to what is not kept."""

    def block(fence):
        return LEFT_CODE if lines & lines_of(fence[1]) else fence[0]

    def is_gone(found):
        target = (ROOT / folder / found[2]).resolve()
        return ROOT in target.parents and target.exists() and not kept(target.relative_to(ROOT))

    text = LEAD.sub(lambda found: "" if is_gone(found) else found[0], FENCE.sub(block, text))
    return LINK.sub(lambda found: found[1] if is_gone(found) else found[0], text)


def counts(text, lines, sources):
    """A CSV of counts without the lines in its column source; sources: the files that they stand in."""
    rows = list(csv.DictReader(io.StringIO(text)))
    for row in rows:
        if row["file"] in sources and bare(row["source"]) in lines:
            row["source"] = LEFT_LINE
    written = io.StringIO()
    writer = csv.DictWriter(written, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()


def skeleton(exercise):
    """What stands in the place of the kernel. The first comment is one that exercises.py leaves out of the student's file."""
    return exercise.skeleton([f"make exercise S={exercise.asked} writes this to my/, with the task."])


def changed(names, course):
    """{file: its text} of those that are not copied as they are, where the solutions of these exercises are left out."""
    lines = set().union(*map(solution, course))
    sources = {results.shown(exercise.stage.source) for exercise in course}
    there = {pathlib.PurePath(name) for name in names}
    folders = {parent for path in there for parent in path.parents}
    found = {}
    for name in names:
        path = ROOT / name
        if path.is_symlink():
            continue
        if path.suffix == ".md":
            text = path.read_text(encoding="utf-8")
            found[name] = page(text, lines, path.parent.relative_to(ROOT), lambda one: one in there | folders)
        elif path.suffix == ".csv" and results.store() / results.CPU_DEVICE in path.parents:
            text = path.read_text(encoding="utf-8")
            found[name] = counts(text, lines, sources) if ",source," in text.partition("\n")[0] else text
    for exercise in course:
        found[results.shown(exercise.stage.source)] = skeleton(exercise)
        name = results.shown(exercise.page)
        text = exercises.DETAILS.sub(
            lambda part: part[0] if part[1] == "Hint" else "", exercise.page.read_text("utf-8")
        )
        found[name] = text.rstrip() + "\n"
    found[LEFT_OUT] = "".join(f"{exercise.id}\n" for exercise in course)
    return found


def near(names, texts, course):
    """[(exercise, file, how many lines of its solution the file shows, of how many)] of those that show much, most first."""
    found, solved = [], {exercise.id: solution(exercise) for exercise in course}
    for name in dict.fromkeys([*names, *texts]):
        if pathlib.PurePath(name).suffix in (".cu", ".cuh", ".h", ".cpp", ".py", ".md"):
            there = lines_of(texts[name] if name in texts else (ROOT / name).read_text(encoding="utf-8"))
            for exercise in course:
                lines = solved[exercise.id]
                if len(lines & there) >= max(SEVERAL, MUCH * len(lines)):
                    found.append((exercise, name, len(lines & there), len(lines)))
    return sorted(found, key=lambda one: -one[2] / one[3])


def run(given):
    if not given.out:
        raise BadCommand("say OUT=folder: a new or empty folder for the tree that students get")
    out = pathlib.Path(given.out).absolute()
    if ladders.left_out(ROOT):
        raise Unusable("this is the tree that students get already; the instructor's tree writes it")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadCommand(f"OUT={given.out} is there and not empty; give a new or an empty folder")
    names = tracked()
    chosen = [exercises.find(one) for one in given.exercise or ()]
    course = [exercise for exercise in exercises.course() if not chosen or exercise in chosen]
    texts = changed(names, course)
    for name in dict.fromkeys([*names, *texts]):
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, target, follow_symlinks=False)
        if name in texts:
            target.write_text(texts[name], encoding="utf-8")
    # The tables of accesses show the sources of the counts.
    made = machine.run(
        *(sys.executable, "-B", "-m", "ladder", "readme"), cwd=out, env={**os.environ, "PYTHONPATH": str(out / "tools")}
    )
    if made.returncode:
        raise Unusable(f"the pages of {given.out} could not be made: {made.stdout.decode(errors='replace').strip()}")
    count = texts[LEFT_OUT].count("\n")
    print(
        f"student-tree: {results.shown(out)}: {count} exercises without their solutions; pack it, or make it a repository"
    )
    shown = near(names, texts, course)
    if shown:
        print("These files stay, and show half of a solution or more:")
    for exercise, name, there, of in shown:
        print(f"  {there:>2} of {of:>2} lines  {exercise.asked:<18} {name}")
