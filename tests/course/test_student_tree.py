"""The tree that students get: no line of a solution, and everything else runs."""

import argparse
import re
import shutil

import pytest
from conftest import BACKEND, ROOT, copy_if_there, make, run
from ladder.core import ladders
from ladder.grader import exercises, student_tree

COURSE = exercises.course()


@pytest.fixture(scope="module")
def changed():
    return student_tree.changed(student_tree.tracked(), COURSE)


def test_a_stage_is_its_skeleton_and_its_page_has_no_code_of_it(changed):
    for exercise in COURSE:
        lines = student_tree.solution(exercise)
        assert lines
        one = exercise.stage
        written = changed[str(one.source.relative_to(ROOT))]
        assert exercises.MARK in written and not lines & student_tree.lines_of(written)
        counts = f"profiling_results/cpu_device/{one.id}.csv"
        for name in (counts, *(str(path.relative_to(ROOT)) for path in (one.page, exercise.page))):
            text = changed[name]
            shown = "\n".join(student_tree.FENCE.findall(text)) if name.endswith("README.md") else text
            assert not any(line in student_tree.bare(shown) for line in lines), f"{name} shows a line of {one.id}"
        assert "<summary>Solution</summary>" not in changed[str(exercise.page.relative_to(ROOT))]


def test_the_cut_code_was_shown_before(changed):
    """Otherwise the test above would look at nothing."""
    assert sum(student_tree.LEFT_CODE in text for text in changed.values()) > 20
    assert sum(student_tree.LEFT_LINE in text for text in changed.values()) > 20


def test_tests_and_answers_of_exams_stay_here_and_no_page_leads_to_them(changed):
    names = student_tree.tracked()
    assert not [name for name in names if name.startswith(("tests/", "TEACHING.md"))]
    assert not [name for name, text in changed.items() if re.search(r"\]\((\.\./)*TEACHING\.md", text)]


def test_only_the_exercises_that_are_named_are_left_out():
    chosen = exercises.find("W1L1/2")
    names = [name for name in student_tree.tracked() if name.startswith("lectures/W1L1")]
    texts = student_tree.changed(names, [chosen])
    assert (
        texts[ladders.LEFT_OUT] == "W1L1/vector_add2\n"
        and exercises.MARK in texts[str(chosen.stage.source.relative_to(ROOT))]
    )
    assert not any(exercises.MARK in text for name, text in texts.items() if name.endswith("vector_add3.cu"))


def test_files_that_show_a_solution_are_named(changed):
    """A later stage that repeats it, also where that is the skeleton of a later exercise."""
    found = student_tree.near(student_tree.tracked(), changed, [exercises.find(one) for one in ("10", "W2L3/3", "01")])
    named = {(exercise.asked, name.rpartition("/")[2]): there / of for exercise, name, there, of in found}
    assert named["W2L3/3", "transpose_v4.cu"] > 0.5 and not [asked for asked, name in named if asked == "01"]
    stages = [name for exercise, name, _, _ in found if exercise.asked == "10"]
    assert "assignment1/rms_norm/matrix/14_dependent_launch/kernel.cuh" in stages


@pytest.mark.parametrize("there", ["file", "folder/file"])
def test_nothing_is_written_over(tmp_path, there):
    path = tmp_path / there
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    out = tmp_path / there.partition("/")[0]
    with pytest.raises(ladders.BadCommand, match="not empty"):
        student_tree.run(argparse.Namespace(out=str(out), exercise=None))
    assert path.read_text() == "mine" and [one.name for one in tmp_path.rglob("*") if one.is_file()] == ["file"]


def test_a_folder_must_be_named():
    with pytest.raises(ladders.BadCommand, match="OUT=folder"):
        student_tree.run(argparse.Namespace(out="", exercise=None))


@pytest.mark.full
@pytest.mark.builds("lectures/W1L1_first_kernel")
def test_the_written_tree_grades_and_skips(tmp_path):
    tree = tmp_path / "students"
    wrote = make("student-tree", f"OUT={tree}")
    assert wrote.returncode == 0, wrote.stderr
    assert run("git", "-C", tree, "log").returncode != 0
    for name in (BACKEND, "generated", "simt"):
        without = shutil.ignore_patterns("tests") if name == "simt" else None
        shutil.copytree(ROOT / "build" / name, tree / "build" / name, ignore=without, copy_function=copy_if_there)

    said = make("solution", "S=W1L1/2", cwd=tree)
    assert "this tree has no solutions" in said.stderr and not said.stdout.startswith("//")
    assert "is an exercise" in make("stage", "S=W1L1/2", cwd=tree).stderr
    assert make("exercise", "S=W1L1/2", cwd=tree).returncode == 0
    mine = tree / "my/W1L1/vector_add2.cu"
    exercise = exercises.find("W1L1/2")
    assert student_tree.lines_of(mine.read_text()) == student_tree.lines_of(exercise.skeleton([]))
    mine.write_text(exercise.stage.source.read_text().replace("i < n", "i <= n"))
    assert "not yet" in make("grade", "S=W1L1/2", cwd=tree).stdout
    shutil.copy(exercise.stage.source, mine)
    right = make("grade", "S=W1L1/2", cwd=tree)
    assert "passed." in right.stdout, right.stdout + right.stderr

    ladder = "lectures/W1L1_first_kernel"
    assert make(f"BACKEND={BACKEND}", f"{ladder}/program", cwd=tree).returncode == 0
    (program,) = (tree / "build" / BACKEND / ladder).glob("*_test")
    ran = run(program, "--n", "1000")
    assert ran.returncode == 0 and ran.stdout.count("the kernel is an exercise; make exercise S=W1L1/") == 4, ran.stdout
    assert re.search(r"vector_add0 +PASS", ran.stdout), ran.stdout
    assert f"1 of {len(COURSE)} done" in make("grade", cwd=tree).stdout
    assert "Question 1" in make("quiz", cwd=tree).stdout
