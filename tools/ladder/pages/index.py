"""The indexes of the tree: each ladder with its question, each file of profiling_results/ with the command that writes
it, and each plot."""

import fnmatch
import html
import re

from ..core import ladders, registry, results
from ..core.ladders import Unusable
from ..core.markdown import link, table
from ..core.results import number
from ..measure import timed

TITLE = re.compile(r"<(?:dc:)?title>(.*?)</(?:dc:)?title>", re.DOTALL)


def kind_of(path, climbed):
    """(what it is, the command that writes it) of a file; Unusable if no command does."""
    gpu, *inside = path.relative_to(results.store()).parts
    ladder = climbed.get(inside[0]) if len(inside) > 1 else None
    name, stem = "/".join(inside), path.stem
    if gpu == results.CPU_DEVICE and not ladder:
        return "the compiler, whose loads are counted", "make analyze S=all"
    if gpu == results.CPU_DEVICE:
        counted = stem in [stage.name for stage in ladder.stages]
        what = "accesses, line by line" if counted else "experiments that compute no time"
        return what, f"make analyze S={ladder.id}/all"
    for pattern, (what, command) in registry.listed("STORES").items():
        if fnmatch.fnmatch(name, pattern):
            return what, command.format(ladder=inside[0])
    if ladder and path.suffix == ".csv" and len(inside) == 2:
        if stem in ladder.sweeps:
            return "the stages on other inputs", f"make bench S={ladder.id}"
        if ladder.has_experiments:
            return "experiments", f"make bench S={ladder.id}"
    raise Unusable(
        f"{results.shown(path)}: no command is known that writes it; add it to STORES of a plugin.py, or delete it"
    )


@registry.table("index/profiling_results", without_gpu=True)
def stored(folder, ladder, block):
    """Every file of profiling_results/, by folder, with the command that writes it."""
    climbed = {ladder.id: ladder for ladder in ladders.all_ladders()}
    found = {}
    for path in sorted(results.store().glob("*/**/*"), key=lambda path: (path.parent, path.name)):
        if path.is_file() and "logs" not in path.parts:
            what, command = kind_of(path, climbed)
            found.setdefault((path.parent, command), {}).setdefault(what, []).append(path)
    lines = []
    for (place, command), kinds in found.items():
        holds = []
        for what, paths in kinds.items():
            names = [link(path.name, path, block.page) for path in paths]
            holds.append(f"{', '.join(names) if len(names) < 7 else f'{len(names)} files'}: {what}")
        folder = link(f"{place.relative_to(results.store())}/", place, block.page)
        lines.append([folder, f"`{command}`", "<br>".join(holds)])
    return table(["folder", "written by", "holds"], lines, range(3))


@registry.table("index/ladders", form="[LADDER ...]", without_gpu=True)
def all_questions(folder, ladder, block):
    """Every ladder that has a question, those that the marker names first: its stages, and how far it climbs on its main
    input."""
    asking = {one.id: one for one in ladders.all_ladders() if one.question}
    unknown = [name for name in block.words if name not in asking]
    if unknown:
        raise Unusable(f"{block.where}: no ladder {', '.join(unknown)} has a question; {', '.join(asking)} have one")
    lines, measured = [], {}
    for name in dict.fromkeys([*block.words, *asking]):
        one = asking[name]
        rows = main_rows(folder, one)
        cells = [link(one.id, one.folder / "README.md", block.page), one.question, str(len(one.stages))]
        lines.append(cells + climbed(one, rows))
        if rows:
            gpus = f"{one.ranks} × " * (one.ranks > 1) + rows[0]["device"]
            measured.setdefault(gpus, []).append(one.id)
    header = ["ladder", "the question", "stages", "naive to best, µs", "times as fast", "% of the copy's speed"]
    text, kinds = table(header, lines, range(2)), sorted(measured, key=lambda gpus: -len(measured[gpus]))
    said = kinds[:1] + [f"{', '.join(measured[gpus])}: {gpus}" for gpus in kinds[1:]]
    return f"{text}\n\n{'; '.join(said)}." if said else text


def main_rows(folder, ladder):
    """What was timed on its main input; nothing if the ladder was not measured."""
    path = results.measured(folder, ladder.id) / ladder.id / results.MAIN if folder else None
    return [row for row in timed.read(path, ladder) if row["microseconds"]] if path and path.is_file() else []


def climbed(ladder, rows):
    """The cells of its first stage and its fastest one."""
    if not rows:
        return [""] * 3
    first = next((row for row in rows if row["stage"] == ladder.baseline), rows[0])
    best = min(rows, key=lambda row: number(row, "microseconds"))
    times = [number(row, "microseconds") for row in (first, best)]
    return [f"{first['microseconds']} → {best['microseconds']}", f"{times[0] / times[1]:.1f}", best["percent_of_copy"]]


@registry.table("index/plots", without_gpu=True)
def plots(folder, ladder, block):
    """Every plot and what it shows, by its title."""
    lines = []
    for path in sorted((ladders.ROOT / "plots").glob("*.svg")):
        title = TITLE.search(path.read_text(encoding="utf-8"))
        lines.append([link(path.name, path, block.page), html.unescape(title.group(1)) if title else ""])
    return table(["plot", "what it shows"], lines, range(2))
