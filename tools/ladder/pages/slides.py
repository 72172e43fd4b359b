"""Makes slides for the core weeks of COURSE.md from the pictures and tables of the pages that each week reads.

A slide is a picture or a table of a page, under the heading where it stands and the first sentence there; each page
begins with its first paragraph, and solutions, which the pages fold, are left out. Each week is Markdown in the form of
Marp and reveal.js, week_1.md, and the same as one HTML page that needs nothing else, week_1.html: arrow keys turn it,
and printing gives a sheet per slide.
"""

import html
import pathlib
import re
import shutil
from dataclasses import dataclass, field

from ..core import results
from ..core.ladders import ROOT, Unusable

BUILD = ROOT / "build/slides"
WEEK = re.compile(r"^\| (\d+)\. ([^|]+) \| (.+) \| ([^|]+) \| *(\d+) \|$", re.M)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
PICTURE = re.compile(r"^!\[([^\]]*)\]\(([^)\s]+)\)$")
FOLD = re.compile(r"^<details>.*?^</details>$", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
SENTENCE = re.compile(r".*?[.?!](?= [A-Z\d]|$)")
MOST_ROWS = 12  # of a table, beside its heading
FRONT = "---\nmarp: true\npaginate: true\n---\n\n"
STYLE = """
:root { color-scheme: light dark; }
html { scroll-snap-type: y mandatory; font: 2.1vmin/1.4 system-ui, sans-serif; }
body { margin: 0; }
section { box-sizing: border-box; min-height: 100vh; padding: 5vmin 7vmin; scroll-snap-align: start; break-after: page; }
h1 { font-size: 6vmin; } h2 { font-size: 4vmin; margin: 0; } p, li { font-size: 2.6vmin; }
img { width: 100%; height: 66vh; object-fit: contain; object-position: left; background: white; }
table { border-collapse: collapse; } td, th { border: 1px solid gray; padding: .3em .7em; }
code { font-family: ui-monospace, monospace; } @page { size: A4 landscape; margin: 0; }
"""
KEYS = """
addEventListener("keydown", event => {
  const step = {ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1}[event.key];
  if (!step) return;
  event.preventDefault();
  scrollBy(0, step * innerHeight);
});
"""


def arguments(parser):
    parser.add_argument("--out", type=pathlib.Path, default=BUILD, help="where to, instead of build/slides")


@dataclass
class Week:
    number: int
    title: str
    read: str
    exercises: str
    pages: list = field(default_factory=list)


def weeks():
    """Those of the core, as COURSE.md has them."""
    text = (ROOT / "COURSE.md").read_text(encoding="utf-8")
    core = text[text.index("\n## The core") : text.index("\n## Advanced")]
    found = [Week(int(number), title, read, todo) for number, title, read, todo, hours in WEEK.findall(core)]
    if not found:
        raise Unusable("COURSE.md has no table of the core's weeks: | 1. TITLE | what to read | exercises | hours |")
    for week in found:
        week.pages = list(dict.fromkeys(pages_of(week.read)))
    return found


def pages_of(read):
    """The pages that a cell links; of [01](...) to [07](...) those between, too."""
    begin = None
    for link in LINK.finditer(read):
        page = ROOT / link[2].partition("#")[0]
        if begin and read[: link.start()].endswith(" to "):
            stages = sorted(page.parent.parent.glob("[0-9]*/README.md"))
            yield from (one for one in stages if begin < one < page)
        yield page
        begin = page


def plain(text):
    """Without links, whose targets a slide has not."""
    return LINK.sub(r"\1", text)


def sections(page):
    """(heading, its text) of a page, without folds, comments and code."""
    text = page.read_text(encoding="utf-8")
    for pattern in (FOLD, FENCE, COMMENT):
        text = pattern.sub("", text)
    parts = re.split(r"^#+ (.*)$", text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def blocks(text):
    """Its paragraphs, pictures and tables."""
    return [one.strip() for one in re.split(r"\n\s*\n", text) if one.strip()]


def first_paragraph(text):
    for block in blocks(text):
        if block[0] not in "|!*-#>" and not re.match(r"\d+\. ", block):
            return plain(" ".join(block.split()))
    return ""


def first_sentence(text):
    said = SENTENCE.match(first_paragraph(text))
    return said.group() if said else ""


def table(block):
    """A table without links, and without the rows that a slide has no room for."""
    lines = [plain(line) for line in block.split("\n") if line.startswith("|")]
    head, rows = lines[:2], lines[2:]
    more = len(rows) - MOST_ROWS
    return "\n".join([*head, *rows[:MOST_ROWS]]) + (f"\n\n{more} more rows are on the page." if more > 0 else "")


def slides_of(page, pictures):
    """The slides of a page; pictures: {name: file} of those that they show."""
    found = []
    (title, lead), *others = sections(page)
    for heading, text in [(title, lead), *others]:
        begin = f"## {plain(heading)}\n\n{first_sentence(text)}".strip()
        for block in blocks(text):
            picture = PICTURE.match(block.split("\n")[0])
            if picture:
                file = (page.parent / picture[2]).resolve()
                pictures[file.name] = file
                found.append(f"{begin}\n\n![{picture[1]}](pictures/{file.name})")
            elif block.startswith("|"):
                found.append(f"{begin}\n\n{table(block)}")
    return [f"# {plain(title)}\n\n{first_paragraph(lead)}".strip(), *found]


def deck(week, pictures):
    """The slides of a week."""
    found = [f"# Week {week.number}: {week.title}\n\n{plain(week.read)}"]
    for page in week.pages:
        found += slides_of(page, pictures)
    return [*found, f"# The exercises of week {week.number}\n\n{plain(week.exercises)}"]


def as_html(title, slides):
    from markdown_it import MarkdownIt  # of requirements.txt

    render = MarkdownIt("commonmark", {"html": False}).enable("table").render
    body = "\n".join(f"<section>\n{render(slide)}</section>" for slide in slides)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        f"<style>{STYLE}</style></head>\n<body>\n<main>\n{body}\n</main>\n<script>{KEYS}</script>\n</body>\n</html>\n"
    )


def run(given):
    pictures, made = {}, []
    (given.out / "pictures").mkdir(parents=True, exist_ok=True)
    for week in weeks():
        slides = deck(week, pictures)
        name = f"week_{week.number}"
        (given.out / f"{name}.md").write_text(FRONT + "\n\n---\n\n".join(slides) + "\n", encoding="utf-8")
        text = as_html(f"Week {week.number}: {week.title}", slides)
        (given.out / f"{name}.html").write_text(text, encoding="utf-8")
        made.append(f"{name}.html, {len(slides)} slides")
    for name, file in pictures.items():
        shutil.copyfile(file, given.out / "pictures" / name)
    print(f"slides: {results.shown(given.out)}: {'; '.join(made)}")
