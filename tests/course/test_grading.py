"""Exercises as the grader sees them, built and run: skeletons fail, solutions pass, wrong submissions get the help they need."""

import re

import pytest
from conftest import FULL, make, run
from ladder.grader import exercises, grade
from right_submissions import RIGHT
from test_exercises import BUILT, edited, source
from wrong_submissions import FOOLING, WRONG

pytestmark = pytest.mark.builds()

COURSE = exercises.course()
SUBMISSIONS = [one for one in FOOLING if one[0] in BUILT] + WRONG
QUICK = ("05", "the row is read again")


def parameters(every, quick, name):
    marks = [] if FULL else [pytest.mark.full]
    return [pytest.param(one, id=name(one), marks=[] if name(one) in quick else marks) for one in every]


@pytest.fixture
def graded(tmp_path):
    def graded(exercise, text):
        file = tmp_path / exercise.file.name
        file.write_text(text, encoding="utf-8")
        return grade.grade(exercise, file, f"tests/{exercise.id}")

    return graded


each = pytest.mark.parametrize("exercise", parameters(COURSE, QUICK, lambda one: one.asked))
OF_EACH_LADDER = list(
    {one.stage.ladder: one for one in reversed(COURSE)}.values()
)  # the first of each, and the quick one
SKELETONS = [one for one in COURSE if one in OF_EACH_LADDER or one.asked in QUICK]


@pytest.mark.parametrize("exercise", parameters(SKELETONS, QUICK, lambda one: one.asked))
def test_a_skeleton_compiles_and_fails_and_says_what_is_missing(graded, exercise):
    report = graded(exercise, grade.skeleton(exercise))
    assert not report.passed and not report.rules and not report.build, report
    assert len(report.missing) == sum(exercises.MARK in cut.put for cut in exercise.cuts) and report.lines


@each
def test_the_solution_passes(graded, exercise):
    report = graded(exercise, source(exercise))
    assert report.passed, report


@pytest.mark.parametrize("submission", parameters(SUBMISSIONS, QUICK, lambda one: one[0]))
def test_a_wrong_submission_is_rejected_with_the_sentence_that_helps(graded, submission):
    name, asked, edits, said = submission
    exercise = exercises.find(asked)
    report = graded(exercise, edited(exercise, edits))
    assert not report.passed
    assert any(said in line for line in report.lines), report.lines


@pytest.mark.parametrize(
    "name, asked, edits", [pytest.param(*one, id=one[0], marks=[] if FULL else [pytest.mark.full]) for one in RIGHT]
)
def test_a_solution_of_another_hand_passes(graded, name, asked, edits):
    exercise = exercises.find(asked)
    report = graded(exercise, edited(exercise, edits))
    assert report.passed, report


def test_from_nothing_to_a_graded_exercise_as_the_readme_says(tree):
    """In a copy of the tree, with make, as a student does it."""
    wrote = make("exercise", "S=05", cwd=tree)
    assert wrote.returncode == 0 and "my/05_warp_shuffle.cuh" in wrote.stdout, wrote.stderr
    first = make("grade", "S=05", cwd=tree)
    assert first.returncode == 2 and "not yet: the values are wrong" in first.stdout and "line 2" in first.stdout, (
        first.stdout
    )
    solution = run("cat", "assignment1/rms_norm/matrix/05_warp_shuffle/kernel.cuh").stdout
    (tree / "my/05_warp_shuffle.cuh").write_text(solution, encoding="utf-8")
    second = make("grade", "S=05", cwd=tree)
    assert second.returncode == 0 and "passed" in second.stdout, second.stdout
    assert re.search(r"^  done +S=05 ", make("grade", cwd=tree).stdout, re.M)
    assert "Question 1 of" in make("quiz", cwd=tree).stdout
