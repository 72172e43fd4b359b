"""What S= names, which make that starts, and what a ladder.json may say; in a tree with three ladders."""

import json

import pytest
from conftest import LADDER, ROOT
from fakes import LADDERS, LECTURE, NAMES, VECTOR, Machine, refused
from ladder.core import ladders, registry


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Machine(tmp_path_factory.mktemp("ladders"))


@pytest.fixture
def inside(tree, monkeypatch):
    monkeypatch.setattr(ladders, "ROOT", tree.root)


@pytest.mark.parametrize(
    "asked, found",
    [
        ("1", "matrix/01_basic"),
        ("02", "matrix/02_reduction5"),
        ("01_basic", "matrix/01_basic"),
        ("basic", "matrix/01_basic"),
        ("03_tiled", "matrix/03_tiled"),
        ("vector/1", "vector/01_basic"),
        ("vector/02_reduction5", "vector/02_reduction5"),
        ("vector/basic", "vector/01_basic"),
        ("W2L1/5", "W2L1/reduction5"),
        ("W2L1/0", "W2L1/reduction0"),
        ("W2L1_reduction/reduction0", "W2L1/reduction0"),
        ("reduction0", "W2L1/reduction0"),
        (f"{VECTOR}/01_basic", "vector/01_basic"),
        (f"{VECTOR}/01_basic/", "vector/01_basic"),
        (f"{LECTURE}/reduction5.cu", "W2L1/reduction5"),
    ],
)
def test_a_stage_is_named_by_number_name_ladder_or_folder(inside, asked, found):
    assert ladders.find(asked).id == found


@pytest.mark.parametrize("asked", ["vector", "vector/", VECTOR, f"{VECTOR}/"])
def test_a_ladder_is_named_by_its_own_name_or_folder(inside, asked):
    assert ladders.find(asked).id == "vector" and isinstance(ladders.find(asked), ladders.Ladder)


@pytest.mark.parametrize("asked", ["", "99", "nonsense", "vector/3", "tensor/1", "lectures"])
def test_anything_else_is_refused_with_the_choices(inside, asked):
    with pytest.raises(ladders.BadCommand) as refusal:
        ladders.find(asked)
    choices = refusal.value.choices
    assert ("  matrix/01_basic\n" in choices and "  W2L1/reduction5\n" in choices) or "did you mean" in str(
        refusal.value
    )


def test_a_name_that_is_nearly_right_gets_the_nearest(inside):
    with pytest.raises(ladders.BadCommand, match=r"there is no stage 'vector/3'; did you mean vector/\w+") as refusal:
        ladders.find("vector/3")
    assert refusal.value.choices == ""


def test_a_name_of_several_ladders_must_be_said_in_full(tmp_path, monkeypatch):
    tree = Machine(tmp_path)
    monkeypatch.setattr(ladders, "ROOT", tree.root)
    tree.write(f"{VECTOR}/03_split/kernel.cuh", "")
    assert ladders.find("split").id == "vector/03_split"
    tree.add_ladder("assignment2/sums/tensor", {**LADDERS[VECTOR], "baseline": None}, ["03_split"])
    with pytest.raises(ladders.BadCommand, match="several ladders") as refusal:
        ladders.find("03_split")
    assert "vector/03_split" in str(refusal.value) and "tensor/03_split" in str(refusal.value)
    tree.write(f"{LADDER}/05_split/kernel.cuh", "")
    assert ladders.find("split").id == "matrix/05_split"


def test_list_prints_every_stage_and_the_folders(tree):
    listed = tree.run("list").stdout.splitlines()
    assert listed[0] == "matrix/01_basic" and len(listed) == sum(map(len, NAMES.values()))
    assert tree.run("list", "--folders").stdout.splitlines() == [LADDER, VECTOR, LECTURE]


def test_where_results_go(tree):
    assert tree.run("where").stdout == "profiling_results/fake-9000\n"


# make: the fake writes down how it was called.


def made(tree, *words, **environment):
    tree.makes.unlink(missing_ok=True)
    result = tree.run(*words, **environment)
    return result, tree.makes.read_text().replace(f"{tree.root}/", "") if tree.makes.exists() else ""


@pytest.mark.parametrize(
    "asked, stage, analyze",
    [
        ("2", f"-C {LADDER}/02_reduction5 run", f"-C {LADDER}/02_reduction5 analyze BACKEND=cpu"),
        ("vector/2", f"-C {VECTOR}/02_reduction5 run", f"-C {VECTOR}/02_reduction5 analyze BACKEND=cpu"),
        ("W2L1/5", f"-C {LECTURE} run-reduction5", f"-C {LECTURE} analyze-reduction5 BACKEND=cpu"),
        ("W2L1", f"-C {LECTURE} run", f"-C {LECTURE} analyze BACKEND=cpu"),
        ("matrix", f"-C {LADDER} run", f"-C {LADDER} analyze BACKEND=cpu"),
    ],
)
def test_stage_and_analyze_start_make_where_the_stage_lies(tree, asked, stage, analyze):
    assert made(tree, "stage", asked)[1] == f"make {stage}\n"
    assert made(tree, "stage", asked, "--job", "analyze")[1] == made(tree, "analyze", asked)[1] == f"make {analyze}\n"


def test_a_stage_that_only_ladder_json_lists_is_an_option_of_the_ladder_s_program(tmp_path):
    tree = Machine(tmp_path)
    described = {**LADDERS[LECTURE], "stages": ["01_strided", "13_memcpy"], "baseline": None}
    tree.add_ladder("lectures/W1L2_memory", described, [])
    result, make = made(tree, "stage", "W1L2/13", ARGS="--n 7")
    assert result.returncode == 0 and make == "make -C lectures/W1L2_memory run ARGS=--stage 13_memcpy --n 7\n"
    for given, option in (("", "6400"), ("--n 7", "7")):  # the input of make analyze where there is no other
        _, make = made(tree, "analyze", "W1L2/13", ARGS=given)
        options = f"ARGS=--stage 13_memcpy --n {option}"
        assert make == f"make -C lectures/W1L2_memory analyze BACKEND=cpu {options}\n"


def test_a_folder_with_a_makefile_can_be_run_too(tree):
    tree.write(f"{LADDER}/mutants/Makefile", "")
    assert made(tree, "stage", f"{LADDER}/mutants")[1] == f"make -C {LADDER}/mutants run\n"


@pytest.mark.parametrize(
    "name, make",
    [
        ("02_reduction5", f"-C {LADDER}/02_reduction5"),
        ("vector/01_basic", f"-C {VECTOR}/01_basic"),
        ("W2L1/reduction0", f"-C {LECTURE} reduction0"),
        ("reduction5", f"-C {LADDER}/02_reduction5"),  # which the matrix ladder has first
        ("vector", f"-C {VECTOR}"),
    ],
)
def test_every_stage_is_a_target(tree, name, make):
    assert made(tree, "build", name)[1] == f"make {make}\n"


def test_an_unknown_target_is_one_sentence_after_the_choices(tree):
    tree.write("Makefile", ".PHONY: all\n")
    result, make = made(tree, "build", "nonsense")
    lines = result.stderr.splitlines()
    assert result.returncode == 2 and make == "" and "make knows no target 'nonsense'" in lines[-1]
    assert "  matrix/01_basic" in lines[:-1]


def test_a_target_that_is_nearly_right_gets_the_nearest(tree):
    tree.write("Makefile", ".PHONY: all readme \\\n  grade\n")
    result, make = made(tree, "build", "grad")
    assert result.returncode == 2 and make == "" and "'grad'; did you mean grade?" in result.stderr


def test_the_exit_code_is_make_s(tree):
    assert tree.run("stage", "1", FAKE_BUILD_FAILS="1").returncode == 2


@pytest.mark.parametrize("words", [[], ["nonsense"], ["stage"], ["bench", "a", "b"], ["readme", "--nonsense"]])
def test_a_bad_command_line_ends_with_2(tree, words):
    assert tree.run(*words).returncode == 2


def test_help_names_every_job(tree):
    result = tree.run("--help")
    assert result.returncode == 0
    for job in registry.listed("JOBS"):
        assert f"    {job} " in result.stdout


# ladder.json.


@pytest.mark.parametrize(
    "change, said",
    [
        ({"program": ""}, "lacks program"),
        ({"colour": "red"}, "unknown key colour"),
        ({"sweeps": {"lengths": {"title": "Other lengths"}}}, "lengths lacks inputs"),
        (
            {"sweeps": {"lengths": {"title": "a", "inputs": [{"n": 1}], "widths": 3}}},
            "lengths has the unknown key widths",
        ),
        ({"profiles": {"short": []}}, "short must hold one object"),
        ({"operator": "tensor"}, "there is no common/operators/tensor.h"),
        ({"baseline": "09_none"}, "the ladder has no such stage"),
        (
            {"profiles": {"short": {"input": {"n": 1}, "stages": ["09_none"]}}},
            "profiles, sweeps, details, reports or labels name 09_none",
        ),
        ({"details": ["09_none"]}, "profiles, sweeps, details, reports or labels name 09_none"),
    ],
)
def test_a_wrong_description_is_named(tmp_path, change, said):
    tree = Machine(tmp_path)
    tree.write(f"{VECTOR}/ladder.json", json.dumps({**LADDERS[VECTOR], **change}))
    refused(tree.run("list"), f"{VECTOR}/ladder.json", said)


def test_two_ladders_of_one_name_are_refused(tmp_path):
    tree = Machine(tmp_path)
    tree.write("assignment2/sums/vector/ladder.json", json.dumps({**LADDERS[VECTOR], "baseline": None}))
    refused(tree.run("list"), VECTOR, "assignment2/sums/vector", "rename one")


def test_the_ladders_of_this_tree_can_be_read():
    found = ladders.all_ladders()
    assert found[0].id == ladders.DEFAULT and found[0].folder == ROOT / LADDER
    for ladder in found:
        assert ladder.stages and set(ladder.analyze or ladder.main) == set(ladder.main), ladder.id
