"""The site: every page and link of the tree finds its place, a broken link is found, and nothing is loaded from elsewhere."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import ROOT
from ladder.core import ladders, markers, results
from ladder.core.ladders import Unusable
from ladder.grader import exercises, grade
from ladder.pages import site as site_job
from ladder.pages import site_pages, site_reports

GENERATOR = pathlib.Path(sys.executable).with_name("zensical")


@pytest.fixture(scope="module")
def assembled(tmp_path_factory):
    """What the generator is given."""
    site = site_job.Site(tmp_path_factory.mktemp("site") / "pages")
    site.add_pages({})
    site.add_files()
    return site


def test_every_page_has_a_place(assembled):
    for page in assembled.pages:
        assert (assembled.folder / site_job.place_of(page)).is_file(), page


def test_every_link_of_a_page_leads_to_a_file_of_the_site(assembled):
    """The generator says so, too, where it is installed."""
    lost = []
    for page in assembled.pages:
        place = assembled.folder / site_job.place_of(page)
        text = re.sub(site_job.CODE, "", site_job.FENCE.sub("", place.read_text(encoding="utf-8")))
        links = [link for _, link, _ in site_job.LINK.findall(text) if not re.match(r"https?:|mailto:|#", link)]
        lost += [
            f"{page.relative_to(ROOT)}: {link}"
            for link in links
            if not (place.parent / link.partition("#")[0]).exists()
        ]
    assert lost == []


@pytest.fixture
def progress(tmp_path, monkeypatch):
    """A function that stores what the grader says of the file of an exercise, in a folder without any."""
    monkeypatch.setattr(exercises, "MINE", tmp_path)

    def store(asked, said):
        one = exercises.find(asked)
        exercises.folder_of(one.file)
        one.file.write_text("mine")
        known = exercises.progress()
        known["grades"][one.id] = [grade.digest("mine"), said]
        exercises.remember(known)

    return store


def test_the_table_of_exercises_shows_ones_own_progress(progress):
    text = (exercises.FOLDER / "README.md").read_text(encoding="utf-8")
    assert site_pages.with_progress(text) == text
    progress("05", "")
    shown = site_pages.with_progress(text)
    assert f"You have done 1 of {len(exercises.course())} exercises." in shown
    assert re.search(r"^\| `S=05` \|.*\| done \|$", shown, re.M) and re.search(
        r"^\| `S=06` \|.*\| open \|$", shown, re.M
    )
    table = [line for line in shown.splitlines() if line.startswith(("| exercise", "| `S=")) and "make" not in line]
    assert {line.count("|") for line in table} == {5}


def test_the_first_page_has_a_picture_a_button_and_the_plan(assembled, progress):
    text = site_pages.first_page(assembled)
    assert len(re.findall(r"^\[?!\[", text, re.M)) == 1 and "](plots/" in text
    assert re.findall(r"\[([^\]]*)\]\(([^)]*)\)\{ \.md-button", text) == [
        ("Write your first kernel", "exercises/index.md#the-first-one")
    ]
    assert text.count("| 1. Threads and bytes |") == 1 and "exercises." not in text.partition("## The plan")[0]
    first, second, third, *others = exercises.course()
    progress(first.asked, "")
    progress(second.asked, "the values are wrong")
    text = site_pages.first_page(assembled)
    assert (
        f"[Go on with {second.stage.name}]({site_job.place_of(second.page)})" in text and "You have done 1 of" in text
    )
    for one in exercises.course():
        progress(one.asked, "")
    assert "](COURSE.md#advanced){ .md-button" in site_pages.first_page(assembled)


@pytest.mark.parametrize("exercise", exercises.course()[:: len(exercises.course()) - 1] + [exercises.find("05")])
def test_the_page_of_an_exercise_leads(assembled, progress, exercise):
    """The commands, what the grader requires, the skeleton, the ways on, then hint after hint, and the solution last."""
    text = site_pages.exercise_page(assembled, exercise, site_job.title_of)
    skeleton, solution = exercise.skeleton([]).strip(), exercise.stage.source.read_text(encoding="utf-8").strip()
    parts = [f"make exercise S={exercise.asked}", f"make grade S={exercise.asked}", exercise.task]
    parts += [f"- {wish}" for wish in grade.wanted(exercise)]
    parts += [skeleton, "Lecture: [", "(../index.md)"]
    total = len(exercise.hints)
    for place, hint in enumerate(exercise.hints, 1):
        parts += [f"<summary>Hint {place} of {total}</summary>", hint]
    parts += ["</details>\n\n</details>", "<summary>Solution</summary>", solution, f"make solution S={exercise.asked}"]
    found = [text.find(part) for part in parts]
    assert -1 not in found and found == sorted(found)
    assert text.count("<details") == text.count("</details>") == total + 1
    assert ("Next: [" in text) == (exercise != exercises.course()[-1])
    assert "**" not in text.partition(exercise.task)[0]
    progress(exercise.asked, "")
    assert "**done**" in site_pages.exercise_page(assembled, exercise, site_job.title_of)


def test_a_tree_without_solutions_shows_none(assembled, progress, monkeypatch):
    monkeypatch.setattr(ladders.Stage, "is_left_out", True)
    text = site_pages.exercise_page(assembled, exercises.find("05"), site_job.title_of)
    assert "Solution" not in text and "Hint 3 of 3" in text


def test_the_menu_marks_what_is_done(assembled, progress):
    assert "✓" not in str(assembled.navigation())
    progress("05", "")
    assert str(assembled.navigation()).count("✓") == 1 and "05_warp_shuffle ✓" in str(assembled.navigation())


def test_a_link_of_a_page_that_leads_nowhere_is_named_with_its_page(assembled):
    page = ROOT / "README.md"
    assert assembled.target(page, "GLOSSARY.md#lane") == "GLOSSARY.md#lane"
    assert assembled.target(page, ".github/workflows/ci.yml") == "github/workflows/ci.yml.md", (
        "no place begins with a dot"
    )
    with pytest.raises(Unusable, match=r"README.md links lectures/none.md, which is not there"):
        assembled.target(page, "lectures/none.md")


def places(page):
    """The anchors that GitHub gives a page's headings, and those that the page has itself."""
    text = site_job.COMMENT.sub("", site_job.FENCE.sub("", page.read_text(encoding="utf-8")))
    headings = [
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE)
    ]
    slugs = [re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower())) for heading in headings]
    return {*slugs, *re.findall(r'<a id="([^"]+)"', text)}


def test_every_link_to_a_place_in_a_page_finds_it():
    """The generator checks this, too, where it is installed."""
    pages, lost = {page: places(page) for page in markers.pages()}, []
    for page in pages:
        text = site_job.FENCE.sub("", page.read_text(encoding="utf-8"))
        for path, place in re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", text):
            target = (page.parent / path).resolve() if path else page
            if target in pages and place not in pages[target]:
                lost.append(f"{page.relative_to(ROOT)}: {path}#{place}")
    assert lost == []


@pytest.fixture
def analyzed(tmp_path, monkeypatch):
    """The stages that simt/analyze is started for, in the order of the calls; nothing is built."""
    started = []

    def measure(name, folder, seconds, *words):
        started.append(name)
        pathlib.Path(words[words.index("--html") + 1]).write_text("<head></head>\n<body>counted</body>")

    monkeypatch.setattr(site_reports, "FOLDER", tmp_path)
    monkeypatch.setattr(site_reports.machine, "measure", measure)
    monkeypatch.setattr(site_reports.analyze, "make", lambda *words: started.append(words[1]))
    monkeypatch.setattr(ladders, "stages_of", lambda asked: ladders.find("05").ladder.stages)
    return started


def test_reports_are_made_anew_only_where_something_has_changed(analyzed, monkeypatch):
    ladder = ladders.find("05").ladder
    ids = [stage.id for stage in ladder.stages]
    changed = {}
    plain = site_reports.digest
    monkeypatch.setattr(site_reports, "digest", lambda file: changed.get(results.shown(file)) or plain(file))
    pages = site_reports.by_page()
    assert analyzed[0] == str(ladder.path) and sorted(analyzed[1:]) == sorted(ids)
    assert pages[ladders.find("05").page] == [ladders.find("05")] and len(pages) == len(ids)
    for file, again in (
        ("", []),
        (results.shown(ladders.find("05").source), [ladders.find("05").id]),
        (
            "common/kernel_helpers.cuh",
            [stage.id for stage in ladder.stages if "kernel_helpers.cuh" in stage.source.read_text()],
        ),
        ("simt/report/webpage.py", ids),
        ("simt/analysis/counters.cpp", ids),
        ("assignment1/rms_norm/vector/07_last_block/kernel.cuh", []),
    ):
        analyzed.clear()
        changed[file] = "another"
        site_reports.by_page()
        assert sorted(analyzed[1:]) == sorted(again), file
    site_reports.stored(ladders.find("05")).unlink()
    analyzed.clear()
    site_reports.by_page()
    assert analyzed[1:] == [ladders.find("05").id]


def test_a_stage_that_the_tree_leaves_out_has_no_report(analyzed, monkeypatch):
    monkeypatch.setattr(ladders.Stage, "is_left_out", property(lambda stage: stage.name == "05_warp_shuffle"))
    pages = site_reports.by_page()
    assert (
        ladders.find("05").page not in pages
        and ladders.find("05").id not in analyzed
        and ladders.find("06").id in analyzed
    )


def test_a_report_leads_back_and_follows_the_dark_switch(analyzed):
    stage = ladders.find("05")
    site_reports.by_page()
    text = site_reports.with_way_back(stage, site_job.place_of(stage.page))
    place = pathlib.PurePosixPath(site_reports.place_of(stage)).parent
    links = re.findall(r'(?:href|src)="([^"]+)"', text)
    found = [os.path.normpath(place / link) for link in links]
    assert found == ["report.js", "index.html", "assignment1/rms_norm/matrix/05_warp_shuffle/index.html"]
    assert text.index("<nav") < text.index("counted")


def named(menu):
    for entry in menu:
        values = entry.values() if isinstance(entry, dict) else [entry]
        for value in values:
            yield from named(value) if isinstance(value, list) else [value]


def test_the_menu_has_every_page_of_the_course_once(assembled):
    listed = list(named(assembled.navigation()))
    assert len(listed) == len(set(listed))
    pages = {str(site_job.place_of(page)) for page in assembled.pages}
    assert set(listed) <= pages | {"index.md"}
    assert {name for name in pages if name.startswith(("lectures/", "assignment"))} <= set(listed)


def test_comments_of_the_tools_and_links_of_code_are_left_out(assembled):
    page = ROOT / "assignment1/rms_norm/matrix/05_warp_shuffle/README.md"
    text = assembled.translate(page)
    assert "<!--" not in text and "[mutant](../mutants/index.md)" in text
    assert "[`make exercise S=05`](../../../../exercises/matrix/05_warp_shuffle.md)" in text
    assert "main.csv](../../../../profiling_results/h200/matrix/main.csv.md)" in text


def test_a_screen_reader_finds_no_empty_header_and_no_part_of_the_menu_without_a_name():
    label = '<label class="md-nav__link " for="__nav_9" id="__nav_9_label" tabindex="0">'
    icon = '<span class="md-nav__icon md-icon"></span>'
    html = (
        "<thead>\n<tr>\n<th></th>\n<th align='right'></th>\n</tr>\n</thead>\n<th align='left'></th><th>a</th>\n"
        f'{label}\n  {icon}\n</label>\n<nav class="md-nav" data-md-level="1" aria-labelledby="__nav_9_label" aria-expanded="true">\n'
        f'<label class="md-nav__title" for="__nav_9">\n{icon}\n  The\n lectures\n</label></nav>'
    )
    mended = site_job.mended(html)
    assert mended.startswith("<td align='left'></td><th>a</th>")
    assert f'{label}<span class="only-read">Pages of The lectures</span>\n  {icon}' in mended
    assert '<nav class="md-nav" data-md-level="1" aria-label="The lectures" aria-expanded="true">' in mended


@pytest.mark.parametrize(
    "tag, loaded",
    [
        ('<script src="https://example.com/a.js"></script>', "https://example.com/a.js"),
        ('<link rel="stylesheet" href="//example.com/a.css">', "//example.com/a.css"),
        ('<link href="http://example.com/a.css" rel="stylesheet">', "http://example.com/a.css"),
        ('<img alt="a" src="https://example.com/a.png">', "https://example.com/a.png"),
        ('<a href="https://example.com/"><img src="a.png"></a><link rel="canonical" href="https://example.com/">', ""),
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(tmp_path, tag, loaded):
    (tmp_path / "index.html").write_text(tag)
    if not loaded:
        return site_job.require_no_loads_from_elsewhere(tmp_path)
    with pytest.raises(Unusable, match=re.escape(f"index.html loads {loaded}")):
        site_job.require_no_loads_from_elsewhere(tmp_path)


@pytest.mark.skipif(not GENERATOR.is_file(), reason="Zensical is not installed: scripts/setup.sh site does it")
@pytest.mark.parametrize("link, said", [("none.md", "page does not exist"), ("b.md#none", "anchor does not exist")])
def test_a_broken_link_is_refused_by_the_generator(tmp_path, link, said):
    source = tmp_path / "pages"
    source.mkdir()
    (source / "index.md").write_text(f"# A\n\n[a](b.md#here), [b]({link})\n")
    (source / "b.md").write_text('# B\n\n<a id="here"></a>Here.\n')
    with pytest.raises(Unusable, match=said):
        site_job.generate(source, tmp_path / "out", ["index.md", "b.md"])


@pytest.mark.skipif(not GENERATOR.is_file(), reason="Zensical is not installed: scripts/setup.sh site does it")
def test_the_site_has_no_broken_link(tmp_path):
    out = tmp_path / "site"
    command = [sys.executable, "-B", "-m", "ladder", "site", "--no-reports", "--out", out]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": "tools", "PATH": "/usr/bin:/bin"}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    index = (out / "index.html").read_text(encoding="utf-8")
    assert "worker_from_file.js" in index and "iframe-worker" not in index
