"""The way in: the course by weeks names every lecture, ladder and exercise; each page names its prerequisites."""

import re

import pytest
from conftest import ROOT
from ladder import __main__ as command_line
from ladder.core import ladders, markers
from ladder.pages import terms

COURSE = (ROOT / "COURSE.md").read_text(encoding="utf-8")
LADDERS = ladders.all_ladders()


def test_the_course_has_every_lecture_and_ladder():
    linked = {(ROOT / target).resolve() for target in re.findall(r"\]\(([^)#]+)\)", COURSE)}
    assert {ladder.folder / "README.md" for ladder in LADDERS} - linked == set()
    assert set((ROOT / "lectures").glob("W*/README.md")) - linked == set()


def exercises_of_course():
    """The stages that the tables of the course name as exercises: `01` to `07`, `W2L1/0` to `W2L1/8`, `vector/02`."""
    return exercises_in(" ".join(line.split("|")[3] for line in COURSE.splitlines() if re.match(r"\| \d", line)))


def exercises_in(text):
    for first, last in re.findall(r"`([\w/]+)`(?: to `([\w/]+)`)?", text):
        ladder, _, number = first.rpartition("/")
        end = (last or first).rpartition("/")[2]
        for one in range(int(number), int(end) + 1) if number.isdigit() else []:
            yield ladders.find(f"{ladder or ladders.DEFAULT}/{one}").id


def test_the_course_has_every_exercise():
    written = {f"{path.parent.name}/{path.stem}" for path in (ROOT / "exercises").glob("*/*.md")}
    assert set(exercises_of_course()) == written


def test_what_teaching_assigns_is_an_exercise_of_that_week():
    teaching = (ROOT / "TEACHING.md").read_text(encoding="utf-8")
    weeks = {
        row.split("|")[1].strip()[0]: row.split("|") for row in COURSE.splitlines() if re.match(r"\| [1-4]\.", row)
    }
    assigned = [row.split("|") for row in teaching.splitlines() if re.match(r"\| [1-4] \|", row)]
    assert [row[1].strip() for row in assigned] == sorted(weeks)
    for row in assigned:
        there = weeks[row[1].strip()]
        assert set(exercises_in(row[4])) <= set(exercises_in(there[3])) and row[5].strip() == there[4].strip(), row
    practical = teaching.partition("## A practical exam")[2]
    assert set(exercises_in(practical)) <= set(exercises_of_course())
    assert not set(exercises_in(practical)) & {one for row in assigned for one in exercises_in(row[4])}


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: ladder.id)
def test_pages_name_their_prerequisites(ladder):
    for page in {ladder.folder / "README.md", *(stage.page for stage in ladder.stages)}:
        assert re.search(r"^\*Prerequisites: [^*]+\*$", page.read_text(encoding="utf-8"), re.MULTILINE), page


def test_words_of_the_glossary_are_linked_at_their_first_use(capsys):
    assert command_line.main(["terms"]) == 0, capsys.readouterr().err


def test_a_word_without_a_link_is_found():
    text = "# About lanes\n\n`lane` and [a lane](x.md).\n\nEach lane reads. A lane.\n"
    assert [text[where:].split()[0:2] for where, *_ in terms.unlinked(text)] == [["lane", "reads."]]
    linked = text.replace("Each lane", "Each [lane](../GLOSSARY.md#lane)")
    assert terms.unlinked(linked) == []
    assert [word for _, word, _ in terms.unlinked("A race.\n\nSee [race](GLOSSARY.md#race).\n")] == ["race"]


def test_the_longer_of_two_words_that_begin_alike_is_linked():
    """A link within a link, and the rest of a word behind it, is what the shorter one left in three pages."""
    text = "A barrier over the grid is slow. A barrier of a block is not, nor are two barriers.\n"
    linked = terms.linked(text, "GLOSSARY.md")
    assert linked == (
        "A [barrier over the grid](GLOSSARY.md#grid-barrier) is slow. A [barrier](GLOSSARY.md#barrier) of a block is not, "
        "nor are two barriers.\n"
    )
    assert terms.linked(linked, "GLOSSARY.md") == linked


def test_no_page_has_a_link_within_a_link():
    """Nor a letter right after one."""
    within = re.compile(r"\]\([^()\s]*\)(?:\w|[^\[\]]*\]\()")
    assert within.search("a [barrier](G.md#b)r over\nthe grid](G.md#c)") and within.search("[lane](G.md#lane)s")
    assert not within.search("[a](b.md), [c](d.md)")
    for page in markers.pages():
        text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert not within.search(text), page


def test_every_table_has_the_row_above_its_dashes():
    """Without it, Markdown prints the whole table as text."""
    headless = re.compile(r"^(?! *\|).*\n *\|[ :|]*-[ :|-]*\|$", re.MULTILINE)
    assert headless.search("text\n\n  |---|---:|\n  | a | 1 |\n")
    assert not headless.search("text\n\n| | |\n|---|---:|\n| a | 1 |\n")
    for page in markers.pages():
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert not headless.search(text), (page, headless.search(text)[0])


def test_no_line_has_swallowed_a_heading_or_an_item():
    """Paragraphs wrapped anew had done so on three pages."""
    swallowed = re.compile(r"^(?! *\|).*(?:\S #{2,} \S|[.:;)] - [A-Z*\[]).*$", re.MULTILINE)
    assert swallowed.search("One is enough. ## The change") and swallowed.search("  a row. - **A place.** Here")
    assert not swallowed.search("## The change\n- **A place.** Here - and there\n| a. - B |")
    for page in markers.pages():
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert not swallowed.search(text), (page, swallowed.search(text)[0])


def test_every_word_is_in_the_glossary():
    text = (ROOT / terms.GLOSSARY).read_text(encoding="utf-8")
    assert {place for place in terms.TERMS if f'<a id="{place}"></a>' not in text} == set()
