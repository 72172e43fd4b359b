"""A quiz: kernels that are wrong on purpose, without names and comments. Which line is wrong, and what would show it?

The questions are the mutants of all ladders, easier ladders first. Without a guess the question is printed, with
GUESS="17 order" the guess is checked: a line, and one of values, order, error, outside, gpu. GUESS=solution gives up.
"""

import random
import re
from dataclasses import dataclass

from ..core import ladders, results
from ..core.command_line import NOT_YET
from . import exercises, rules

SHOWS = {
    "values": "some elements are wrong or never written, in whatever order the threads run",
    "order": "the values depend on the order of the threads: another SIMT_ORDER shows it, and mostly simt/analyze, too",
    "error": "CUDA returns an error: a misaligned or illegal address, a launch that is refused, fails or never ends",
    "outside": "the guards around the output: the kernel writes past its end",
    "gpu": "only a GPU shows it, where one kernel begins before the one before it has ended",
}
# What a mutant says of its rejection -> what shows it; the first that fits.
REJECTIONS = [
    (r"Shows::on_hopper", "gpu"),
    (r"cuda[A-Z]|misaligned address|launch failure|\"the kernel\"", "error"),
    (r"wrote outside|guard element", "outside"),
    (r"Shows::on_cpu_device|thread order", "order"),
    (r"", "values"),
]
FAULT = re.compile(r"//.*\bthe fault\b")
MUTANT = re.compile(r"inline const Mutant<\w+> mutant\{(.*?)\};\n", re.S)


def arguments(parser):
    parser.add_argument("ladder", nargs="?", default="", help="questions of this ladder alone: matrix, W2L1")
    parser.add_argument("--guess", default="", metavar='"LINE WHAT"', help="a line, and what would show it")


@dataclass(frozen=True)
class Question:
    ladder: ladders.Ladder
    name: str
    lines: tuple  # of the code as it is shown
    wrong: frozenset  # numbers of lines, from 1: a guess of any of them is right
    shows: str

    @property
    def id(self):
        return f"{self.ladder.id}/{self.name}"

    @property
    def path(self):
        return self.ladder.folder / "mutants" / f"{self.name}.cuh"


def statement(lines, number):
    """The numbers of all lines of the statement that this line belongs to."""
    ends = (";", "{", "}", ":")
    first = last = number
    while first > 1 and lines[first - 2].strip() and not lines[first - 2].rstrip().endswith(ends):
        first -= 1
    while last < len(lines) and lines[last - 1].strip() and not lines[last - 1].rstrip().endswith(ends):
        last += 1
    return range(first, last + 1)


def question(ladder, name):
    """None if the mutant does not mark its fault."""
    text = (ladder.folder / "mutants" / f"{name}.cuh").read_text(encoding="utf-8")
    described = MUTANT.search(text).group(1)
    code = rules.without_comments(MUTANT.sub("", text)).replace(name, "somebody")
    source, shown, places = text.split("\n"), [], {}
    for number, line in enumerate(code.split("\n"), 1):
        line = line.rstrip()
        if line.startswith(("#pragma once", "#include", "inline const Mutant")):
            continue
        if line or (shown and shown[-1]):
            shown.append(line)
        places[number] = len(shown)  # where it stands, or where what stands there now was cut out
    while shown and not shown[-1]:
        shown.pop()
    wrong = set()
    for number, line in enumerate(source, 1):
        if not FAULT.search(line) or number not in places:
            continue
        place = places[number]
        if line.strip().startswith("//"):  # something is missing between two lines
            after = next((n for n in range(place + 1, len(shown) + 1) if shown[n - 1]), place)
            before = next((n for n in range(place, 0, -1) if shown[n - 1]), place)
            wrong |= {before, after}
        else:
            wrong |= set(statement(shown, place))
            if re.search(r"fault: (no|nobody|right|1 waits)\b", line):
                wrong.add(min(place + 1, len(shown)))
    shows = next(kind for pattern, kind in REJECTIONS if re.search(pattern, described))
    return Question(ladder, name, tuple(shown), frozenset(wrong), shows) if wrong else None


def questions(asked=""):
    """All of them, or those of a ladder, in the order in which they are asked."""
    order = {name: place for place, name in enumerate(exercises.COURSE)}
    known = sorted(ladders.all_ladders(), key=lambda ladder: order.get(ladder.id, len(order)))
    if asked and asked not in [ladder.id for ladder in known if ladder.mutants]:
        names = ", ".join(ladder.id for ladder in known if ladder.mutants)
        raise ladders.BadCommand(f"S={asked}: no ladder of that name has mutants; those that do: {names}")
    found = []
    for ladder in known:
        names = list(ladder.mutants) if asked in ("", ladder.id) else []
        random.Random(ladder.id).shuffle(names)
        found += [one for one in (question(ladder, name) for name in names) if one]
    return found


def show(one, place, count):
    print(f"Question {place} of {count}, from the ladder {one.ladder.id}: {one.ladder.title}.")
    of_parts = " What parts:: has is right." if any("parts::" in line for line in one.lines) else ""
    print(f"One line is wrong, or something is missing before or after it.{of_parts}\n")
    for number, line in enumerate(one.lines, 1):
        print(f"{number:4}  {line}".rstrip())
    print("\nWhat would show it?")
    for name, what in SHOWS.items():
        print(f"  {name:<8} {what}")
    print('\nmake quiz GUESS="LINE WHAT" checks a guess, for example GUESS="12 order"; GUESS=solution shows it.')


def answer(one):
    source = one.path.read_text(encoding="utf-8")
    about = re.match(r"((?://.*\n)+)", source).group(1).replace("// ", "").replace("\n", " ")
    print(f"{about.strip()}\nThe line as it stands in {results.shown(one.path)}:")
    for number, line in enumerate(source.splitlines(), 1):
        if FAULT.search(line):
            print(f"{number:4}  {line.strip()}")
    print(f"What shows it, {one.shows}: {SHOWS[one.shows]}.")


def check(one, guess):
    """(whether the line is right, whether what shows it is right)"""
    words = guess.split()
    if len(words) != 2 or not words[0].isdigit() or words[1] not in SHOWS:
        wanted = f'a line and one of {", ".join(SHOWS)}, for example GUESS="12 order"'
        raise ladders.BadCommand(f'GUESS="{guess}": give {wanted}')
    return int(words[0]) in one.wrong, words[1] == one.shows


def run(given):
    every = questions(given.ladder)
    known = exercises.progress()
    open_ones = [one for one in every if one.id not in known["quiz"]]
    if not open_ones:
        print(f"All {len(every)} questions are answered.")
        return 0
    one = open_ones[0]
    if not given.guess:
        return show(one, len(every) - len(open_ones) + 1, len(every))
    if given.guess != "solution":
        line, shows = check(one, given.guess)
        said = {
            (True, True): "Both are right.",
            (True, False): "The line is right. Something else would show it.",
            (False, True): "That would show it. The line is another one.",
            (False, False): "Neither is right. Look again at what each thread reads, and who has written it.",
        }
        print(said[line, shows])
        if not (line and shows):
            return NOT_YET
    answer(one)
    with exercises.changed_progress() as known:
        known["quiz"].append(one.id)
    print(f"{len(known['quiz'])} answered; make quiz asks the next one.")
    return 0
