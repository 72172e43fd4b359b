"""Every question of every page says on which machine it can be answered, and has its answer in a fold."""

import re

import pytest
from conftest import ROOT
from ladder.core import ladders, markers

HEADING = re.compile(r"^## (?:Questions to try|Three questions)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
QUESTION = re.compile(
    r"^\*\*(\d+)\.\*\* \[(any machine|GPU)\] (\S.*?)\n\n<details><summary>Answer</summary>\n\n(\S.*?)\n\n</details>$",
    re.MULTILINE | re.DOTALL,
)
PAGES = {page: HEADING.findall(page.read_text(encoding="utf-8")) for page in markers.pages()}
WITH_QUESTIONS = [page for page, sections in PAGES.items() if sections]


def asked(text):
    """[(number, mark, question, answer)] of the questions that are whole."""
    return QUESTION.findall(text)


@pytest.mark.parametrize("page", WITH_QUESTIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_question_has_a_mark_and_an_answer(page):
    for text in PAGES[page]:
        found = asked(text)
        assert [int(number) for number, *_ in found] == list(range(1, len(found) + 1)) and found
        assert (
            text.count("<details>") == text.count("</details>") == len(found) == len(re.findall(r"^\*\*\d", text, re.M))
        )
        assert not re.search(r"^- .*\?", QUESTION.sub("", text), re.MULTILINE), "a question without a number"
        for _, _, question, answer in found:
            words = re.sub(r"^(<!--|\|).*\n?", "", answer, flags=re.MULTILINE).split()  # without tables
            assert len(words) >= 8, f"{question}: {answer}"


def test_every_stage_and_lecture_has_questions():
    pages = {stage.page for ladder in ladders.all_ladders() for stage in ladder.stages}
    assert {page for page in pages if not PAGES[page]} == set()


def test_a_question_without_mark_or_answer_is_found():
    whole = "\n**1.** [GPU] Why?\n\n<details><summary>Answer</summary>\n\nBecause.\n\n</details>\n"
    assert asked(whole) == [("1", "GPU", "Why?", "Because.")]
    assert asked(whole.replace("[GPU] ", "")) == asked(whole.replace("<details>", "")) == []
    assert asked(whole.replace("Because.", "")) == []
