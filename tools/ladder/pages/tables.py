"""The tables and captions that make readme puts between markers, made from what is stored."""

import os
import re

from . import (
    any_csv,
    chain_tables,
    counter_tables,
    counters,
    cpu_device,
    gemm_tables,
    grid_tables,
    ladders,
    markers,
    model_tables,
    outputs,
    peer_tables,
    results,
    timed,
)
from .ladders import Unusable
from .markdown import link, table
from .results import number


def image(gpu, name, text, page):
    """The plot, if it has been drawn."""
    path = ladders.ROOT / "plots" / f"{gpu}_{name}.png"
    return [f"![{text}]({os.path.relpath(path, page.parent)})"] if path.is_file() else []


def source(path, page):
    return f"From {link(results.shown(path), path, page)}."


def stage_link(stage, page):
    """To the stage's page; from that page, if it is the page of the whole ladder, to the stage's file."""
    if not stage:
        return ""
    is_here = stage.page == page and stage.folder == stage.ladder.folder
    if is_here and not stage.source.is_file():  # its kernels share a file of another name, which the page's text names
        return stage.name
    return link(stage.name, stage.source if is_here else stage.page, page)


# A ladder.

COUNTER_PLOTS = {
    "bytes_plot": "The bytes between kernel, L1, L2 and DRAM, with hit rates",
    "waits_plot": "The cycles of all warps, by what they wait for",
}
STAGE_COLUMNS = {"idea": "the idea", "change": "what changes", "removes": "what it removes"}
COUNTS = {"barriers": "barriers", "bytes": "bytes per lane and load", "sectors": "sectors per request"}


def stage_cells(stage, columns):
    said = markers.said(stage)
    cells = [said.get(column, "") for column in columns if column in STAGE_COLUMNS]
    if len(cells) == len(columns):
        return cells
    claims = markers.claims(stage)
    bytes_a_lane, sectors = (markers.pairs(claims["loads"]) or [("", "")])[0]
    # More than a lane can load is a bulk copy, which one lane asks for.
    alone = ", one lane" if bytes_a_lane and bytes_a_lane > 32 else ""
    counts = {"barriers": claims["barriers"].split("x")[0], "bytes": f"{bytes_a_lane}{alone}", "sectors": str(sectors)}
    return [said.get(column, "") if column in STAGE_COLUMNS else counts[column] for column in columns]


def stage_list(ladder, block):
    """What every stage's page says about the stage, in the columns that the marker names."""
    columns = block.words or ["change"]
    unknown = [column for column in columns if column not in {**STAGE_COLUMNS, **COUNTS}]
    if unknown:
        choices = ", ".join({**STAGE_COLUMNS, **COUNTS})
        raise Unusable(f"{block.where}: no column {', '.join(unknown)}; choose from {choices}")
    titles = {**STAGE_COLUMNS, **COUNTS, "barriers": f"barriers per {cpu_device.units_of(ladder)[0] or 'block'}"}
    lines = [[stage_link(stage, block.page), *stage_cells(stage, columns)] for stage in ladder.stages]
    words = [0, *(place for place, column in enumerate(columns, start=1) if column in STAGE_COLUMNS)]
    return table(["stage", *(titles[column] for column in columns)], lines, words)


def measured(row, name):
    rate = number(row, "gb_per_s")
    cells = [name, row["microseconds"], f"{rate:.0f}" if rate else ""]
    return cells + [row["percent_of_copy"], row["percent_of_datasheet"]]


def copy_cells(rows):
    """The copy kernel of the same run, in the columns of a stage."""
    rate, percent = timed.copy_rate(rows)
    microseconds = number(rows[0], "copy_microseconds")
    if not rate or not microseconds:
        return []
    same = all(timed.moves_as_much(row, rate) for row in rows)
    name = "copy kernel, same bytes" if same else f"copy kernel, {rate * microseconds / 1000:.1f} MB"
    return [[name, f"{microseconds:.2f}", f"{rate:.0f}", "100", f"{percent:.1f}" if percent else ""]]


def caption(ladder, path, rows, page):
    facts = results.environment(path.parent)
    clocks = "clocks as found"
    if "SM clock right after" in facts and "SM clock at most" in facts:
        clocks += f" (SM: {facts['SM clock right after']} right after the run, at most {facts['SM clock at most']})"
    row = next((row for row in rows if row["iterations"]), rows[0])  # of a stage that was not skipped
    return (
        f"{timed.described(ladder, row)}, cold cache, median of {row['iterations']} samples. "
        f"{row['device']}, {clocks}, CUDA {results.version(row['runtime'])}, {row['date']}. {source(path, page)}"
    )


def main_rows(folder, ladder):
    """(path, rows) of the ladder's main input; None if it was not measured."""
    path = folder / ladder.id / results.MAIN
    return (path, timed.read(path, ladder)) if path.is_file() else None


def whole_ladder(folder, ladder, page):
    """The plot and the table of the whole ladder."""
    found = main_rows(folder, ladder)
    if not found:
        return None
    path, rows = found
    header, speed_up = ["stage", "µs", "GB/s", "% of copy", "% of datasheet"], None
    if ladder.baseline:
        baseline = ladder.stage(ladder.baseline)
        header, speed_up = [*header, f"speed-up over {baseline.name}"], f"speedup_over_{baseline.namespace}"
        results.read(path, [speed_up])
    lines = []
    for row in rows:
        stage = ladder.stage(row["stage"])
        lines.append(measured(row, stage_link(stage, page) or row["stage"]) + ([row[speed_up]] if speed_up else []))
    lines += [cells + [""] * bool(speed_up) for cells in copy_cells(rows)]
    text = "Bandwidth of each stage beside the copy kernel and the datasheet"
    parts = image(folder.name, f"{ladder.id}_bandwidth", text, page)
    return "\n\n".join([*parts, table(header, lines), caption(ladder, path, rows, page)])


def ladder_figures(folder, ladder, page):
    """The same for the ladder's own page, and the bandwidth over inputs of one size."""
    parts = [whole_ladder(folder, ladder, page)]
    for name, described in ladder.sweeps.items():
        path = folder / ladder.id / f"{name}.csv"
        if path.is_file() and "program" not in described and timed.is_of_one_size(ladder, timed.read(path, ladder)):
            parts += image(folder.name, f"{ladder.id}_{name}", described["title"], page)
            parts.append(f"{described['title']}: {link(results.shown(path), path, page)}.")
    return "\n\n".join(filter(None, parts)) or None


def row_link(ladder, described, name, page):
    """The name of a row of a sweep, linked to the page that explains it: the stage's, or that of all controls."""
    stage = ladder.stage(name)
    if stage or "program" not in described:
        return stage_link(stage, page) or name
    controls = (ladder.folder / described["program"]).parent / "README.md"
    return link(name, controls, page) if controls.is_file() else name


def may_come(ladder, described):
    """The names that the next make bench may store of a sweep with a program: of the stages and of its controls."""
    if "program" not in described:
        return []
    sources = (ladder.folder / described["program"]).parent.glob("*.cu")
    controls = re.findall(r'"(\w+)", *"', "".join(source.read_text(encoding="utf-8") for source in sources))
    return [stage.name for stage in ladder.stages] + controls


def sweep(folder, ladder, name, block):
    """Microseconds: one row per stage, chosen or all; one column per input."""
    path, page, described = folder / ladder.id / f"{name}.csv", block.page, ladder.sweeps[name]
    if not path.is_file():
        return None
    rows = timed.read(path, ladder)
    lacking = sorted(set(block.words) - {row["stage"] for row in rows})
    unknown = set(lacking) - set(may_come(ladder, described))
    if unknown:
        raise Unusable(f"{block.where}: {results.shown(path)} has no stage {', '.join(sorted(unknown))}")
    if block.words and len(lacking) == len(block.words):
        return None
    inputs = list(dict.fromkeys(timed.given(ladder, row) for row in rows))
    times = {(row["stage"], timed.given(ladder, row)): row["microseconds"] for row in rows}
    copies = {timed.given(ladder, row): row["copy_microseconds"] for row in rows}
    lines = []
    for name in dict.fromkeys(row["stage"] for row in rows):
        if not block.words or name in block.words:
            lines.append([row_link(ladder, described, name, page)] + [times.get((name, one), "") for one in inputs])
    lines.append(["copy kernel, same bytes"] + [copies[one] for one in inputs])
    first = rows[0]
    of_type = described.get("type", ladder.type)
    said = (
        f"Microseconds per launch{', ' + of_type if of_type else ''}, back to back in one CUDA graph over 64 "
        "pairs of buffers or 600 MB, whichever is less: data that fits into the L2 cache comes from the cache. "
        f"Median of {first['iterations']} samples. {first['device']}, CUDA {results.version(first['runtime'])}, "
        f"{first['date']}. {source(path, page)}"
    )
    body = table(["stage"] + [" × ".join(one) for one in inputs], lines)
    text = "Microseconds of each stage, by shape"
    picture = [] if block.words else image(folder.name, f"{ladder.id}_{path.stem}", text, page)
    later = f"Not measured yet: {', '.join(lacking)}. `make bench S={ladder.id}/{path.stem}` measures and stores it."
    return "\n\n".join([*picture, body, said] + ([later] if lacking else []))


def against(row, before):
    now, then = number(row, "microseconds"), number(before, "microseconds")
    if then / now >= 2:
        return f"{row['stage']} is {then / now:.1f} times as fast as {before['stage']}."
    word = "less" if now < then else "more"
    return f"{row['stage']} takes {abs(100 * (now - then) / then):.1f} % {word} time than {before['stage']}."


def stage_figures(folder, stage, block):
    """One stage's row, the change from the stage before or the one that the marker names, and a few counters; None if
    the stage was not measured."""
    ladder, page = stage.ladder, block.page
    found = main_rows(folder, ladder)
    rows = {row["stage"]: row for row in found[1] if row["microseconds"]} if found else {}
    if stage.name not in rows:
        return None
    header = ["", "µs", "GB/s", "% of copy", "% of datasheet"]
    parts = [table(header, [measured(rows[stage.name], stage.name), *copy_cells(list(rows.values()))])]
    names = list(rows)
    before = block.values.get("against", names[max(names.index(stage.name) - 1, 0)])
    if not ladder.stage(before):
        raise Unusable(f"{block.where}: against={before}: {ladder.id} has no such stage")
    if before != stage.name and before in rows:
        parts.append(against(rows[stage.name], rows[before]))
    parts.append(caption(ladder, found[0], found[1], page))
    metrics = counters.metrics([*counters.FEW, *filter(None, block.values.get("also", "").split(","))])
    both = list(dict.fromkeys([ladder.stage(before), stage]))
    few = counter_tables.build(folder, page, metrics, both, counter_tables.profile_of(ladder, block))
    return "\n\n".join(parts + ([few] if few else []))


def all_counters(folder, ladder, block):
    """The stages that the marker names, or all; the counters that it names, or those that a comparison shows."""
    stages = counter_tables.chosen(ladder, block.words, block.where)
    names = block.values["counters"].split(",") if "counters" in block.values else counters.MANY
    profile = counter_tables.profile_of(ladder, block)
    return counter_tables.build(folder, block.page, counters.metrics(names), stages, profile)


# The blocks.


def ladder_of(block):
    """(ladder or None, the rest of the name): the ladder that the name begins with, or in whose folder the page is."""
    first, slash, rest = block.name.partition("/")
    climbed = {ladder.id: ladder for ladder in ladders.all_ladders()}
    if slash:
        if first not in climbed and first != results.HEADER:
            raise Unusable(
                f"{block.where}: there is no ladder {first}; there is {', '.join(climbed)}, {results.HEADER}"
            )
        return climbed.get(first), rest
    for ladder in climbed.values():
        if ladder.folder in (block.page.parent, block.page.parent.parent):
            return ladder, first
    choices = f"{next(iter(climbed), 'matrix')}/{first}"
    raise Unusable(f"{block.where} stands on a page of no ladder; name the ladder too, for example {choices}")


def stage_of(ladder, block):
    """The stage of a block: the one that it names, or that of the page; None on the ladder's own page."""
    name = block.words[0] if block.words else block.page.parent.name
    stage = next((stage for stage in ladder.stages if stage.name == name), None)
    if block.words and not stage:
        raise Unusable(f"{block.where}: there is no stage {name} in {ladder.id}")
    return stage


def computed(ladder, name, block):
    """The table of an experiment that was not run on a GPU, but on the CPU device; None if on neither."""
    path = results.store() / results.CPU_DEVICE / ladder.id / f"{name}.csv"
    if not path.is_file():
        return None
    columns = list(results.read(path)[0])
    picture = image(results.CPU_DEVICE, f"{ladder.id}_{name}", f"Plot of {name}.csv", block.page)
    return "\n\n".join([*picture, any_csv.build(path, block.page, [word for word in block.words if word in columns])])


def header_table(folder, name, block):
    """A table of the production header."""
    if folder is None:
        return None
    if name == "peers_plot":
        text = "Speed of the header and its peers beside a copy of the same bytes"
        return "".join(image(folder.name, "header_peers", text, block.page)) or None
    if name == "chain_plot":
        text = "What the header and its peers add to a layer"
        return "".join(image(folder.name, "header_chain", text, block.page)) or None
    if name == "end_to_end_plot":
        text = "Time of a step with patched norms and without norms, relative to the stock model"
        return "".join(image(folder.name, "header_end_to_end", text, block.page)) or None
    path = folder / results.HEADER / f"{name}.csv"
    plain = "shapes", "host_time"
    known = (*peer_tables.FILES, "chain", *plain, "end_to_end")
    if name not in known:
        plots = "peers_plot, chain_plot, end_to_end_plot"
        raise Unusable(f"{block.where}: the tables of the header are {', '.join(known)}, {plots}")
    if not path.is_file():
        return None
    if name == "chain":
        return chain_tables.markdown(path, block.page)
    if name == "end_to_end":
        return model_tables.markdown(path, block.page, block.words)
    if name in peer_tables.FILES:
        return peer_tables.markdown(path, block.page)
    return any_csv.build(path, block.page, block.words)


def build(block, folder):
    """The text of a block, from the folder of a GPU's results; None if nothing is stored for it yet."""
    ladder, name = ladder_of(block)
    page = block.page
    if ladder is None:
        return header_table(folder, name, block)
    if name == "stages":
        return stage_list(ladder, block)
    if name == "cpu_device":
        stage = stage_of(ladder, block)
        if not stage:
            raise Unusable(f"{block.where} must name the stage: <!-- table:cpu_device:begin NAME ... -->")
        markers.claims(stage)
        return cpu_device.lines(stage, page)
    if name in (ladder.computed or []) and not (folder and (folder / ladder.id / f"{name}.csv").is_file()):
        return computed(ladder, name, block)
    if name == "ncu_comparison":
        return cpu_device.beside_ncu(folder, ladder, page)
    if folder is None:
        return None
    if name == "figures":
        stage = stage_of(ladder, block)
        return stage_figures(folder, stage, block) if stage else ladder_figures(folder, ladder, page)
    if name == "ladder":
        return whole_ladder(folder, ladder, page)
    if name == "counters":
        return all_counters(folder, ladder, block)
    if name == "details":
        return counter_tables.details(folder, ladder, block)
    if name == "output":
        return outputs.markdown(folder, ladder, block)
    if name in ladder.sweeps:
        return sweep(folder, ladder, name, block)
    if name == "roofline":
        text = "The measured ceilings as slopes and lines, and the stages of every ladder below them"
        return "".join(image(folder.name, "roofline", text, page)) or None
    if name == "answers":
        return counter_tables.answers(folder, ladder, block)
    if name in COUNTER_PLOTS:
        return "".join(image(folder.name, f"{ladder.id}_{name[:-5]}", COUNTER_PLOTS[name], page)) or None
    path = folder / ladder.id / f"{name}.csv"
    if ladder.id == gemm_tables.FOLDER and name in gemm_tables.COLUMNS:
        return gemm_tables.markdown(path, page, block.words) if path.is_file() else None
    if (ladder.id, name) == (grid_tables.LADDER, grid_tables.SUMMARY):
        grid = path.with_name(grid_tables.GRID)
        return grid_tables.markdown(grid, page) if grid.is_file() else None
    if not path.parent.is_dir():
        return None
    if not path.is_file():
        there = ["stages", "ladder", "figures", "counters", "details", "cpu_device", "ncu_comparison", "roofline"]
        there += list(ladder.sweeps) + sorted({csv.stem for csv in path.parent.glob("*.csv")} - set(ladder.sweeps))
        raise Unusable(
            f"{block.where}: unknown table {name}: there is no {results.shown(path)}; known are {', '.join(there)}"
        )
    picture = image(folder.name, f"{ladder.id}_{name}", f"Plot of {name}.csv", page)
    return "\n\n".join([*picture, any_csv.build(path, page, block.words)])
