"""The slides of the core weeks: made from the pages, with their pictures, and without a line of a solution."""

import argparse
import re

import pytest
from ladder.core.ladders import Unusable
from ladder.grader import exercises, student_tree
from ladder.pages import slides


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("slides")
    slides.run(argparse.Namespace(out=out))
    return out


def test_four_weeks_and_the_pages_between_the_first_and_the_last():
    weeks = slides.weeks()
    assert [week.number for week in weeks] == [1, 2, 3, 4]
    of_stages = [page.parent.name for page in weeks[2].pages if re.match(r"\d", page.parent.name)]
    assert [int(name[:2]) for name in of_stages] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_week_has_its_pictures_and_as_many_slides_in_both_forms(made, number):
    markdown = (made / f"week_{number}.md").read_text()
    page = (made / f"week_{number}.html").read_text()
    pictures = re.findall(r"\]\((pictures/[^)]+)\)", markdown)
    assert pictures and all((made / name).is_file() for name in pictures)
    assert sorted(re.findall(r'<img src="([^"]+)"', page)) == sorted(pictures)
    count = markdown.removeprefix(slides.FRONT).count("\n---\n") + 1
    assert page.count("<section>") == count > 15 and "<table>" in page
    assert "<!--" not in markdown and "](../" not in markdown


def test_no_slide_shows_a_line_of_a_solution(made):
    text = "\n".join(student_tree.bare(line) for path in made.glob("*.md") for line in path.read_text().splitlines())
    for exercise in exercises.course():
        assert not [line for line in student_tree.solution(exercise) if line in text], exercise.id


def test_a_long_table_says_that_it_goes_on():
    rows = [f"| [{i}](x.md) | 1 |" for i in range(20)]
    shown = slides.table("\n".join(["| a | b |", "| --- | ---: |", *rows]))
    assert "| 11 | 1 |" in shown and "| 12 |" not in shown and shown.endswith("\n\n8 more rows are on the page.")


def test_a_plan_without_weeks_is_refused(monkeypatch, tmp_path):
    (tmp_path / "COURSE.md").write_text("# Plan\n\n## The core\n\n## Advanced\n")
    monkeypatch.setattr(slides, "ROOT", tmp_path)
    with pytest.raises(Unusable, match="no table of the core's weeks"):
        slides.weeks()
