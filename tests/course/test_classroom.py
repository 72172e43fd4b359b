"""make class: points, what is written, what is graded again, and which files are alike."""

import csv
import json
import xml.etree.ElementTree as xml

import pytest
from conftest import ROOT
from ladder import __main__ as command_line
from ladder.grader import classroom, exercises, grade, ideas
from ladder.measure import cpu_device

FIFTH = exercises.find("05")


def report_of(text):
    """Instead of the grader: what the file says of itself."""
    if "breaks the grader" in text:
        raise KeyError("verdict")
    said = {
        "does not build": grade.Report(build=["line 3: expected ';'"]),
        "wrong": grade.Report(values=["3 of 7 elements wrong"]),
        "race": grade.Report(is_right=True, hazards=["line 4: race"]),
        "fault": grade.Report(hazards=["line 4: an access outside of memory"]),
        "without the idea": grade.Report(is_right=True, ideas=["requires one barrier"]),
    }
    return next((report for word, report in said.items() if word in text), grade.Report(is_right=True))


@pytest.fixture
def a_class(tmp_path, monkeypatch):
    """A function that runs make class on {student: {file: text}}, and tells what was graded."""
    run_of = []

    def graded(exercise, file, name):
        assert ROOT in file.parents and name.endswith(exercise.id)
        text = file.read_text(encoding="utf-8")
        run_of.append(text)
        return report_of(text)

    monkeypatch.setattr(classroom.grade, "grade", graded)

    def run(files, *words):
        run_of.clear()
        for student, given in files.items():
            for name, text in given.items():
                path = tmp_path / "in" / student / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        code = command_line.main(["class", str(tmp_path / "in"), "--results", str(tmp_path / "out"), *words])
        return code, sorted(run_of)

    return run


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_points_for_each_part(a_class, tmp_path):
    files = {
        "Ada": {"05_warp_shuffle.cuh": "all right", "W1L1/vector_add2.cu": "a race"},
        "Ben": {"my/05_warp_shuffle.cuh": "right without the idea"},
        "Cem": {"05_warp_shuffle.cuh": "wrong", "W1L1/vector_add2.cu": "a fault", "notes.txt": "no exercise"},
        "Dana": {"05_warp_shuffle.cuh": "does not build"},
    }
    assert a_class(files, "--jobs", "2")[0] == 0
    parts = len(ideas.wishes(FIFTH))
    assert parts > 1
    book = {row["student"]: row for row in rows(tmp_path / "out/gradebook.csv")}
    assert [book[name]["05"] for name in files] == ["100", str(80 + round(20 * (parts - 1) / parts)), "20", "0"]
    assert [book[name]["W1L1/2"] for name in files] == ["60", "", "20", ""]
    assert book["Ada"]["sum"] == "160"
    graded = {(row["student"], row["exercise"]): row for row in rows(tmp_path / "out/grades.csv")}
    assert graded["Cem", "05"]["first sentence"] == "3 of 7 elements wrong" and graded["Cem", "05"]["build"] == "20"
    assert "- 3 of 7 elements wrong" in (tmp_path / "out/students/Cem.md").read_text(encoding="utf-8")


def test_a_kernel_of_one_thread_gets_no_points_for_the_idea():
    """It has neither conflicts nor barriers, because it does nothing together."""
    counts = ideas.Counts.read(cpu_device.path_of(FIFTH.stage), FIFTH.given)
    few = grade.Report(is_right=True, ideas=["requires one barrier"], counts=counts)
    assert classroom.points_of(FIFTH, few)["idea"] > 0
    for row in counts.sums + counts.rows:
        row["grid"], row["block"] = "1", "1"
    assert classroom.points_of(FIFTH, few) == {"build": 20, "values": 40, "hazards": 20, "idea": 0}


def test_the_skeleton_gets_no_points_though_its_values_are_right(a_class, tmp_path):
    skeleton = grade.skeleton(exercises.find("W1L1/1"))
    files = {"Ada": skeleton.replace("YOUR CODE", "mine"), "Ben": skeleton.replace("stretch", "part")}
    a_class({student: {"vector_add1.cu": text} for student, text in files.items()})
    said = {row["student"]: row for row in rows(tmp_path / "out/grades.csv")}
    assert said["Ada"]["points"] == "0" and "is the skeleton" in said["Ada"]["first sentence"]
    assert int(said["Ben"]["points"]) > 0


def test_forms_of_other_programs(a_class, tmp_path):
    a_class({"Ada": {"05_warp_shuffle.cuh": "all right", "W1L1/vector_add2.cu": "a race"}})
    scores = json.loads((tmp_path / "out/gradescope/Ada.json").read_text(encoding="utf-8"))
    assert scores["score"] == 160 and [test["max_score"] for test in scores["tests"]] == [100, 100]
    shown = json.loads((tmp_path / "out/classroom/Ada.json").read_text(encoding="utf-8"))
    assert shown["status"] == "fail" and shown["max_score"] == 200
    (suite,) = xml.parse(tmp_path / "out/junit.xml").getroot()
    assert suite.get("name") == "Ada" and suite.get("failures") == "1"
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["W1L1/2"]


def test_only_what_has_changed_is_graded_again(a_class):
    assert a_class({"Ada": {"05_warp_shuffle.cuh": "wrong"}, "Ben": {"05_warp_shuffle.cuh": "race"}})[1] == [
        "race",
        "wrong",
    ]
    assert a_class({})[1] == []
    assert a_class({"Ada": {"05_warp_shuffle.cuh": "all right"}})[1] == ["all right"]
    assert a_class({}, "--again", "--exercise", "05")[1] == ["all right", "race"]


def test_a_file_that_breaks_the_grader_or_is_no_file_disturbs_no_other(a_class, tmp_path, capsys):
    (tmp_path / "in/Eve").mkdir(parents=True)
    (tmp_path / "in/Eve/05_warp_shuffle.cuh").symlink_to(FIFTH.stage.source)
    code, graded = a_class(
        {"Ada": {"05_warp_shuffle.cuh": "breaks the grader"}, "Ben": {"05_warp_shuffle.cuh": "all right"}}
    )
    assert code == 1 and graded == ["all right", "breaks the grader"]
    said = {row["student"]: row for row in rows(tmp_path / "out/grades.csv")}
    assert "the grader failed: KeyError" in said["Ada"]["first sentence"] and said["Ada"]["points"] == ""
    assert said["Ben"]["points"] == "100" and said["Eve"]["first sentence"].startswith("the file is a link")
    assert "1 of 3 files could not be graded" in capsys.readouterr().err
    assert a_class({"Ada": {"05_warp_shuffle.cuh": "all right"}}) == (0, ["all right"])


def test_files_that_are_alike_are_listed(a_class, tmp_path):
    own = FIFTH.stage.source.read_text(encoding="utf-8")
    other = (ROOT / "assignment1/rms_norm/matrix/04_hybrid/kernel.cuh").read_text(encoding="utf-8")
    renamed = own.replace("row_input", "values").replace("sum", "total").replace("\n  ", "\n      // mine\n  ")
    a_class({"Ada": {"05_warp_shuffle.cuh": renamed}, "Ben": {"05_warp_shuffle.cuh": other}})
    pairs = [(row["one"], row["other"]) for row in rows(tmp_path / "out/similar.csv")]
    assert pairs == [("Ada", "the stage's own solution")]


@pytest.mark.parametrize(
    "words, said",
    [
        (["nowhere"], "there is no such folder"),
        ([""], "say SUBMISSIONS=folder"),
        (["tests/course", "--exercise", "05"], "no folder in it has a file of an exercise"),
        (["tests/course", "--jobs", "0"], "--jobs 0: say 1 or more"),
        (["tests/course", "--exercise", "99"], "S=99"),
    ],
)
def test_what_is_refused(words, said, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert command_line.main(["class", *words]) == 2
    assert said in capsys.readouterr().err
