"""scripts/autograder: what Gradescope starts, in a folder laid out as in its image."""

import json
import resource
import shutil

import pytest
from conftest import ROOT, run
from ladder.grader import exercises

EXERCISE = exercises.find("W1L1/2")


@pytest.fixture
def graded(tmp_path):
    """A function that grades {name: text} and returns results.json."""
    (tmp_path / "source").symlink_to(ROOT)

    def graded(files):
        shutil.rmtree(tmp_path / "submission", ignore_errors=True)
        (tmp_path / "submission").mkdir()
        for name, text in files.items():
            (tmp_path / "submission" / name).write_text(text, encoding="utf-8")
        ran = run(ROOT / "scripts/autograder/run_autograder", AUTOGRADER=str(tmp_path), EXERCISES=EXERCISE.asked)
        assert ran.returncode == 0, ran.stderr
        return json.loads((tmp_path / "results/results.json").read_text())

    return graded


def test_who_hands_in_nothing_is_told_what_is_wanted(graded):
    said = graded({"notes.txt": "later"})
    assert said["score"] == 0 and "no folder in it has a file of an exercise" in said["output"]


@pytest.mark.full
@pytest.mark.builds()
def test_a_right_file_and_a_wrong_one_get_their_points(graded):
    right = EXERCISE.stage.source.read_text(encoding="utf-8")
    graded({EXERCISE.file.name: EXERCISE.skeleton([])})  # as the image does when it is built
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert graded({EXERCISE.file.name: right})["score"] == 100
    done = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.ru_utime + done.ru_stime - begun.ru_utime - begun.ru_stime < 30
    wrong = graded({EXERCISE.file.name: right.replace("i < n", "i <= n")})
    assert wrong["score"] < 100 and wrong["tests"][0]["status"] == "failed" and wrong["tests"][0]["output"]
