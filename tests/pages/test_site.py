"""The site: every page and link of the tree finds its place, a broken link is found, and nothing is loaded from elsewhere."""

import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT
from ladder import __main__ as command_line
from ladder.core.ladders import Unusable
from ladder.pages import site as site_job

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


def test_a_link_of_a_page_that_leads_nowhere_is_named_with_its_page(assembled):
    page = ROOT / "README.md"
    assert assembled.target(page, "GLOSSARY.md#lane") == "GLOSSARY.md#lane"
    with pytest.raises(Unusable, match=r"README.md links lectures/none.md, which is not there"):
        assembled.target(page, "lectures/none.md")


def named(menu):
    for entry in menu:
        values = entry.values() if isinstance(entry, dict) else [entry]
        for value in values:
            yield from named(value) if isinstance(value, list) else [value]


def test_the_menu_has_every_page_of_the_course_once(assembled):
    listed = list(named(assembled.navigation()))
    assert len(listed) == len(set(listed))
    pages = {str(site_job.place_of(page)) for page in assembled.pages}
    assert set(listed) <= pages
    assert {name for name in pages if name.startswith(("lectures/", "assignment"))} <= set(listed)


def test_comments_of_the_tools_and_links_of_code_are_left_out(assembled):
    page = ROOT / "assignment1/rms_norm/matrix/05_warp_shuffle/README.md"
    text = assembled.translate(page)
    assert "<!--" not in text and "[mutant](../mutants/index.md)" in text
    assert "main.csv](../../../../profiling_results/h200/matrix/main.csv.md)" in text


def check(folder, capsys):
    code = command_line.main(["site", "--check", "--out", str(folder)])
    return code, capsys.readouterr().err


def test_a_broken_link_is_found(tmp_path, capsys):
    (tmp_path / "other.html").write_text('<p id="here">')
    page = tmp_path / "index.html"
    page.write_text('<a href="other.html#here">a</a><a href="https://example.com/">b</a><img src="other.html">')
    assert check(tmp_path, capsys) == (0, "")
    for tag, said in {
        '<a href="none.html">': "index.html links none.html, which is not there",
        '<a href="other.html#there">': "index.html links other.html#there, and the page has no such place",
        '<script src="https://example.com/a.js"></script>': "index.html loads https://example.com/a.js",
        '<link rel="stylesheet" href="//example.com/a.css">': "index.html loads //example.com/a.css",
    }.items():
        page.write_text(tag)
        code, error = check(tmp_path, capsys)
        assert code == 1 and said in error
    page.unlink()
    (tmp_path / "other.html").unlink()
    assert check(tmp_path, capsys)[0] == 1  # no page at all


@pytest.mark.skipif(not GENERATOR.is_file(), reason="Zensical is not installed: scripts/setup.sh site does it")
def test_the_site_has_no_broken_link(tmp_path):
    out = tmp_path / "site"
    command = [sys.executable, "-B", "-m", "ladder", "site", "--no-reports", "--out", out]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": "tools", "PATH": "/usr/bin:/bin"}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    index = (out / "index.html").read_text(encoding="utf-8")
    assert "worker_from_file.js" in index and "iframe-worker" not in index
