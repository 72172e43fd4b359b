"""The reports of simt/analyze on every stage, for the site. They stay in build/site_reports/, and a report is made anew only
where what it shows has changed: the stage's source, what that includes, the ladder's input, or simt/analyze itself.
"""

import concurrent.futures
import functools
import hashlib
import os
import pathlib
import re
from html import escape

from ..core import ladders, machine
from ..core.ladders import ROOT, options
from ..measure import analyze

FOLDER = ROOT / "build/site_reports"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
OF_SIMT = ("analyze", "simtcc", "*.py", "analysis/**/*", "driver/**/*", "include/**/*", "report/**/*", "runtime/**/*")


def place_of(stage):
    """Where it stands in the site."""
    return f"reports/{stage.id}.html"


def stored(stage):
    return FOLDER / f"{stage.id}.html"


@functools.cache
def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


@functools.cache
def included(file):
    """The files of the tree that a source includes, and itself."""
    found, waiting = {file}, [file]
    while waiting:
        one = waiting.pop()
        for name in INCLUDE.findall(one.read_text(encoding="utf-8")):
            places = [(one.parent / name).resolve(), ROOT / name, ROOT / "include" / name]
            path = next((place for place in places if place.is_file()), None)
            if path and path not in found:
                found.add(path)
                waiting.append(path)
    return found


@functools.cache
def of_simt():
    files = {file for pattern in OF_SIMT for file in (ROOT / "simt").glob(pattern)}
    return sorted(file for file in files if file.is_file() and "__pycache__" not in file.parts)


def key_of(stage):
    """A line for each file that the report depends on, with its digest, and one for the program's options."""
    others = {one.source for one in stage.ladder.stages if one.source != stage.source}
    own = included(stage.source) if stage.source.is_file() else set()  # in W4L1 several stages share a file
    files = sorted({*(included(stage.ladder.folder / "main.cu") - others), *own, *of_simt()})
    of_files = [f"{digest(file)} {file.relative_to(ROOT)}" for file in files]
    return "\n".join([" ".join(map(str, words_of(stage))), *of_files, ""])


def words_of(stage):
    return [*stage.option, "--profile", *options(stage.ladder.analyze)]


def is_current(stage):
    key = stored(stage).with_suffix(".key")
    return stored(stage).is_file() and key.is_file() and key.read_text(encoding="utf-8") == key_of(stage)


def report(stage):
    target = stored(stage)
    target.parent.mkdir(parents=True, exist_ok=True)
    program = ROOT / "build/analyze" / stage.ladder.path / stage.ladder.program
    words = ["--program", program, "--root", ROOT, "--html", target, "--name", stage.name, "--", *words_of(stage)]
    machine.measure(stage.id, FOLDER, 600, ROOT / "simt/analyze", *words)
    target.with_suffix(".key").write_text(key_of(stage), encoding="utf-8")


def by_page():
    """{page: the stages whose report belongs to it}; what has changed is counted first."""
    stages = [stage for stage in ladders.stages_of("all") if not stage.is_left_out]
    stale = [stage for stage in stages if not is_current(stage)]
    FOLDER.mkdir(parents=True, exist_ok=True)
    for ladder in dict.fromkeys(stage.ladder for stage in stale):
        of_ladder = [stage for stage in stale if stage.ladder == ladder]
        print(f"site: {len(of_ladder)} of {len(ladder.stages)} reports of {ladder.path}", flush=True)
        analyze.make("-C", str(ladder.path), "BACKEND=cpu", "analyzed")
        with concurrent.futures.ThreadPoolExecutor(machine.cores()) as pool:
            list(pool.map(report, of_ladder))
    pages = {}
    for stage in stages:
        if stored(stage).is_file():
            pages.setdefault(stage.page, []).append(stage)
    return pages


def with_way_back(stage, page):
    """The report as a page of the site: with links to its stage's page and to the first one, in the site's light or dark."""
    top = os.path.relpath(".", pathlib.Path(place_of(stage)).parent)
    way = f'<a href="{top}/index.html">The RMSNorm ladder</a> › <a href="{top}/{page.with_suffix(".html")}">{escape(stage.name)}</a>'
    text = stored(stage).read_text(encoding="utf-8")
    text = text.replace("</head>", f'<script src="{top}/report.js"></script></head>', 1)
    return text.replace("<body>", f'<body><nav aria-label="Way back">{way}</nav>', 1)
