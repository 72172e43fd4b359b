"""The tables of what the CPU device counts: a stage's lines, and the sums beside those of Nsight Compute."""

from ..core import ladders, markers, registry, results
from ..core.ladders import Unusable
from ..core.markdown import code, how_we_measure, link, table
from ..core.results import number
from ..measure import cpu_device
from ..measure.cpu_device import (
    COMPARED,
    agree,
    comparison,
    elements,
    operations,
    profile_of,
    read,
    several,
    short,
    total,
    units_of,
)


def line_cells(stage, row, before, page):
    """The cells of one access of one line. Line and source are left out if the row before has them already."""
    requests, lanes = number(row, "requests"), number(row, "lanes")
    unit = "sector" if row["sectors"] else "wavefront"
    transfers, ideal = number(row, f"{unit}s"), number(row, f"ideal_{unit}s")
    place, file = row["line"], ladders.ROOT / row["file"]
    if row["file"] == "?":  # a header of the CPU device
        place = "of a library"
    elif file != stage.source:
        place = f"{link(file.name, file, page)} {place}"
    same = before and (before["file"], before["line"]) == (row["file"], row["line"])
    where = ["", ""] if same else [place, code(row["source"], 48)]
    what = f"{row['what']} {row['bytes_per_lane']} B"
    each, best = several(transfers / requests, unit), short(ideal / requests)
    each += "" if short(transfers / requests) == best else f" (at best {best})"
    return [*where, what, short(requests / units_of(stage.ladder)[1]), each, short(lanes / requests)]


def cells_of(stage, rows, page, first=False):
    accesses = [row for row in rows if row["sectors"] or row["wavefronts"]]
    if first:
        accesses = [row for row in accesses if launch_of(row) == launch_of(accesses[0])]
    return [line_cells(stage, row, before, page) for before, row in zip([None, *accesses], accesses)]


def launch_of(row):
    return row["kernel"], row["grid"], row["block"]


def like_another(block, stage, cells):
    """The sentence that stands for a table which would repeat another stage's."""
    name = block.values["like"]
    other = next((one for one in stage.ladder.stages if one.name == name), None)
    if not other:
        raise Unusable(f"{block.where}: like={name} must name a stage of {stage.ladder.id}")
    others = cells_of(other, read(cpu_device.path_of(other))[1], block.page)
    if [row[2:] for row in cells] != [row[2:] for row in others]:  # without line and source
        raise Unusable(f"{block.where}: the accesses of {stage.name} are not those of {name}; leave like={name} out")
    path = cpu_device.path_of(stage)
    named = name if other.page == block.page else link(name, other.page, block.page)
    return f"{stage.name}: the same as {named}, counted in {link(results.shown(path), path, block.page)}."


@registry.table(
    "cpu_device",
    form="[STAGE] loads=... stores=... asked=... barriers=... shuffles=... [lanes=...] [conflicts=...] [differs=...] [unread=...] [like=STAGE] [launch=first]",
    without_gpu=True,
)
def lines(_, ladder, block):
    """Every line of a stage: its requests, and what they cost, counted without a GPU; in the marker, what the page
    claims of them. lanes and conflicts are the lanes and wavefronts per request of the line with most shared loads,
    which a page need not claim; conflicts=WORD says that it speaks of them. With like=STAGE, a sentence takes the place of
    a table that repeats that stage's, access for access; if the two differ, there is no sentence."""
    stage, page = markers.stage_of(ladder, block), block.page
    if not stage:
        raise Unusable(f"{block.where} must name the stage: <!-- table:cpu_device:begin NAME ... -->")
    markers.claims(stage)
    path = cpu_device.path_of(stage)
    if not path.is_file():
        return None
    sums, rows = read(path)
    given = stage.ladder.analyze
    first = block.values.get("launch") == "first"
    cells = cells_of(stage, rows, page, first)
    if "like" in block.values:
        return like_another(block, stage, cells)
    unit = units_of(stage.ladder)[0]
    header = [
        "line",
        "source",
        "access",
        f"requests per {unit}" if unit else "requests",
        "each takes",
        "lanes",
    ]
    asked, moved = (total(sums, "global load", column) / elements(given) for column in ("bytes", "sectors"))
    barriers, shuffles = operations(rows)
    shown = "The first launch; the sums are those of all launches. " if first else ""
    caption = (
        f"{shown}Per {stage.ladder.element}, loads request {short(asked)} bytes and move {short(32 * moved)}; "
        f"{several(barriers, 'barrier')} per block, {several(shuffles, 'shuffle')} per warp. "
        f"{stage.ladder.described(given)}, {how_we_measure('counted', page)}. "
        f"From {link(results.shown(path), path, page)}."
    )
    return f"{table(header, cells, words=(0, 1, 2))}\n\n{caption}"


@registry.table("ncu_comparison")
def beside_ncu(folder, ladder, block):
    """The CPU device's sums beside those of Nsight Compute."""
    cells, used = [], set()
    for stage in ladder.stages if ladder.analyze else []:
        both = comparison(folder, stage)
        row = [stage.name]
        for title in COMPARED:
            here, there = both.get(title, (None, None))
            same = here is not None and agree(here, there)
            row.append("" if here is None else f"{here:,.0f}" if same else f"{here:,.0f} / {there:,.0f}")
        cells += [row] if both else []
        used |= {profile_of(folder, stage)[0].parent} if both else set()
    if not cells:
        return None
    sources = " and ".join(link(results.shown(path), path, block.page) for path in sorted(used))
    scale = elements(ladder.main) / elements(ladder.analyze)
    main = ladder.described(ladder.main)
    scaled = f"; those of {main} are divided by {short(scale)}" if folder / ladder.id / "ncu" in used else ""
    header = [f"one launch on {ladder.described(ladder.analyze)}", *COMPARED]
    return f"{table(header, cells)}\n\nThe GPU's counts: {sources}{scaled}."
