"""Writes the tables and the figures of sentences into the pages, from what is stored; needs no GPU.

Every .md file may have places for tables between markers (core/markers.py says how they look) and for figures in
sentences (figures.py). Where nothing is stored yet, a place keeps its sentence.
"""

import textwrap

from ..core import ladders, markers, registry, results
from ..core.ladders import Unusable
from . import figures, tables


def arguments(parser):
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the pages that are stale")
    parser.add_argument("--names", action="store_true", help="write nothing; print what a marker may name")
    parser.add_argument("--gpu", default="", help="whose stored results; by default the H200's")


def required():
    """The blocks that a page must have: {page: names}."""
    wanted = {}
    for ladder in ladders.all_ladders():
        for stage in ladder.stages:
            if stage.folder != ladder.folder:
                wanted[stage.page] = ["figures", "cpu_device"] if ladder.analyze else ["figures"]
    wanted[ladders.ROOT / "README.md"] = [f"{ladders.DEFAULT}/ladder"]
    return wanted


def renewed(page, folder, wanted=()):
    """The page's text now, and as the stored files want it."""
    text = page.read_text(encoding="utf-8")
    result, last, blocks = "", 0, markers.blocks(page, text)
    for name in wanted:
        if name not in [block.name for block in blocks]:
            raise Unusable(f"{results.shown(page)} lacks the marker {markers.written(name)}")
    for block in blocks:
        inside = tables.build(block, folder)
        result += text[last : block.start] + (text[block.start : block.end] if inside is None else f"\n{inside}\n")
        last = block.end
    return text, result + text[last:]


def print_names():
    """Every table by name, with the words and values of its marker."""
    registry.load_pages()
    for name, one in registry.TABLES.items():
        print(f"{name} {one.form}".strip())
        print(textwrap.indent(textwrap.dedent(f"    {one.about}"), "    "))
    print(
        "<csv> [COLUMN ...] [COLUMN=VALUE,...]\n    any other CSV that is stored of the ladder, and "
        + ", ".join(registry.stored())
    )


def run(given):
    if given.names:
        return print_names()
    folder, wanted = results.stored(given.gpu), required()
    lacking = [page for page in wanted if not page.is_file()]
    if lacking:
        raise Unusable(f"there is no {', '.join(map(results.shown, lacking))}")
    stale, wrong, of_sentences = {}, [], figures.Figures(folder)
    for page in markers.pages():
        before, with_tables = renewed(page, folder, wanted.get(page, ()))
        after, found = of_sentences.renewed(page, with_tables)
        wrong += map(str, found)
        if after != before:
            stale[page] = after
    if given.check:
        if stale:
            pages_named = ", ".join(map(results.shown, stale))
            raise Unusable("\n  ".join([f"stale, and make readme renews them: {pages_named}", *wrong]))
        return
    for page, text in stale.items():
        page.write_text(text, encoding="utf-8")
        print(f"readme: {results.shown(page)}")
    print("".join(f"  {said}\n" for said in wrong), end="")
    print(
        f"readme: {len(stale)} files written, {f'from {results.shown(folder)}' if folder else 'since no GPU is stored'}"
    )
