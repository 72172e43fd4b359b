"""The site in Chromium: each kind of page is accessible, as far as axe tells, and fits a phone; the dark switch; 404.html."""

import functools
import http.server
import pathlib
import shutil
import subprocess
import sys
import threading

import pytest
from conftest import ROOT
from ladder.core import ladders
from ladder.grader import exercises, grade
from ladder.pages import site, site_reports

GENERATOR = pathlib.Path(sys.executable).with_name("zensical")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
api = pytest.importorskip(
    "playwright.sync_api", reason="Playwright is not installed: .venv/bin/pip install -r requirements-browser.txt"
)
axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright",
    reason="axe is not installed: .venv/bin/pip install -r requirements-browser.txt",
)
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed: apt-get install chromium"),
    pytest.mark.skipif(not GENERATOR.is_file(), reason="Zensical is not installed: scripts/setup.sh site does it"),
]
SUB = "course"  # the folder of the server in which the site lies
KINDS = {
    "first page": "index.html",
    "README": "about.html",
    "plan": "COURSE.html",
    "list of exercises": "exercises/index.html",
    "exercise": "exercises/matrix/05_warp_shuffle.html",
    "lecture": "lectures/W2L3_transpose/index.html",
    "ladder": "assignment1/rms_norm/matrix/index.html",
    "stage": "assignment1/rms_norm/matrix/06_vectorized/index.html",
    "tables": "bench/norm/index.html",
    "glossary": "GLOSSARY.html",
    "cheat sheet": "CHEATSHEET.html",
    "source": "lectures/W3L1_roofline/kernel.cuh.html",
    "report": "reports/matrix/05_warp_shuffle.html",
    "not found": "none/none.html",
}
SIZES = {"desk": {"width": 1400, "height": 900}, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where a server has the site below SUB, with one report, and one exercise done."""
    folder = tmp_path_factory.mktemp("browser")
    stage = ladders.find("05")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exercises, "MINE", folder / "my")
        patch.setattr(site_reports, "FOLDER", folder / "reports")
        done = exercises.find("W1L1/1")
        exercises.folder_of(done.file)
        done.file.write_text("mine")
        exercises.remember({**exercises.progress(), "grades": {done.id: [grade.digest("mine"), ""]}})
        target = site_reports.stored(stage)
        target.parent.mkdir(parents=True)
        words = [ROOT / "tests/harness/analyze/transpose.cu", "-DPADDING=0", "--html", target, "--", "a", "b"]
        subprocess.run([ROOT / "simt/analyze", *words], check=True, capture_output=True)
        site.build(folder / "server" / SUB, {stage.page: [stage]})

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

        def send_error(self, code, *words):
            body = (folder / "server" / SUB / "404.html").read_bytes()
            self.send_response(code)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    handler = functools.partial(Handler, directory=folder / "server")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{SUB}/"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium():
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("size, scheme", [("desk", "light"), ("phone", "dark")])
def test_axe_finds_nothing_and_no_page_is_wider_than_its_screen(address, chromium, size, scheme):
    context = chromium.new_context(viewport=SIZES[size], color_scheme=scheme)
    page, found = context.new_page(), {}
    for kind, place in KINDS.items():
        page.goto(address + place)
        page.wait_for_timeout(100)  # until the theme has wrapped the tables
        said = [f"{one['id']}: {one['nodes'][0]['html']}" for one in axe.Axe().run(page).response["violations"]]
        wide = page.evaluate("document.documentElement.scrollWidth")
        said += [f"{wide} pixels wide"] if wide > SIZES[size]["width"] else []
        unnamed = page.evaluate(UNNAMED)
        said += [f"a tab stop without a name: {one}" for one in unnamed]
        if said:
            found[kind] = said
    context.close()
    assert found == {}


# What the keyboard reaches, and has neither words nor a label.
UNNAMED = """() => [...document.querySelectorAll("a[href], button, [tabindex='0']")]
  .filter(one => one.checkVisibility() && !one.innerText.trim() && !one.textContent.trim())
  .filter(one => !one.getAttribute("aria-label") && !one.title && !one.querySelector("img[alt]"))
  .map(one => one.outerHTML.slice(0, 200))"""


def ground(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_a_report_is_as_dark_as_the_pages_whatever_the_system_says(address, chromium):
    context = chromium.new_context(color_scheme="light")
    page = context.new_page()
    page.goto(address + KINDS["report"])
    before = ground(page)
    page.get_by_role("link", name="05_warp_shuffle").click()
    assert page.url == f"{address}assignment1/rms_norm/matrix/05_warp_shuffle/index.html"
    page.locator("label[for=__palette_1]").click()
    assert page.evaluate("document.body.dataset.mdColorScheme") == "slate"
    page.goto(address + KINDS["report"])
    assert ground(page) != before
    context.close()


def test_the_page_of_what_is_not_found_leads_to_the_first_page_below_a_folder(address, chromium):
    page = chromium.new_page()
    for place in ("none.html", "lectures/none.html", "a/b/c/none.html"):
        assert page.goto(address + place).status == 404
        link = page.get_by_role("link", name="The first page")
        page.wait_for_function("document.getElementById('home').pathname != '/'")
        assert link.evaluate("link => link.href") == f"{address}index.html"
    page.close()


def test_hints_open_one_after_the_other_and_the_solution_is_last(address, chromium):
    page = chromium.new_page()
    page.goto(address + KINDS["exercise"])
    names = page.locator("summary")
    visible = [names.nth(place).inner_text() for place in range(names.count()) if names.nth(place).is_visible()]
    assert visible == ["Hint 1 of 3", "Solution"]
    page.get_by_text("Hint 1 of 3").click()
    assert page.get_by_text("Hint 2 of 3").is_visible() and not page.get_by_text("Hint 3 of 3").is_visible()
    page.close()
