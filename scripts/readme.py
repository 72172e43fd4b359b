#!/usr/bin/env python3
"""Writes the figures into the pages: make readme, or scripts/readme.py [--check] [--gpu NAME].

In every .md file, what stands between
    <!-- table:NAME:begin -->           <!-- figures:begin -->
    <!-- table:NAME:end -->      or     <!-- figures:end -->
is made anew from profiling_results/<gpu>/. NAME is a table that tables.py knows, or the name of a stored CSV; the
columns to show may follow the word begin: <!-- table:cold_warm:begin buffer_bytes cold_gb_per_s -->. Where nothing is
stored yet, a block keeps its sentence. --check writes nothing, names the files that would change, and ends with exit
code 1 if there are any.
"""

import argparse
import re
import sys

import results
import tables
from results import LADDER, ROOT, Unusable

MARKER = re.compile(r"^<!-- (?:table:([\w-]+)|(figures)):(begin|end)((?: [\w]+)*) -->$", re.MULTILINE)
ELSEWHERE = {".git", ".venv", "build", "node_modules"}


def pages():
    found = (path for path in ROOT.rglob("*.md") if not ELSEWHERE & set(path.relative_to(ROOT).parts))
    return sorted(found)


def required(page):
    """The blocks that a page must have."""
    if page == ROOT / "README.md":
        return ["matrix_ladder"]
    if page == ROOT / LADDER / "README.md":
        return ["figures"]
    if (page.parent / "kernel.cuh").is_file() and ROOT / LADDER in page.parents:
        return ["figures", "cpu_device"]
    if page == ROOT / "assignment1/rms_norm/PROFILING.md":
        return ["counters"]
    return []


def written(name):
    return name if name == "figures" else f"table:{name}"


def blocks(page, text):
    """(name, columns, start, end) of each block's inside."""
    found, opened = [], None
    for marker in MARKER.finditer(text):
        name, columns = marker.group(1) or marker.group(2), marker.group(4).split()
        where = f"{results.shown(page)}: <!-- {written(name)}:{marker.group(3)} -->"
        if marker.group(3) == "begin":
            if opened:
                raise Unusable(f"{where} comes before <!-- {written(opened[0])}:end -->")
            opened = (name, columns, marker.end())
        elif not opened or opened[0] != name:
            raise Unusable(f"{where} has no <!-- {written(name)}:begin --> before it")
        else:
            found.append((*opened, marker.start()))
            opened = None
    if opened:
        name = written(opened[0])
        raise Unusable(f"{results.shown(page)}: <!-- {name}:begin --> has no <!-- {name}:end -->")
    for name in required(page):
        if name not in [block[0] for block in found]:
            raise Unusable(f"{results.shown(page)} lacks the marker <!-- {written(name)}:begin -->")
    return found


def renewed(page, folder):
    """The page's text now, and as the stored files want it."""
    text = page.read_text(encoding="utf-8")
    result, last = "", 0
    for name, columns, start, end in blocks(page, text):
        inside = tables.build(name, columns, folder, page)
        result += text[last:start] + (text[start:end] if inside is None else f"\n{inside}\n")
        last = end
    return text, result + text[last:]


def main():
    parser = argparse.ArgumentParser(description="Writes the figures into the pages, from the stored results.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the files that are stale")
    parser.add_argument("--gpu", default="", help="whose stored results; by default h200")
    arguments = parser.parse_args()
    try:
        folder = results.stored(arguments.gpu)
        new = {page: renewed(page, folder) for page in pages()}
    except Unusable as error:
        sys.exit(f"readme: {error}")
    stale = [page for page, (before, after) in new.items() if before != after]
    if not arguments.check:
        for page in stale:
            page.write_text(new[page][1], encoding="utf-8")
            print(f"readme: {results.shown(page)}")
        source = f"from {results.shown(folder)}" if folder else "since no GPU is stored"
        print(f"readme: {len(stale)} files written, {source}")
    elif stale:
        names = ", ".join(results.shown(page) for page in stale)
        sys.exit(f"readme: stale, and make readme renews them: {names}")


if __name__ == "__main__":
    main()
