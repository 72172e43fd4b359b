"""The tables of a ladder: the list of its stages, their times on the main input and on others, and their counters."""

import re

from ..core import markers, registry, results
from ..core.ladders import Unusable
from ..core.markdown import how_we_measure, image, link, source, table
from ..core.results import number
from ..measure import counters, cpu_device, outputs, timed
from . import counter_tables


def stage_link(stage, page):
    """To the stage's page; from that page, if it is the page of the whole ladder, to the stage's file."""
    if not stage:
        return ""
    is_here = stage.page == page and stage.folder == stage.ladder.folder
    if is_here and not stage.source.is_file():  # its kernels share a file of another name, which the page's text names
        return stage.name
    return link(stage.name, stage.source if is_here else stage.page, page)


WEIGHT = 0.02  # of the bytes: a stage that also reads a weight still moves the copy kernel's
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


@registry.table("stages", form="[idea|change|removes|barriers|bytes|sectors ...]", without_gpu=True)
def stage_list(_, ladder, block):
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
    rate, datasheet, copied = timed.copy_rate(rows[0]), number(rows[0], "datasheet_gb_per_s"), rows[0]["copied_bytes"]
    if not rate:
        return []
    moved = [1e3 * number(row, "gb_per_s") * number(row, "microseconds") for row in rows if row["gb_per_s"]]
    same = all(abs(count / float(copied) - 1) < WEIGHT for count in moved)
    name = "copy kernel, same bytes" if same else f"copy kernel, {float(copied) / 1e6:.1f} MB"
    percent = f"{100 * rate / datasheet:.1f}" if datasheet else ""
    return [[name, rows[0]["copy_microseconds"], f"{rate:.0f}", "100", percent]]


def caption(ladder, path, rows, page, short=False):
    """What a table shows; short: on the pages of stages, which leave the clocks to that of their ladder."""
    row = next((row for row in rows if row["iterations"]), rows[0])  # of a stage that was not skipped
    facts, clocks, cold = results.environment(path.parent), "clocks as found", "cold cache"
    if "SM clock right after" in facts and "SM clock at most" in facts:
        clocks += f" (SM: {facts['SM clock right after']} right after the run, at most {facts['SM clock at most']})"
    cold = how_we_measure(cold, page) if short else f"{cold}, median of {row['iterations']} samples"
    return (
        f"{timed.described(ladder, row)}, {cold}. {row['device']}, "
        f"{'' if short else clocks + ', '}CUDA {results.version(row['runtime'])}, {row['date']}. {source(path, page)}"
    )


def main_rows(folder, ladder):
    """(path, rows) of the ladder's main input; None if it was not measured."""
    path = folder / ladder.id / results.MAIN
    return (path, timed.read(path, ladder)) if path.is_file() else None


def other_gpus(folder, ladder, row):
    """[(name, link target, {stage: row})] of the ladder's main input on the other GPUs that measured the same input."""
    found = []
    for gpu in results.stored_gpus(f"{ladder.id}/{results.MAIN}"):
        path, rows = main_rows(results.store() / gpu, ladder)
        same = timed.given(ladder, rows[0]) == timed.given(ladder, row)
        if gpu != folder.name and same:
            found.append((gpu.upper(), path, {row["stage"]: row for row in rows if row["microseconds"]}))
    return found


def changed_places(here, there):
    """[(slower, faster)] of neighbours in the order here that are in the other order there; each by more than the spread
    of both."""

    def is_faster(rows, a, b):
        gap = number(rows[b], "microseconds") / number(rows[a], "microseconds") - 1
        return 100 * gap > number(rows[a], "spread_percent") + number(rows[b], "spread_percent")

    order = sorted(here.keys() & there.keys(), key=lambda name: (number(here[name], "microseconds"), name))
    pairs = zip(order, order[1:])
    return [(fast, slow) for fast, slow in pairs if is_faster(here, fast, slow) and is_faster(there, slow, fast)]


def on_others(others, here, page):
    """A sentence for each other GPU: where its figures are stored, and which stages change places there."""
    said = []
    for gpu, path, there in others:
        changed = [f"{slow} is faster than {fast}" for fast, slow in changed_places(here, there)]
        order = "the stages come in the same order, but for differences within the spread"
        if changed:
            order = f"{', and '.join(changed)}; in this table it is the other way round"
        said.append(f"On the {gpu} of {link(results.shown(path), path, page)}, {order}.")
    return said


@registry.table("ladder", form="[plot] [idea STAGE|FROM..TO ...]")
def whole_ladder(folder, ladder, block):
    """The plot and the table of all stages; with the word plot, the plot alone, and with the word idea, a short table of
    the stages named after it."""
    page = block.page
    found = main_rows(folder, ladder)
    if not found:
        return None
    path, rows = found
    text = "Bandwidth of each stage beside the copy kernel and the datasheet"
    parts = image(folder.name, f"{ladder.id}_bandwidth", text, page)
    if block.words == ["plot"]:
        return "".join(parts) or None
    if block.words[:1] == ["idea"]:
        return short_table(ladder, path, rows, block)
    header, speed_up = ["stage", "µs", "GB/s", "% of copy", "% of datasheet"], None
    if ladder.baseline:
        baseline = ladder.stage(ladder.baseline)
        header, speed_up = [*header, f"speed-up over {baseline.name}"], f"speedup_over_{baseline.namespace}"
        results.read(path, [speed_up])
    others = other_gpus(folder, ladder, rows[0])
    header += [f"µs, {gpu}" for gpu, _, _ in others]
    lines = []
    for row in rows:
        stage = ladder.stage(row["stage"])
        cells = measured(row, stage_link(stage, page) or row["stage"]) + ([row[speed_up]] if speed_up else [])
        lines.append(
            cells + [there[row["stage"]]["microseconds"] if row["stage"] in there else "" for _, _, there in others]
        )
    copies = [next(iter(there.values()))["copy_microseconds"] for _, _, there in others]
    lines += [cells + [""] * bool(speed_up) + copies for cells in copy_cells(rows)]
    here = {row["stage"]: row for row in rows if row["microseconds"]}
    said = [caption(ladder, path, rows, page), *on_others(others, here, page)]
    return "\n\n".join([*parts, table(header, lines), *said])


def short_table(ladder, path, rows, block):
    """Some stages: the idea of each, its time, and how near to a copy it comes."""
    times = {row["stage"]: row for row in rows}
    lines = [
        [stage_link(stage, block.page), markers.said(stage)["idea"], times[stage.name]["microseconds"]]
        + [times[stage.name]["percent_of_copy"]]
        for stage in counter_tables.chosen(ladder, block.words[1:], block.where)
        if stage.name in times
    ]
    lines.append(
        ["copy kernel, same bytes", "reads and writes, and computes nothing", rows[0]["copy_microseconds"], "100"]
    )
    header = ["stage", "the idea", "µs", "% of the copy's speed"]
    return "\n\n".join([table(header, lines, range(2)), caption(ladder, path, rows, block.page, short=True)])


def ladder_figures(folder, ladder, block):
    """The same for the ladder's own page, and the bandwidth over inputs of one size."""
    page, parts = block.page, [whole_ladder(folder, ladder, block)]
    for name, described in ladder.sweeps.items():
        path = folder / ladder.id / f"{name}.csv"
        if path.is_file() and not described.program and timed.is_of_one_size(ladder, timed.read(path, ladder)):
            parts += image(folder.name, f"{ladder.id}_{name}", described.title, page)
            parts.append(f"{described.title}: {link(results.shown(path), path, page)}.")
    return "\n\n".join(filter(None, parts)) or None


def row_link(ladder, described, name, page):
    """The name of a row of a sweep, linked to the page that explains it: the stage's, or that of all controls."""
    stage = ladder.stage(name)
    if stage or not described.program:
        return stage_link(stage, page) or name
    controls = (ladder.folder / described.program).parent / "README.md"
    return link(name, controls, page) if controls.is_file() else name


def may_come(ladder, described):
    """The names that the next make bench may store of a sweep with a program: of the stages and of its controls."""
    if not described.program:
        return []
    sources = (ladder.folder / described.program).parent.glob("*.cu")
    controls = re.findall(r'"(\w+)", *"', "".join(source.read_text(encoding="utf-8") for source in sources))
    return [stage.name for stage in ladder.stages] + controls


@registry.table("<sweep>", form="[STAGE ...]")
def sweep(folder, ladder, block):
    """A sweep of ladder.json: microseconds, one row per stage, chosen or all; one column per input."""
    name, page = block.name.rpartition("/")[2], block.page
    path, described = folder / ladder.id / f"{name}.csv", ladder.sweeps[name]
    if not path.is_file():
        return None
    rows = timed.read(path, ladder)
    lacking = sorted(set(block.words) - {row["stage"] for row in rows})
    unknown = set(lacking) - set(may_come(ladder, described))
    if unknown:
        raise Unusable(f"{block.where}: {results.shown(path)} has no stage {', '.join(sorted(unknown))}")
    if block.words and len(lacking) == len(block.words):
        return None
    options = list(dict.fromkeys(option for one in described.inputs for option in one))  # those of all inputs
    if missing := set(options) - set(rows[0]):
        raise Unusable(f"{results.shown(path)} lacks the column {', '.join(sorted(missing))}; measure it again")
    inputs = list(dict.fromkeys(tuple(row[option] for option in options) for row in rows))
    times = {(row["stage"], *(row[option] for option in options)): row["microseconds"] for row in rows}
    copies = {tuple(row[option] for option in options): row["copy_microseconds"] for row in rows}
    lines = []
    for name in dict.fromkeys(row["stage"] for row in rows):
        if not block.words or name in block.words:
            lines.append([row_link(ladder, described, name, page)] + [times.get((name, *one), "") for one in inputs])
    lines.append(["copy kernel, same bytes"] + [copies[one] for one in inputs])
    first = rows[0]
    of_type = described.type or ladder.type
    said = (
        f"{how_we_measure('Microseconds per launch', page)}{', ' + of_type if of_type else ''}. "
        f"{first['device']}, CUDA {results.version(first['runtime'])}, "
        f"{first['date']}. {source(path, page)}"
    )
    body = table(["stage"] + [" × ".join(one) for one in inputs], lines)
    what, over = timed.sweep_of(ladder, rows)
    names = list(dict.fromkeys(row["stage"] for row in rows))
    text = f"{described.title}: {what} of {names[0] if len(names) == 1 else 'each stage'} over {over}"
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
    parts.append(caption(ladder, found[0], found[1], page, short=True))
    metrics = counters.metrics([*counters.FEW, *filter(None, block.values.get("also", "").split(","))])
    both = list(dict.fromkeys([ladder.stage(before), stage]))
    few = counter_tables.build(folder, page, metrics, both, counter_tables.profile_of(ladder, block))
    return "\n\n".join(parts + ([few] if few else []))


@registry.table("output", form="NAME")
def output(folder, ladder, block):
    """What a program printed on the GPU, by outputs of ladder.json."""
    name = block.words[0] if block.words else ""
    if name not in ladder.outputs:
        raise Unusable(f"{block.where} must name an output of {ladder.path}/ladder.json: {', '.join(ladder.outputs)}")
    path = outputs.path_of(folder, ladder, name)
    if not path.is_file():
        return None
    text, gpu = path.read_text(encoding="utf-8"), results.environment(path.parent.parent).get("GPU", folder.name)
    return f"```text\n$ {ladder.outputs[name]}\n{text}```\n\n{gpu}. {source(path, block.page)}"


@registry.table("figures", form="[against=STAGE] [also=COUNTER,...] [input=NAME]")
def figures(folder, ladder, block):
    """The figures of the page's own stage, beside those of the stage before, or of its own ladder. Its marker begins
    <!-- figures:begin, and only there the word table: is left out."""
    stage = markers.stage_of(ladder, block)
    return stage_figures(folder, stage, block) if stage else ladder_figures(folder, ladder, block)


@registry.table("counters", form="[STAGE|FROM..TO ...] [counters=NAME,...] [input=NAME]")
def all_counters(folder, ladder, block):
    """Nsight Compute's counters, by their short names in counters.py; input: a profile of ladder.json."""
    stages = counter_tables.chosen(ladder, block.words, block.where)
    names = block.values["counters"].split(",") if "counters" in block.values else counters.MANY
    profile = counter_tables.profile_of(ladder, block)
    return counter_tables.build(folder, block.page, counters.metrics(names), stages, profile)
