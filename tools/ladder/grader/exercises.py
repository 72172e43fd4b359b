"""The exercises: pages below exercises/, each of which says what is cut out of one stage's source, and what is wanted.

exercises/<ladder>/<stage>.md holds, in this order:
    # NAME: TITLE
    <!-- exercise wants="barriers width" read=1 ... -->     the ideas of ideas.py that the counters must show; of a
                                                             ladder outside of lectures/, lecture=W2L1: what teaches it
    the task, in paragraphs that become the first comment of the skeleton
    <details><summary>Hint</summary> ... </details>          two or three, from a push to nearly all
    <details><summary>Solution</summary> ... </details>      pairs of code blocks: a first line, "..." and a last line
                                                             of the stage's source, which stand there once; then what
                                                             takes the place of these lines and of all between them
The stage's source holds no marks, so its lines are those of the stored counts. A cut whose lines have changed does not
apply any more, and a test applies all of them. In the tree that students get, the cuts are made: no page has any.
"""

import contextlib
import fcntl
import functools
import json
import pathlib
import re
import textwrap
from dataclasses import dataclass

from ..core import ladders, markers, results
from ..core.ladders import ROOT, Unusable

FOLDER = ROOT / "exercises"
LECTURES = ROOT / "lectures"
MINE = ROOT / "my"  # the student's, which git does not see
MARK = "YOUR CODE"  # in the comments of a skeleton that say what is missing
# The order of the course.
COURSE = (
    "W1L1",
    "W2L1",
    "W2L2",
    "W2L3",
    "matrix",
    "vector",
    "precision",
    "serving",
    "backward",
    "quantized",
    "q4_gemm",
    "tensor_parallel",
)

HEAD = re.compile(r"# (?P<name>\S+): (?P<title>.+)\n+<!-- exercise(?P<words>[^>]*) -->\n")
DETAILS = re.compile(r"<details><summary>(Hint|Solution)</summary>\n(.*?)\n</details>", re.S)
CODE = re.compile(r"^```cuda\n(.*?)^```$", re.S | re.M)
DESCRIBED = re.compile(r'(inline const Stage<\w+> stage\{\s*"[^"]+",\s*)"[^"]*"')
WIDTH = 120


@dataclass(frozen=True)
class Cut:
    first: str
    last: str
    put: str

    def apply(self, text, where):
        """The text with the lines from first to last replaced."""
        lines = text.split("\n")
        begin = place_of(self.first, lines, 0, where)
        end = place_of(self.last, lines, begin, where) if self.last != self.first else begin
        return "\n".join(lines[:begin] + self.put.rstrip("\n").split("\n") + lines[end + 1 :])


def place_of(wanted, lines, begin, where):
    """Where the line stands, the only one of its text in the file, or from `begin` on the first."""
    found = [number for number, line in enumerate(lines) if line == wanted and number >= begin]
    if len(found) == 1 or (found and begin):
        return found[0]
    times = f"{len(found)} times" if found else "not"
    raise Unusable(f"{where}: the line to cut at stands {times} in the stage's source: {wanted.strip()}")


@dataclass(frozen=True)
class Exercise:
    stage: ladders.Stage
    title: str
    wants: dict  # idea -> the figure wanted, or "" for that of the stage's stored count
    input: dict  # what the counters are counted on, if it is not the ladder's input to analyze
    lecture: pathlib.Path  # the page that teaches what it needs
    edges: bool  # whether hazards are looked for on the smallest edge cases too; edges=no where that takes a minute
    task: str
    hints: list
    cuts: list

    @property
    def id(self):
        return self.stage.id

    @property
    def asked(self):
        return self.stage.asked

    @property
    def page(self):
        return page_of(self.stage)

    @property
    def file(self):
        """The student's."""
        folder = MINE if self.stage.ladder.id == ladders.DEFAULT else MINE / self.stage.ladder.id
        return folder / f"{self.stage.name}{self.stage.source.suffix}"

    @property
    def given(self):
        return self.input or self.stage.ladder.analyze

    def skeleton(self, head):
        """The stage's source without its first comment and with its cuts; head: lines for a comment in front."""
        text = self.stage.source.read_text(encoding="utf-8")
        for cut in self.cuts:
            text = cut.apply(text, results.shown(self.page))
        body = re.sub(r"\A(//.*\n)+", "", text)
        # What the stage says of itself would give the answer away.
        body = DESCRIBED.sub(lambda found: f'{found.group(1).rstrip()}\n    "{self.title}"', body)
        return comment(head) + body


def comment(paragraphs):
    lines = []
    for paragraph in paragraphs:
        wrapped = textwrap.wrap(paragraph, WIDTH - 3, break_on_hyphens=False)
        lines += ([""] if lines and not paragraph.startswith("- ") else []) + wrapped
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def lecture_of(name, where):
    page = next(LECTURES.glob(f"{name}_*/README.md"), None)
    if not page:
        raise Unusable(f"{where}: lecture={name} names no folder of lectures/; say lecture=W2L1, for example")
    return page


def page_of(stage):
    return FOLDER / stage.ladder.id / f"{stage.name}.md"


def read(stage):
    """The exercise of a stage; Unusable if its page is not as the first lines of this file say."""
    page, where = page_of(stage), results.shown(page_of(stage))
    text = page.read_text(encoding="utf-8")
    head = HEAD.match(text)
    if not head or head["name"] != stage.name:
        raise Unusable(f'{where} must begin with "# {stage.name}: TITLE" and <!-- exercise ... -->')
    words, values = markers.words_of(head["words"])
    wants = dict.fromkeys(values.pop("wants", "").split(), "")
    given = dict(word.split("=") for word in values.pop("input", "").split())
    edges = values.pop("edges", "yes") == "yes"
    lecture = lecture_of(values.pop("lecture", stage.ladder.id), where)
    wants.update(values)
    hints, cuts = [], []
    for kind, inside in DETAILS.findall(text):
        if kind == "Hint":
            hints.append(inside.strip())
            continue
        blocks = CODE.findall(inside)
        if not blocks or len(blocks) % 2:
            raise Unusable(
                f"{where}: the solution needs pairs of ```cuda blocks: lines of the stage, and what takes their place"
            )
        for lines, put in zip(blocks[::2], blocks[1::2]):
            lines = lines.rstrip("\n").split("\n")
            cuts.append(Cut(lines[0], lines[-1], put))
    task = text[head.end() : DETAILS.search(text).start()].strip() if hints else ""
    if not task or bool(cuts) == stage.is_left_out or words:
        raise Unusable(
            f"{where} needs a task, hints and a solution, as the first lines of tools/ladder/grader/exercises.py say"
        )
    given = {name: int(value) for name, value in given.items()}
    return Exercise(stage, head["title"], wants, given, lecture, edges, task, hints, cuts)


@functools.cache
def course():
    """Every exercise, in the order of the course."""
    known = {ladder.id: ladder for ladder in ladders.all_ladders()}
    return [read(stage) for name in COURSE for stage in known[name].stages if page_of(stage).is_file()]


def find(asked):
    """The exercise that S= names."""
    if not asked:
        raise ladders.BadCommand("say which exercise, for example S=05 or S=W1L1/2; the list has all", listing())
    try:
        stage = ladders.find(asked)
    except ladders.BadCommand:
        stage = None
    for exercise in course():
        if exercise.stage == stage:
            return exercise
    raise ladders.BadCommand(f"S={asked} has no exercise; the list has all", listing())


def of_file(asked):
    """The exercise whose file in my/ this is, with or without its ending; None if it is of none."""
    path = (ROOT / asked).resolve() if asked else None
    if not path or MINE.resolve() not in path.parents:
        return None
    return next((one for one in course() if path in (one.file.resolve(), one.file.resolve().with_suffix(""))), None)


def named(exercise):
    """Its name and title, as columns of a list of all exercises."""
    width = max(len(one.asked) for one in course())
    return f"S={exercise.asked:<{width}}  {exercise.title}"


def listing():
    return "".join(f"  {named(exercise)}\n" for exercise in course())


# What a student has done so far:
# {"hints": {id: how many were shown}, "grades": {id: [digest of the file, what is wrong]}, "quiz": [ids]}


def progress():
    """What is there of it in the right form; a file that was changed by hand may have lost the rest."""
    try:
        known = json.loads((MINE / ".progress.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    known = known if isinstance(known, dict) else {}
    hints, grades, quiz = (known.get(name) for name in ("hints", "grades", "quiz"))
    return {
        "hints": {one: shown for one, shown in entries(hints) if isinstance(shown, int)},
        "grades": {one: said for one, said in entries(grades) if is_grade(said)},
        "quiz": [one for one in quiz if isinstance(one, str)] if isinstance(quiz, list) else [],
    }


def entries(known):
    return known.items() if isinstance(known, dict) else ()


def is_grade(said):
    return isinstance(said, list) and len(said) == 2 and all(isinstance(one, str) for one in said)


def remember(known):
    path = folder_of(MINE / ".progress.json") / ".progress.json"
    results.replace(path, lambda partial: partial.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8"))


@contextlib.contextmanager
def changed_progress():
    """What has been done so far, to be changed; one grader at a time."""
    with locked(MINE / ".progress.lock"):
        known = progress()
        yield known
        remember(known)


@contextlib.contextmanager
def locked(path):
    """Other graders wait until this one has left."""
    with open(folder_of(path) / path.name, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def folder_of(path):
    """The folder of a file that is to be written, made if it is not there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        there = next(one for one in (path.parent, *path.parent.parents) if one.is_file())
        raise Unusable(f"{results.shown(there)} is a file, and must be a folder; move the file away") from None
    return path.parent


def text_of(file):
    """A student's text. What is not UTF-8 is replaced: wrong_encoding says that it is there."""
    return file.read_bytes().decode("utf-8", errors="replace")


def wrong_encoding(file):
    """A sentence about a file that is not UTF-8, or ""."""
    data = file.read_bytes()
    first = data.find(b"\0")  # which ASCII has in UTF-16
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        first = error.start if first < 0 else min(first, error.start)
    if first < 0:
        return ""
    line = data[:first].count(b"\n") + 1
    return f"line {line}: the file is not text in UTF-8; let your editor save it with this encoding"
