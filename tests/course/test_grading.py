"""Exercises as the grader sees them, built and run: skeletons fail, solutions pass, wrong submissions get the help they need.

Most of a grade is the compiler's time, so the submissions of an exercise are compiled as one program: each in a namespace
of its own, SUBMISSION says which one runs. What the grader does with the program is what it does with a student's.
"""

import re

import pytest
from conftest import FULL, make, run
from ladder.grader import exercises, grade, workplace
from submitted import LADDERS, Submission, all_of, edited, exercise_of, of, source

pytestmark = pytest.mark.builds()

COURSE = exercises.course()
NOT_COMPILED = ("expected", "was not declared")  # said of those that fail there
MOST = 12  # in one program


class Several(grade.Workplace):
    """Submissions of one exercise in one program."""

    def __init__(self, exercise, files, name):
        self.files = files
        super().__init__(exercise, files[0], name)
        self.one = grade.Workplace(exercise, files[0], f"tests/{exercise.id}")  # whose judge is that of all

    @property
    def students(self):
        return self.files

    def prepare(self, waiting=None):
        return self.one.prepare(waiting)

    def built(self, kind):
        return self.one.built(kind) if kind == "judge" else super().built(kind)

    def makefile(self):
        """Kernels that are equal stay two: the CPU device knows a kernel by its address."""
        return [*super().makefile(), "CUFLAGS += -Xcompiler -fno-ipa-icf"]

    def main(self):
        return ["// no program with everything"]

    def student(self):
        return [
            "#define LADDER_ALL_STAGES",
            *(f'#include "{file}"' for file in self.files),
            "#include <cstdlib>",
            *workplace.LAUNCH,
            '  switch (std::atoi(std::getenv("SUBMISSION"))) {',
            *(
                f"    case {number}: of({self.space}_{number}::stage, arguments, stream); break;"
                for number in range(len(self.files))
            ),
            "  }",
            "}",
            "}",
        ]


class OneOfSeveral(grade.Workplace):
    """What a grade runs of one of them: a script that says which, in place of the program."""

    def __init__(self, several, number):
        self.exercise, self.file = several.exercise, several.files[number]
        self.path = several.path / str(number)
        self.path.mkdir(exist_ok=True)
        self.several = several
        text = f'#!/bin/sh\nSUBMISSION={number} exec "{several.built("judge")}" "$@"\n'
        (self.path / "judge").write_text(text, encoding="utf-8")
        (self.path / "judge").chmod(0o755)

    def built(self, kind):
        return self.path / kind if kind == "judge" else self.several.built(kind)


def reports(exercise, texts, folder, name):
    """The report of each text."""
    files = []
    for number, text in enumerate(texts):
        file = folder / str(number) / exercise.file.name
        file.parent.mkdir(parents=True)
        space = f"::{exercise.stage.namespace} {{"
        assert text.count(space) == 1, text
        file.write_text(text.replace(space, f"{space[:-2]}_{number} {{"), encoding="utf-8")
        files.append(file)
    several = Several(exercise, files, f"tests/{exercise.id}/{name}")
    code, output = several.compile()
    assert code == 0, output
    code, linked = several.link()
    assert code == 0, linked
    said = several.said_of_file(output)
    for number, text in enumerate(texts):
        yield grade.judge(OneOfSeveral(several, number), text, said)


OF_EACH_LADDER = list({one.stage.ladder: one for one in reversed(COURSE)}.values())


def generated(exercise):
    """What can be wrong with any launch: its first two arguments are exchanged, or the stream is missing."""
    text = source(exercise)
    launch = re.search(
        r"<<<([^<>]*(?:<[^<>]*>[^<>]*)*), (\w+|dim3\([^)]*\)|TILE_M / ROWS \* 32), (\w+), stream>>>", text
    )
    if not launch or exercise.stage.ladder.engine:  # on several devices the harness does not look at the stream
        return []
    whole, grid, block, shared = launch.group(), *launch.groups()
    bare = whole.replace(f", {shared}, stream>>>", ">>>" if shared == "0" else f", {shared}>>>")
    stream = Submission(exercise.asked, "no stream", [[whole, bare]], ["on the default stream"])
    if grid == "1":  # with the arguments exchanged every block does all of the work, which takes minutes to analyze
        return [stream]
    exchanged = [[whole, f"<<<{block}, {grid}, {shared}, stream>>>"]]
    return [stream, Submission(exercise.asked, "the launch's arguments exchanged", exchanged, [])]


def groups():
    """(exercise, its submissions that compile, at most MOST) of all exercises."""
    every = all_of()
    for exercise in COURSE:
        mine = [one for one in every if exercise_of(one.asked) == exercise and one.said[0] not in NOT_COMPILED]
        mine += generated(exercise) if exercise in OF_EACH_LADDER else []
        mine += [Submission(exercise.asked, "the solution", [], ["passed"])]
        mine = [one for one in mine if not any(part in line for line in one.said for part in NOT_COMPILED)]
        for begin in range(0, len(mine), MOST):
            yield exercise, mine[begin : begin + MOST], begin // MOST


def marked(every, asked, quick):
    full = [] if FULL else [pytest.mark.full]
    return [pytest.param(one, id=asked(one), marks=[] if asked(one) == quick else full) for one in every]


@pytest.mark.parametrize(
    "group", marked(list(groups()), lambda group: group[0].asked + f".{group[2]}" * (group[2] > 0), "W1L1/2")
)
def test_the_submissions_of_an_exercise_get_the_sentence_that_helps(group, tmp_path):
    exercise, submissions, number = group
    texts = [edited(one) for one in submissions]
    wrong = []
    for one, report in zip(submissions, reports(exercise, texts, tmp_path, number)):
        lines = [re.sub(r"_\d+( requires)", r"\1", line) for line in report.lines]
        helped = (
            report.passed
            if one.passes
            else not report.passed and all(any(part in line for line in lines) for part in one.said)
        )
        if not helped:
            wrong.append(f"{one.name}: {lines or 'passed'}, and not {one.said}")
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def graded(tmp_path):
    def graded(exercise, text):
        file = tmp_path / exercise.file.name
        file.write_text(text, encoding="utf-8")
        return grade.grade(exercise, file, f"tests/{exercise.id}")

    return graded


@pytest.mark.parametrize(
    "exercise",
    marked(  # on several devices it takes long, and the judge has compiled the skeleton
        [one for one in COURSE if (one in OF_EACH_LADDER and not one.stage.ladder.engine) or one.asked == "05"],
        lambda one: one.asked,
        "05",
    ),
)
def test_a_skeleton_compiles_and_fails(graded, exercise):
    report = graded(exercise, grade.skeleton(exercise))
    assert not report.passed and not report.rules and not report.build and report.lines, report


@pytest.mark.parametrize(
    "one",
    [one for one in of(*LADDERS, "fooling") if any(part in line for line in one.said for part in NOT_COMPILED)],
    ids=lambda one: one.name,
)
def test_what_does_not_compile_gets_the_compilers_error_and_the_line(graded, one):
    report = graded(exercise_of(one.asked), edited(one))
    assert report.build and any(one.said[0] in line for line in report.lines), report


@pytest.mark.parametrize("one", marked(of("cheats"), lambda one: one.name, "a verdict of its own"))
def test_a_cheat_is_seen_in_its_object_or_its_values(graded, one):
    report = graded(exercise_of(one.asked), edited(one))
    assert (
        not report.passed and not report.build and all(any(said in line for line in report.lines) for said in one.said)
    ), report


def test_a_grade_is_what_the_judge_of_several_says(graded):
    """The one way to grade that students have, on the file that needs all of it."""
    one = next(one for one in of("matrix") if one.name == "the row is read again")
    report = graded(exercise_of(one.asked), edited(one))
    assert any(one.said[0] in line for line in report.ideas) and not report.values


def test_from_nothing_to_a_graded_exercise_as_the_readme_says(tree):
    """In a copy of the tree, with make, as a student does it."""
    wrote = make("exercise", "S=05", cwd=tree)
    assert wrote.returncode == 0 and "my/05_warp_shuffle.cuh" in wrote.stdout, wrote.stderr
    first = make("grade", "S=05", cwd=tree)
    assert first.returncode == 0 and "not yet: the values are wrong" in first.stdout, first.stdout
    assert re.search(r"^  - line \d+: ", first.stdout, re.M), first.stdout
    last = first.stdout.rstrip().splitlines()[-1]
    assert last == "Your kernel line by line: make analyze S=my/05_warp_shuffle.cuh" and "Error 1" not in first.stderr
    solution = run("cat", "assignment1/rms_norm/matrix/05_warp_shuffle/kernel.cuh").stdout
    (tree / "my/05_warp_shuffle.cuh").write_text(solution, encoding="utf-8")
    second = make("grade", "S=05", cwd=tree)
    assert second.returncode == 0 and "passed" in second.stdout, second.stdout
    assert (
        re.search(r"barriers of a block +1 +1$", second.stdout, re.M)
        and "Next: make exercise S=W1L1/1" in second.stdout
    )
    tried = make("try", "S=05", "ARGS=--rows 1 --cols 33", cwd=tree)
    assert tried.returncode == 0 and "1 x 33 float32" in tried.stdout, tried.stdout + tried.stderr
    analyzed = make("analyze", "S=my/05_warp_shuffle.cuh", cwd=tree)
    assert analyzed.returncode == 0 and "kernel ladder::matrix::warp_shuffle::" in analyzed.stdout, (
        analyzed.stdout + analyzed.stderr
    )
    assert re.search(r"^  done +S=05 ", make("grade", cwd=tree).stdout, re.M)
    assert "Question 1 of" in make("quiz", cwd=tree).stdout
