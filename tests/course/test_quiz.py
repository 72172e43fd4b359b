"""The quiz: every question hides what would give it away, and its answer is the mutant's marked line."""

import argparse
import re

import pytest
from ladder.core import ladders
from ladder.grader import exercises, quiz

QUESTIONS = quiz.questions()


def test_nearly_every_mutant_is_a_question():
    asked = {question.id for question in QUESTIONS}
    every = {f"{ladder.id}/{name}" for ladder in ladders.all_ladders() for name in ladder.mutants}
    assert asked <= every and every - asked == {"W2L3/unpaired_in_place"}, "a mutant marks its line with // the fault"


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_a_question_hides_name_and_comments(question):
    code = "\n".join(question.lines)
    assert question.name not in code and "fault" not in code and "Mutant" not in code
    assert "//" not in code and "/*" not in code
    assert "__global__" in code or "parts::launch" in question.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_the_answer_is_the_marked_line(question):
    source = question.path.read_text(encoding="utf-8").splitlines()
    marked = [line.split("//")[0].strip() for line in source if quiz.FAULT.search(line)]
    shown = [question.lines[number - 1].strip() for number in question.wrong]
    assert all(any(code in line for line in shown) for code in marked if code), (marked, shown)
    assert 1 <= len(question.wrong) <= 4 and question.shows in quiz.SHOWS


def test_what_shows_a_fault_is_what_rejects_the_mutant():
    shows = {question.id: question.shows for question in QUESTIONS}
    assert shows["matrix/missing_broadcast_barrier"] == "order"
    assert shows["matrix/assumed_alignment"] == "error"
    assert shows["matrix/overrun_by_one"] == "outside"
    assert shows["matrix/input_before_wait"] == "gpu"
    assert shows["matrix/eps_outside_root"] == "values"
    assert shows["tensor_parallel/more_blocks_than_fit"] == "error"


def test_a_guess_is_checked_and_remembered(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(exercises, "MINE", tmp_path)

    def run(guess=""):
        code = quiz.run(argparse.Namespace(ladder="", guess=guess))
        return code, capsys.readouterr().out

    first, second = QUESTIONS[:2]
    code, said = run()
    assert not code and f"Question 1 of {len(QUESTIONS)}" in said and first.lines[0] in said
    line = min(first.wrong)
    other = next(name for name in quiz.SHOWS if name != first.shows)
    assert run(f"1 {other}") == (3, "Neither is right. Look again at what each thread reads, and who has written it.\n")
    assert run(f"{line} {other}")[1].startswith("The line is right.")
    assert run(f"1 {first.shows}")[1].startswith("That would show it.")
    code, said = run(f"{line} {first.shows}")
    assert code == 0 and "Both are right." in said and "the fault" in said
    assert second.lines[3] in run()[1]
    with pytest.raises(ladders.BadCommand, match="give a line and one of"):
        run("somewhere")
    code, said = run("solution")
    assert code == 0 and re.search(r"^2 answered", said, re.M)
