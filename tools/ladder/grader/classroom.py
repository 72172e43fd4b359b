"""Grades a class: every exercise that students have handed in, into a gradebook.

SUBMISSIONS holds a folder per student, named as the gradebook shall name the student. Each holds files as my/ has them:
05_warp_shuffle.cuh, W1L1/vector_add2.cu; they may lie in a folder my/, or all side by side. In RESULTS, build/class by default:

  gradebook.csv       a row per student: the points of each exercise, and their sum
  grades.csv          a row per file: its points for the build, the values, the hazards and the idea, and the first sentence
  similar.csv         files of one exercise that are alike, the stage's own among them, for a person to look at
  students/NAME.md    for each student what make grade says
  junit.xml, gradescope/NAME.json, classroom/NAME.json    the same for other programs

A file gets 20 points if it keeps the rules and builds, 40 for right values, 20 if there is no hazard either, and then 20
for the idea, in parts if it consists of several; none for a kernel that few threads work in, which has no conflicts and no
barriers for that reason. The same file always gets the same inputs and the same points. What has
been graded is not graded again until it changes, so an interrupted job goes on where it was.
"""

import concurrent.futures
import itertools
import json
import pathlib
import queue
import re
import shutil
import sys
import xml.etree.ElementTree as xml

from ..core import machine, results
from ..core.ladders import BadCommand, Unusable
from . import exercises, grade, ideas, rules, sandbox
from .exercises import ROOT

POINTS = {"build": 20, "values": 40, "hazards": 20, "idea": 20}
MOST = sum(POINTS.values())
LARGEST = 2**18  # bytes of a file
SHINGLE, ALIKE, LEAST_SHINGLES = 10, 0.9, 20
WORD = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")
KEPT = re.compile(
    r"__\w+|\w*Idx|\w*Dim|if|else|for|while|return|const\w*|static|template|float\d?|int\w*|uint\w*|double|void"
)


def arguments(parser):
    parser.add_argument("submissions", help="a folder with a folder per student")
    parser.add_argument("--results", default="", metavar="DIRECTORY", help="instead of build/class")
    parser.add_argument(
        "--exercise", action="append", metavar="S", help="05, W1L1/2, ...; by default all that there are"
    )
    parser.add_argument("--jobs", type=int, default=max(1, machine.cores() // 2), help="files at once (%(default)s)")
    parser.add_argument("--again", action="store_true", help="grade what has been graded, too")


def points_of(exercise, report):
    """The points of a Report by what they are given for."""
    given = dict.fromkeys(POINTS, 0)
    if report.rules or report.build:
        return given
    given["build"] = POINTS["build"]
    if report.is_right:
        given["values"] = POINTS["values"]
        if not report.hazards and not report.values:
            given["hazards"] = POINTS["hazards"]
            parts = max(1, len(ideas.wishes(exercise)))
            met = 0 if report.counts and ideas.below_floor(exercise, report.counts) else parts - len(report.ideas)
            given["idea"] = round(POINTS["idea"] * max(0, met) / parts)
    return given


def handed_in(submissions, wanted):
    """[(student, exercise, file)], in the order of names and of the course."""
    if not submissions:
        raise BadCommand("say SUBMISSIONS=folder: a folder that holds a folder per student")
    submissions = pathlib.Path(submissions)
    if not submissions.is_dir():
        raise BadCommand(f"SUBMISSIONS={submissions}: there is no such folder; it holds a folder per student")
    found = []
    for folder in sorted(path for path in submissions.iterdir() if path.is_dir()):
        for exercise in wanted:
            relative = exercise.file.relative_to(exercises.MINE)
            places = [folder / relative, folder / "my" / relative, folder / relative.name]
            found += [(folder.name, exercise, path) for path in places if path.is_symlink() or path.is_file()][:1]
    if not found:
        raise BadCommand(
            f"SUBMISSIONS={submissions}: no folder in it has a file of an exercise, such as 05_warp_shuffle.cuh"
        )
    return found


def unreadable(file):
    """Why a file is not graded; "" if it is."""
    if file.is_symlink():
        return "the file is a link; hand in the file itself"
    return f"the file is larger than {LARGEST >> 10} KB" if file.stat().st_size > LARGEST else ""


def graded(exercise, file, slot):
    """What is remembered of a file: its points and the sentences. Whatever happens in it, the next file is graded."""
    why = unreadable(file)
    if why:
        return {"points": dict.fromkeys(POINTS, 0), "said": [why], "kind": "it cannot be read"}
    name = f"class/{slot}/{exercise.id}"
    copy = ROOT / "build/grade" / name / "submitted" / exercise.file.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, copy)
    try:
        report = grade.grade(exercise, copy, name)
    except Exception as error:  # of the grader, which the teacher must see and no student pays for
        return {"points": None, "said": [f"the grader failed: {type(error).__name__}: {error}"], "kind": "not graded"}
    if words(exercises.text_of(copy)) == words(grade.skeleton(exercise)):  # whose values may be right
        said = ["the file is the skeleton as make exercise writes it", *report.lines]
        return {"points": dict.fromkeys(POINTS, 0), "said": said, "kind": "not begun"}
    kind = "passed" if report.passed else grade.kind_of(report)
    return {"points": points_of(exercise, report), "said": report.lines, "kind": kind}


def grade_all(files, known, jobs, again, store):
    """Grades what is new or has changed, several files at once, and stores after each."""
    slots = queue.SimpleQueue()
    for slot in range(jobs):
        slots.put(slot)

    def one(student, exercise, file):
        slot = slots.get()
        try:
            return graded(exercise, file, slot)
        finally:
            slots.put(slot)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {}
        for student, exercise, file in files:
            digest = "" if unreadable(file) else grade.digest(exercises.text_of(file))
            before = known.get(student, {}).get(exercise.id)
            if again or not before or before["digest"] != digest or before["points"] is None:
                waiting[pool.submit(one, student, exercise, file)] = student, exercise, digest
        for number, future in enumerate(concurrent.futures.as_completed(waiting), 1):
            student, exercise, digest = waiting[future]
            known.setdefault(student, {})[exercise.id] = {"digest": digest, **future.result()}
            store(known)
            kind = known[student][exercise.id]["kind"]
            print(f"{number} of {len(waiting)}: {student}, {exercise.asked}: {kind}", flush=True)


# --- Files that are alike --------------------------------------------------------------------------------------


def words(text):
    """Those of the code."""
    return WORD.findall(rules.without_comments(rules.spliced(text), strings=False))


def shingles(text):
    """Runs of words of the code, without the names that a student may choose."""
    plain = [word if KEPT.fullmatch(word) or not re.match(r"\w", word) else "n" for word in words(text)]
    return {tuple(plain[i : i + SHINGLE]) for i in range(len(plain) - SHINGLE + 1)}


def similar(files, wanted):
    """[(exercise, one, other, percent)] of files that share nearly all that the skeleton does not have."""
    found = []
    for exercise in wanted:
        texts = {
            student: exercises.text_of(file) for student, one, file in files if one is exercise and not unreadable(file)
        }
        if not texts:
            continue
        if not exercise.stage.is_left_out:
            texts["the stage's own solution"] = exercise.stage.source.read_text(encoding="utf-8")
        skeleton = shingles(grade.skeleton(exercise))
        own = {name: shingles(text) - skeleton for name, text in texts.items()}
        names = [name for name, runs in own.items() if len(runs) >= LEAST_SHINGLES]
        for one, other in itertools.combinations(names, 2):
            share = len(own[one] & own[other]) / min(len(own[one]), len(own[other]))
            if share >= ALIKE:
                found.append((exercise.asked, one, other, round(100 * share)))
    return found


# --- What is written -------------------------------------------------------------------------------------------


def total(entry):
    return sum(entry["points"].values()) if entry["points"] else 0


def write_books(folder, students, wanted):
    """gradebook.csv and grades.csv."""
    asked = {exercise.id: exercise.asked for exercise in wanted}
    rows = []
    for student, entries in students.items():
        points = [total(entries[one]) if one in entries else "" for one in asked]
        rows.append([student, sum(point or 0 for point in points), *points])
    results.write_csv(folder / "gradebook.csv", ["student", "sum", *asked.values()], rows)
    rows = []
    for student, entries in students.items():
        for one, entry in entries.items():
            parts = entry["points"]
            given = [total(entry), *parts.values()] if parts else [""] * (1 + len(POINTS))
            rows.append([student, asked[one], *given, entry["kind"], "".join(entry["said"][:1])])
    results.write_csv(
        folder / "grades.csv", ["student", "exercise", "points", *POINTS, "result", "first sentence"], rows
    )


def page(student, entries, asked):
    lines = [f"# {student}", ""]
    for one, entry in entries.items():
        lines += [f"## {asked[one]}: {total(entry)} of {MOST} points", "", f"{entry['kind'].capitalize()}.", ""]
        lines += [f"- {sentence}" for sentence in entry["said"]] + ([""] if entry["said"] else [])
    return "\n".join(lines)


def tests_of(entries, asked):
    """One test per exercise: (name, points, passed, what was said)."""
    return [
        (asked[one], total(entry), entry["kind"] == "passed", "\n".join(entry["said"]))
        for one, entry in entries.items()
    ]


def gradescope(tests):
    rows = [
        {"name": name, "score": points, "max_score": MOST, "status": "passed" if passed else "failed", "output": said}
        for name, points, passed, said in tests
    ]
    return {"score": sum(row["score"] for row in rows), "tests": rows}


def classroom(tests):
    rows = [
        {"name": name, "status": "pass" if passed else "fail", "score": points, "message": said}
        for name, points, passed, said in tests
    ]
    status = "pass" if all(row["status"] == "pass" for row in rows) else "fail"
    return {"version": 1, "status": status, "max_score": MOST * len(rows), "tests": rows}


def junit(students, asked):
    root = xml.Element("testsuites")
    for student, entries in students.items():
        tests = tests_of(entries, asked)
        failed = str(sum(not passed for _, _, passed, _ in tests))
        suite = xml.SubElement(root, "testsuite", name=student, tests=str(len(tests)), failures=failed)
        for name, _, passed, said in tests:
            case = xml.SubElement(suite, "testcase", classname=student, name=name)
            if not passed:
                xml.SubElement(case, "failure", message=said.partition("\n")[0]).text = said
    return xml.ElementTree(root)


def write(folder, students, wanted, files):
    asked = {exercise.id: exercise.asked for exercise in wanted}
    write_books(folder, students, wanted)
    results.write_csv(folder / "similar.csv", ["exercise", "one", "other", "percent"], similar(files, wanted))
    for part in ("students", "gradescope", "classroom"):
        (folder / part).mkdir(exist_ok=True)
    for student, entries in students.items():
        tests = tests_of(entries, asked)
        (folder / f"students/{student}.md").write_text(page(student, entries, asked), encoding="utf-8")
        for part, form in (("gradescope", gradescope), ("classroom", classroom)):
            (folder / f"{part}/{student}.json").write_text(json.dumps(form(tests), indent=1) + "\n", encoding="utf-8")
    junit(students, asked).write(folder / "junit.xml", encoding="utf-8", xml_declaration=True)


def read_known(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise Unusable(
            f"{results.shown(path)} is damaged ({error}); delete it, and all files are graded anew"
        ) from None


def run(given):
    if given.jobs < 1:
        raise BadCommand(f"--jobs {given.jobs}: say 1 or more")
    wanted = [exercises.find(one) for one in given.exercise] if given.exercise else exercises.course()
    files = handed_in(given.submissions, wanted)
    wanted = [exercise for exercise in wanted if any(one is exercise for _, one, _ in files)]
    folder = pathlib.Path(given.results).absolute() if given.results else ROOT / "build/class"
    folder.mkdir(parents=True, exist_ok=True)
    for one in (folder, pathlib.Path(given.submissions).resolve()):
        sandbox.hide(one)
    remembered = folder / "grades.json"

    def store(known):
        text = json.dumps(known, indent=1) + "\n"
        results.replace(remembered, lambda partial: partial.write_text(text, encoding="utf-8"))

    known = read_known(remembered)
    with exercises.locked(folder / ".lock"):
        grade_all(files, known, given.jobs, given.again, store)
        there = {(student, exercise.id) for student, exercise, file in files}
        students = {
            student: {one.id: known[student][one.id] for one in wanted if (student, one.id) in there}
            for student in dict.fromkeys(student for student, exercise, file in files)
        }
        write(folder, students, wanted, files)
    print(f"class: {len(students)} students, {len(files)} files, in {results.shown(folder)}")
    failed = [entry for entries in students.values() for entry in entries.values() if entry["points"] is None]
    if failed:
        print(
            f"class: {len(failed)} of {len(files)} files could not be graded, see grades.csv; they are tried again next time",
            file=sys.stderr,
        )
    return 1 if failed else 0
