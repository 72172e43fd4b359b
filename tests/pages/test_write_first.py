"""Write first, then read: a page leads to a stage's exercise before it shows a line of the solution, and folds the solution."""

import re

import pytest
from ladder.grader import exercises
from ladder.grader.student_tree import SHORTEST, bare, lines_of

FENCE = re.compile(r"^```(?:cuda|cpp)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| [^|]* \| `(.*?)…?` \|", re.MULTILINE)  # of a table of accesses: its source
FOLD = re.compile(r"^<details>.*?^</details>$", re.MULTILINE | re.DOTALL)
COURSE = exercises.course()


def solution(exercise):
    """The lines that the skeleton lacks and that no stage explained before on the same page has."""
    stage = exercise.stage
    before = [one for one in stage.ladder.stages if one.page == stage.page and one.number < stage.number]
    known = lines_of("\n".join([exercise.skeleton([]), *(one.source.read_text(encoding="utf-8") for one in before)]))
    return lines_of(stage.source.read_text(encoding="utf-8")) - known


def shown(text, wanted):
    """Where a page shows one of these lines: in a block of code, or in a table of accesses, which cuts long lines off."""
    for fence in FENCE.finditer(text):
        place = fence.start(1)
        for line in fence[1].splitlines(keepends=True):
            if bare(line) in wanted:
                yield place
            place += len(line)
    for row in ROW.finditer(text):
        begin = bare(row[1])
        if len(begin) >= SHORTEST and any(line.startswith(begin) for line in wanted):
            yield row.start()


def faults(text, exercise):
    """What is wrong with the way in which a page leads to an exercise."""
    command = re.search(rf"`make\s+exercise\s+S={re.escape(exercise.asked)}`", text)
    if not command:
        return [f"no `make exercise S={exercise.asked}`"]
    if not re.search(rf"`make\s+grade\s+S={re.escape(exercise.asked)}`", text):
        return [f"no `make grade S={exercise.asked}`"]
    found = []
    name = "" if exercise.stage.page.parent.name == exercise.stage.name else f" {exercise.stage.name}"
    table = text.find(f"<!-- table:cpu_device:begin{name}")
    if not command.start() < table:
        found.append("the exercise comes after the table of accesses")
    section = text.find(f"<!-- stage{name}") if name else 0  # rows of the tables before may begin alike
    folds = [range(*fold.span()) for fold in FOLD.finditer(text)]
    for place in shown(text, solution(exercise)):
        row_before = text[place] == "|" and place < section
        if place < command.start() and not row_before:
            found.append("a line of the solution stands before the exercise")
        elif not any(place in fold for fold in folds):
            found.append("a line of the solution is not folded")
    return found


@pytest.mark.parametrize("exercise", COURSE, ids=lambda exercise: exercise.id)
def test_the_page_leads_to_the_exercise_first(exercise):
    assert solution(exercise)
    assert faults(exercise.stage.page.read_text(encoding="utf-8"), exercise) == []


def test_most_pages_show_a_line_of_the_solution():
    """Otherwise the test above would look at nothing."""
    showing = [one for one in COURSE if any(shown(one.stage.page.read_text(encoding="utf-8"), solution(one)))]
    assert len(showing) >= 0.9 * len(COURSE)


def test_a_command_at_the_end_and_a_bare_solution_are_found():
    exercise = next(one for one in COURSE if one.asked == "05")
    text = exercise.stage.page.read_text(encoding="utf-8")
    box = re.search(r"^\*\*Now write it:.*?\n\n", text, re.MULTILINE | re.DOTALL)[0]
    assert faults(text.replace(box, ""), exercise) == ["no `make exercise S=05`"]
    late = faults(text.replace(box, "") + "\n" + box, exercise)
    assert "the exercise comes after the table of accesses" in late
    assert "a line of the solution stands before the exercise" in late
    bare_code = re.sub(r"</?details>.*\n", "", text)
    assert set(faults(bare_code, exercise)) == {"a line of the solution is not folded"}
