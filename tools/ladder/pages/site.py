"""Builds the course as static pages in build/site; needs no GPU and, once set up, no network.

Every page of the tree becomes a page of the site at the same place, and every file that a page links becomes a page with
its text. Of each stage the report of simt/analyze, with pictures of its accesses, comes with it; counting them takes
minutes the first time. The site works from the file system: open build/site/index.html.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from ..core import ladders, machine, markers, results
from ..core.ladders import ROOT, Unusable
from ..grader import exercises
from . import site_pages, site_reports

TOOLS = ROOT / "tools/site"
BUILD = ROOT / "build"
PICTURE = re.compile(r"^(!\[[^\]]*\]\(([^)]+)\))$", re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^```.*?^```\s*$", re.MULTILINE | re.DOTALL)
CODE = r"`(?:[^`\n]|\n(?!\n))*`"  # which may go on in the next line of its paragraph
COMMENT = re.compile(r"^<!--.*?-->\n|<!--.*?-->", re.MULTILINE | re.DOTALL)
LOAD = re.compile(  # what a browser would fetch from another place
    r'<(?:img|script|iframe|source)\b[^>]*\bsrc="?((?:https?:)?//[^">\s]*)'
    r'|<link\b(?=[^>]*\brel="?(?:stylesheet|preconnect|icon))[^>]*\bhref="?((?:https?:)?//[^">\s]*)'
)
EMPTY_HEAD = re.compile(r"<thead>\s*<tr>\s*(?:<th[^>]*></th>\s*)+</tr>\s*</thead>\s*")
EMPTY_HEADER = re.compile(r"<th([^>]*)></th>")
MENU = re.compile(
    r'<nav class="md-nav" data-md-level="\d+" (?P<by>aria-labelledby="(?P<id>__nav_[\d_]+)_label") aria-expanded="\w+">'
    r'\s*<label class="md-nav__title" for="(?P=id)">\s*<span class="md-nav__icon md-icon"></span>\s*(?P<name>.*?)\s*</label>',
    re.S,
)
OPENER = re.compile(
    r'(<label class="[^"]*" for="(?P<id>__nav_[\d_]+)" id="(?P=id)_label" tabindex="0">)(?=\s*<span class="md-nav__icon)'
)
PICTURES = {".png", ".svg"}
LANGUAGES = {
    **dict.fromkeys([".cu", ".cuh"], "cuda"),
    **dict.fromkeys([".h", ".cpp"], "cpp"),
    ".py": "python",
    ".sh": "bash",
    ".json": "json",
    ".mk": "make",
    "Makefile": "make",
}
SHIM = "https://unpkg.com/iframe-worker/shim"  # what the generator would load for a search from the file system
NAVIGATION = [
    ("What it is", "README.md"),
    ("The course", "COURSE.md"),
    ("Which machine", "MACHINES.md"),
    ("Commands", "COMMANDS.md"),
    ("Debugging", "DEBUGGING.md"),
    ("Cheat sheet", "CHEATSHEET.md"),
    ("Questions", "FAQ.md"),
    ("Glossary", "GLOSSARY.md"),
    ("Lectures", "lectures/README.md"),
    ("Exercises", "exercises/README.md"),
    ("Assignment 1", "assignment1/README.md"),
    ("Assignment 2", "assignment2/q4_gemm/README.md"),
    ("Assignment 3", "assignment3/tensor_parallel/README.md"),
    ("The header", "include/rms_norm/README.md"),
    ("From Python", "python/README.md"),
    ("Beside others", "bench/README.md"),
    ("The CPU device", "simt/README.md"),
    ("Teaching", "TEACHING.md"),
    ("Adding to the course", "CONTRIBUTING.md"),
]


def arguments(parser):
    parser.add_argument("--out", type=pathlib.Path, default=BUILD / "site", help="where to, instead of build/site")
    parser.add_argument("--no-reports", action="store_true", help="without the reports of simt/analyze")


def place_of(page):
    """Where a page of the tree stands in the site, from its top: a folder's README is its index, but the tree's own, since
    the site has a first page of its own."""
    path = page.relative_to(ROOT)
    if page.parent == ROOT and page.name == "README.md":
        return path.with_name("about.md")
    return path.with_name("index.md") if path.name == "README.md" else path


def title_of(page):
    heading = re.search(r"^# (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return re.sub(r"[`*]", "", heading.group(1)) if heading else page.stem


class Site:
    """The Markdown that the generator reads, and the files that it copies."""

    def __init__(self, folder):
        self.folder = folder
        self.pages = markers.pages()
        self.linked = {}  # of files that are no pages: where they stand in the site

    def write(self, place, text):
        target = self.folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def target(self, page, link):
        """Where a link of a page leads in the site: itself if it leaves the tree."""
        path, mark, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:") or not path:
            return link
        file = (page.parent / path).resolve()
        if file.is_dir() and (file / "README.md").is_file():
            file /= "README.md"
        if not file.exists():
            raise Unusable(f"{results.shown(page)} links {link}, which is not there")
        if file in self.pages:
            place = place_of(file)
        else:
            place = self.linked.setdefault(file, self.place_of_file(file))
        return os.path.relpath(place, place_of(page).parent) + mark + anchor

    def place_of_file(self, file):
        # The generator leaves out what begins with a dot.
        path = pathlib.Path(*(part.lstrip(".") for part in file.relative_to(ROOT).parts))
        if file.is_dir():
            return path / "index.md"
        return path if file.suffix in PICTURES or is_binary(file) else path.with_name(path.name + ".md")

    def translate(self, page):
        """The page's text as the site has it."""
        return self.translated(page, page.read_text(encoding="utf-8"))

    def translated(self, page, text):
        """The text with links of this page that fit the site, and without the comments that only the tools read."""

        def outside_of_code(part):
            part = COMMENT.sub("", part)
            part = part.replace("<details>", '<details markdown="1">')
            part = re.sub(r"^( {2,3})(?=\S)", "    ", part, flags=re.MULTILINE)  # of list items
            part = re.sub(
                f"{CODE}|{LINK.pattern}",
                lambda found: self.code(page, found.group())
                if found.group().startswith("`")
                else found.group(1) + self.target(page, found.group(2)) + found.group(3),
                part,
            )
            return PICTURE.sub(r"[\1](\2)", part)  # a picture opens by itself in its own size, for small screens

        result, last = "", 0
        for fence in FENCE.finditer(text):
            result += outside_of_code(text[last : fence.start()]) + fence.group()
            last = fence.end()
        return result + outside_of_code(text[last:])

    def code(self, page, text):
        """Code within a line: what writes an exercise leads to its page."""
        asked = re.fullmatch(r"`make exercise S=(\S+)`", text)
        one = next((one for one in exercises.course() if asked and one.asked == asked[1]), None)
        if not one or one.page == page:
            return text
        return f"[{text}]({os.path.relpath(place_of(one.page), place_of(page).parent)})"

    def add_pages(self, reports):
        of_pages = {one.page: one for one in exercises.course()}
        self.write("index.md", site_pages.first_page(self))
        for page in self.pages:
            place = place_of(page)
            if page in of_pages:
                text = site_pages.exercise_page(self, of_pages[page], title_of)
            else:
                text = self.translate(page)
            if page == exercises.FOLDER / "README.md":
                text = site_pages.with_progress(text)
            for stage in reports.get(page, []):
                target = os.path.relpath(site_reports.place_of(stage), place.parent)
                text += f"\n[The report of `simt/analyze` on {stage.name}]({target}): every access, with pictures.\n"
            self.write(place, text)

    def add_files(self):
        """What the pages link: pictures as they are, texts as pages that show them, folders as lists."""
        for file, place in list(self.linked.items()):
            if file.is_dir():
                names = sorted(path.name + "/" * path.is_dir() for path in file.iterdir() if path.name[0] not in "._")
                self.write(place, hidden(file) + "".join(f"- `{name}`\n" for name in names))
            elif place.suffix == ".md":
                fence = "`" * 5
                language = LANGUAGES.get(file.suffix) or LANGUAGES.get(file.name, "text")
                text = file.read_text(encoding="utf-8")
                self.write(place, f"{hidden(file)}{fence}{language}\n{text.rstrip()}\n{fence}\n")
            else:
                (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, self.folder / place)

    def navigation(self):
        """The menu: the parts of the course, and below each the pages that lie in its folders."""
        menu = [{"Start": "index.md"}]
        for title, name in NAVIGATION:
            page = ROOT / name
            if page not in self.pages:
                continue
            if name == "exercises/README.md":
                menu.append({title: exercise_menu(page)})
                continue
            below = [
                one
                for one in self.pages
                if page.name == "README.md" and page.parent != ROOT and one != page and page.parent in one.parents
            ]
            menu.append({title: self.branch(page, below) if below else str(place_of(page))})
        return menu

    def branch(self, page, below):
        """A page and those in the folders below it, each of which may have pages below itself."""
        entries = [str(place_of(page))]
        parents = {
            other: [one for one in below if one.name == "README.md" and one != other and one.parent in other.parents]
            for other in below
        }
        folders = [ladder.folder for ladder in ladders.all_ladders() if "lectures" not in ladder.path.parts]
        heads = [one for one in below if not parents[one]]  # ladders in the course's order, lectures by name
        heads.sort(key=lambda one: folders.index(one.parent) if one.parent in folders else len(folders))
        for head in heads:
            under = [one for one in below if one != head and head.name == "README.md" and head.parent in one.parents]
            entries.append({short_title(head): self.branch(head, under) if under else str(place_of(head))})
        return entries


def exercise_menu(page):
    """The list, and below it the exercises of each ladder."""
    found = site_pages.states()
    of_ladders = {}
    for one in exercises.course():
        mark = " ✓" if found.get(one.asked) == "done" else ""
        of_ladders.setdefault(one.stage.ladder.id, []).append({one.stage.name + mark: str(place_of(one.page))})
    return [str(place_of(page)), *({name: entries} for name, entries in of_ladders.items())]


def short_title(page):
    """For the menu: 05_warp_shuffle of "05_warp_shuffle: the sum goes through registers", but a lecture's whole title."""
    title = title_of(page)
    return title if "lectures" in page.parts or len(title) <= 30 else title.partition(":")[0]


def hidden(file):
    """The head of a page that shows a file: the search does not list it."""
    return f"---\nsearch:\n  exclude: true\n---\n\n# {results.shown(file)}\n\n"


def is_binary(file):
    return b"\0" in file.read_bytes()[:4096]


def require_no_loads_from_elsewhere(folder):
    found = [
        f"{page.relative_to(folder)} loads {next(filter(None, load.groups()))}"
        for page in sorted(folder.rglob("*.html"))
        for load in LOAD.finditer(page.read_text(encoding="utf-8"))
    ]
    if found:
        raise Unusable("\n  ".join([f"{len(found)} loads from elsewhere in {results.shown(folder)}:", *found]))


def mended(html):
    """Without what a screen reader stumbles over: headers of tables that say nothing, and parts of the menu without a name."""
    html = EMPTY_HEADER.sub(r"<td\1></td>", EMPTY_HEAD.sub("", html))
    names = {found["id"]: re.sub(r"\s+", " ", found["name"]) for found in MENU.finditer(html)}
    html = MENU.sub(lambda found: found.group().replace(found["by"], f'aria-label="{names[found["id"]]}"'), html)
    return OPENER.sub(lambda found: f'{found[1]}<span class="only-read">Pages of {names[found["id"]]}</span>', html)


def generate(source, out, navigation):
    """Runs the generator on the Markdown, which refuses a link to a page or a place that is not there, and has its pages
    load nothing from elsewhere."""
    generator = pathlib.Path(sys.executable).with_name("zensical")
    if not generator.is_file():
        raise Unusable("Zensical is needed to build the site; scripts/setup.sh site installs it into .venv")
    settings = (TOOLS / "zensical.json").read_text(encoding="utf-8")
    work = source.parent
    described = json.loads(settings) | {"docs_dir": source.name, "site_dir": "html", "nav": navigation}
    (work / "mkdocs.yml").write_text(json.dumps(described, indent=1), encoding="utf-8")  # JSON is YAML
    shutil.rmtree(work / "html", ignore_errors=True)
    command = [generator, "build", "--strict"]
    done = subprocess.run(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = machine.without_colours(done.stdout.decode(errors="replace")).partition("Traceback")[0]
    if done.returncode:
        raise Unusable(f"{said}the generator failed with exit code {done.returncode}")
    for page in (work / "html").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        top = os.path.relpath(work / "html", page.parent)
        page.write_text(mended(text).replace(SHIM, f"{top}/worker_from_file.js"), encoding="utf-8")
    shutil.copyfile(TOOLS / "404.html", work / "html/404.html")
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(work / "html", out)


def build(out, reports):
    """The site of the tree in `out`. What the generator keeps of the pages stays in build/site_work/ for the next time."""
    work = BUILD / "site_work"
    with exercises.locked(work / "lock"):
        shutil.rmtree(work / "pages", ignore_errors=True)
        site = Site(work / "pages")
        site.add_pages(reports)
        site.add_files()
        for name in ("site.css", "reachable.js", "report.js", "worker_from_file.js"):
            shutil.copyfile(TOOLS / name, site.folder / name)
        for stage in sum(reports.values(), []):
            site.write(site_reports.place_of(stage), site_reports.with_way_back(stage, place_of(stage.page)))
        generate(site.folder, out, site.navigation())
    require_no_loads_from_elsewhere(out)


def run(given):
    out = given.out.absolute()
    build(out, {} if given.no_reports else site_reports.by_page())
    print(f"site: {results.shown(out)}/index.html is built: open it in a browser")
