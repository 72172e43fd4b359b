"""Draws what is stored of a GPU as SVG into plots/; needs no GPU.

Of each ladder its stages beside the copy kernel and the datasheet, and its sweeps: bandwidth where all inputs have as
many elements, else microseconds where one parameter changes, and percent of the copy kernel where several do. Of some
stages their counters. Of the ladder of ceilings the roofline, with every stage. With --run it draws the CSV of a run
into that file's folder, or what is stored if the run was not timed, since then there was no GPU.
"""

import itertools
import pathlib

from ..core import ladders, registry, results
from ..core.results import number
from ..measure import timed
from . import any_csv
from .drawing import (
    BLACK,
    BLUE,
    LINES,
    PALE,
    VERMILLION,
    WHISKERS,
    figure_of,
    grid_of,
    parts_of,
    plain_log_scale,
    save,
    spread_at,
    spread_of,
    start,
    style_of,
    tidy,
    whiskers,
)

GB_PER_S = "bandwidth, GB/s (1 GB = 10$^9$ bytes)"
COLD_WARM = "buffer_bytes warm_apparent_gb_per_s cold_gb_per_s cold_percent_of_datasheet l2_bytes variant gpu".split()
MAGNITUDES = "01_f32 03_f16_f16 09_f16_f32 10_bf16_bf16 11_bf16x8_pack_f32".split()
WORDS = ("0", "inf", "NaN")  # what a stage wrote in place of numbers


def arguments(parser):
    parser.add_argument("--gpu", default="", help="whose stored results; by default the H200's")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIRECTORY", help="where to draw, instead of plots/")
    parser.add_argument(
        "--run", dest="csv", type=pathlib.Path, metavar="CSV", help="draw this run, into the CSV's folder"
    )
    parser.add_argument("--ladder", default=ladders.DEFAULT, help="the ladder of the run; by default %(default)s")


@registry.plot("{ladder}_bandwidth")
def draw_main(folder, ladder, target):
    """The stages on the main input."""
    path = folder / ladder.id / results.MAIN
    if path.is_file() and ladder.bandwidth:
        draw_stages(ladder, timed.read(path, ladder), target)


def draw_stages(ladder, rows, target):
    """A bar per stage; the copy kernel and the datasheet as lines."""
    plt, figure, axes = figure_of(1.6 + 0.33 * len(rows))
    rates = [number(row, "gb_per_s") or 0 for row in rows]
    copy, datasheet = timed.copy_rate(rows[0]), number(rows[0], "datasheet_gb_per_s")
    most = max(rates + [copy or 0, datasheet or 0])
    axes.barh([row["stage"] for row in rows], rates, color=BLUE, height=0.7)
    axes.invert_yaxis()
    points = [(rate, position, spread_of(row, rate)) for position, (row, rate) in enumerate(zip(rows, rates))]
    whiskers(axes, points, BLACK, across=True)
    for position, (row, rate) in enumerate(zip(rows, rates)):
        percent = number(row, "percent_of_copy")
        label = f"{rate:.0f}" + (f" ({percent:.0f} % of copy)" if percent else "") if rate else row["verdict"]
        inside = rate > 0.42 * most
        axes.annotate(
            label,
            (rate, position),
            xytext=(-5 if inside else 5, 0),
            textcoords="offset points",
            color="white" if inside else "black",
            ha="right" if inside else "left",
            va="center",
            bbox=None if inside else {"facecolor": "white", "edgecolor": "none", "pad": 0.8},  # over the copy's line
        )
    for rate, name, color, style, side in (
        (copy, "copy kernel", VERMILLION, "--", "right"),
        (datasheet, "datasheet", BLACK, "-", "left"),
    ):
        if rate:
            axes.axvline(rate, color=color, linestyle=style, linewidth=1.8)
            axes.annotate(
                f"{name} {rate:.0f}",
                (rate, 1),
                xycoords=("data", "axes fraction"),
                xytext=(2 if side == "right" else -2, 4),
                textcoords="offset points",
                color=color,
                ha=side,
                va="bottom",
            )
    axes.set_xlim(0, 1.02 * most)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(GB_PER_S)
    what = f"{ladder.id}: {timed.described(ladder, rows[0])}, cold cache"
    save(plt, figure, target, what, rows[0], more=WHISKERS)


@registry.plot("{ladder}")
def draw_sweeps(folder, ladder, target):
    """The sweeps of ladder.json, but for those of controls, which are read in tables."""
    for name, described in ladder.sweeps.items():
        path = folder / ladder.id / f"{name}.csv"
        if path.is_file() and not described.program and described.plot:
            rows = timed.read(path, ladder)
            draw_sweep(ladder, rows, described.title, target.with_name(f"{target.name}_{name}"))


def draw_sweep(ladder, rows, title, target):
    """A line per stage over the parameter that changes: bandwidth if all inputs have one size, else microseconds. Each
    panel has a few stages in colour, and the others in grey behind them."""
    what, changes = timed.sweep_of(ladder, rows)
    if changes not in ladder.main:
        return draw_shapes(ladder, rows, title, target)
    is_rate = what == "bandwidth"
    stages = list(dict.fromkeys(row["stage"] for row in rows))
    panels = parts_of(stages)
    plt, figure, grid = grid_of(len(panels))

    def points_of(stage, value):
        of_stage = [row for row in rows if stage in (None, row["stage"])]
        return sorted({int(row[changes]): value(row) for row in of_stage if value(row)}.items())

    column = "gb_per_s" if is_rate else "microseconds"
    lines = {stage: points_of(stage, lambda row: number(row, column)) for stage in stages}
    lines = {stage: points for stage, points in lines.items() if points}
    of_copy = timed.copy_rate if is_rate else (lambda row: number(row, "copy_microseconds"))
    copy, datasheet = points_of(None, of_copy), number(rows[0], "datasheet_gb_per_s") if is_rate else None
    values = sorted({int(row[changes]) for row in rows})
    for axes, part in zip(grid, panels):
        for stage, points in lines.items():
            if stage not in part:
                axes.plot(*zip(*points), color=PALE, linewidth=1.0, zorder=1)
        for stage in part:
            if stage in lines:
                style = style_of(ladder, stage)
                axes.plot(*zip(*lines[stage]), label=stage, linewidth=1.6, markersize=4.5, **style)
                of_stage = [row for row in rows if row["stage"] == stage and number(row, column)]
                whiskers(
                    axes, [spread_at(int(row[changes]), row, number(row, column)) for row in of_stage], style["color"]
                )
        if copy:
            axes.plot(*zip(*copy), label="copy kernel", color=BLACK, linestyle="--", linewidth=1.4)
        if datasheet:
            label = f"datasheet, {datasheet:.0f}"
            axes.axhline(datasheet, color=BLACK, linestyle=":", linewidth=1.4, label=label)
        axes.set_xscale("log", base=2)
        axes.set_xticks(values, [f"{value:,}" for value in values], rotation=45, ha="right", fontsize=7)
        axes.minorticks_off()
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=7)
        if is_rate:
            axes.set_ylim(bottom=0)
        else:
            plain_log_scale(axes)
    figure.supylabel(GB_PER_S if is_rate else "µs per launch in a CUDA graph (log scale)", fontsize=9)
    save(plt, figure, target, f"{ladder.id}: {title}, over {changes} (log scale)", rows[0], settle=True, more=WHISKERS)


def draw_shapes(ladder, rows, title, target):
    """A mark for each stage over inputs that have no order, because several parameters change: percent of the copy."""
    plt, figure, axes = figure_of(4.8)
    names = {timed.given(ladder, row): " × ".join(timed.given(ladder, row)) for row in rows}
    for stage in dict.fromkeys(row["stage"] for row in rows):
        points = [(row, number(row, "percent_of_copy")) for row in rows if row["stage"] == stage]
        points = [spread_at(list(names).index(timed.given(ladder, row)), row, value) for row, value in points if value]
        if points:
            style = style_of(ladder, stage)
            places, values, _ = zip(*points)
            axes.plot(places, values, **{**style, "linestyle": ""}, markersize=6, label=stage)
            whiskers(axes, points, style["color"])
    axes.axhline(100, color=BLACK, linestyle="--", linewidth=1.6, label="copy kernel")
    axes.set_xticks(range(len(names)), list(names.values()))
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(" × ".join(ladder.main))
    axes.set_ylabel("bandwidth, % of the copy kernel in the same run")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    save(plt, figure, target, f"{ladder.id}: {title}", rows[0], more=WHISKERS)


@registry.plot("{ladder}_cold_warm")
def draw_cold_warm(folder, ladder, target):
    """W1L2's copy from memory and from the cache."""
    folder = folder / ladder.id
    if not (folder / "cold_warm.csv").is_file():
        return
    rows = results.read(folder / "cold_warm.csv", COLD_WARM)
    plt, figure, axes = figure_of(3.8)
    sizes = [int(row["buffer_bytes"]) for row in rows]
    for column, label, color, marker in (
        ("warm_apparent_gb_per_s", "one pair of buffers again and again (warm): not a bandwidth", VERMILLION, "v"),
        ("cold_gb_per_s", "many pairs in turn (cold)", BLUE, "o"),
    ):
        rates = [number(row, column) for row in rows]
        axes.plot(sizes, rates, color=color, marker=marker, markersize=5, linewidth=1.6, label=label)
    datasheet = results.environment(folder).get(results.DATASHEET)
    if datasheet:
        rate = float(datasheet.split()[0])
        axes.axhline(rate, color=BLACK, linestyle=":", linewidth=1.6, label=f"datasheet, {rate:.0f}")
    l2 = int(rows[0]["l2_bytes"])
    label = f"two buffers fill the L2 cache, {any_csv.size(l2)}"
    axes.axvline(l2 / 2, color="#666666", linestyle="--", linewidth=1.2, label=label)
    axes.set_xscale("log", base=2)
    ticks = [count for count in sizes if count & (count - 1) == 0][::2]
    axes.set_xticks(ticks, [any_csv.size(count) for count in ticks])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("size of one buffer (log scale)")
    axes.set_ylabel("bytes read and written, GB/s")
    figure.legend(loc="outside upper center", ncols=1, frameon=False)
    save(plt, figure, target, f"copy kernel {rows[0]['variant']}, input and output the same size", rows[0])


def runs_of(points):
    """[(word, first x, last x)]: where a stage wrote the same word at neighbouring places."""
    found = []
    for is_word, group in itertools.groupby(points, key=lambda point: point[1] if point[1] in WORDS else ""):
        xs = [x for x, _ in group]
        if is_word:
            found.append((is_word, xs[0], xs[-1]))
    return found


@registry.plot("{ladder}_magnitude")
def draw_magnitude(folder, ladder, target):
    """The error of stages over the magnitude of a row's elements; where a stage wrote no numbers, what it wrote."""
    path = folder / ladder.id / "magnitude.csv"
    if not results.stored_gpus(f"{ladder.id}/{path.name}"):  # it needs no GPU
        path = results.store() / results.CPU_DEVICE / ladder.id / path.name
    if not path.is_file():
        return
    rows = results.read(path, ["magnitude", "cols", "gpu"])
    target = target.with_name(f"{path.parent.parent.name}_{ladder.id}_magnitude")
    plt, figure, axes = figure_of(4.2)
    stages = [name for name in MAGNITUDES if name in rows[0]]
    by_place = []
    for stage, style in ((stage, style_of(ladder, stage)) for stage in stages):
        points = [(float(row["magnitude"]), row[stage]) for row in rows]
        numbers = [(x, float(y)) for x, y in points if y not in WORDS]
        axes.plot(*zip(*numbers), **style, markersize=4, linewidth=1.6, label=stage)
        by_place.append((style["color"], runs_of(points)))
    for place, (color, runs) in enumerate(by_place):
        for word, first, last in runs:
            where, height = ("data", "axes fraction"), 0.985 - 0.04 * place
            ends = {
                "arrowstyle": "|-|,widthA=0.2,widthB=0.2",
                "color": color,
                "linewidth": 0.8,
                "shrinkA": 0,
                "shrinkB": 0,
            }
            axes.annotate("", (first / 1.3, height), (last * 1.3, height), xycoords=where, arrowprops=ends)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
            middle = (first * last) ** 0.5
            axes.annotate(
                word, (middle, height), xycoords=where, color=color, fontsize=6.5, ha="center", va="center", bbox=box
            )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(1e-8, 10)
    axes.set_xlabel("standard deviation of the elements (log scale)")
    axes.set_ylabel("largest error, relative to the row (log scale)")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    what = f"{ladder.id}: rows of {rows[0]['cols']} normally distributed numbers, eps 1e-6"
    save(plt, figure, target, what, rows[0], more="; at the top, what a stage wrote in place of numbers")


@registry.plot("{ladder}_outliers")
def draw_outliers(folder, ladder, target):
    """The error of the other columns over the size of a row's outlier: a line for each format and kind of scale."""
    path = folder / ladder.id / "outliers.csv"
    if not results.stored_gpus(f"{ladder.id}/{path.name}"):  # it needs no GPU
        path = results.store() / results.CPU_DEVICE / ladder.id / path.name
    if not path.is_file():
        return
    rows = results.read(path, ["outlier", "cols", "gpu"])
    target = target.with_name(f"{path.parent.parent.name}_{ladder.id}_outliers")
    plt, figure, axes = figure_of(3.8)
    ways = [name for name in rows[0] if name.startswith(("e4m3_", "int8_"))]
    for way, (color, marker) in zip(ways, LINES):
        points = [(int(row["outlier"]), float(row[way])) for row in rows]
        label = (
            way.replace("_", ", one scale for a ").replace("for a tensor", "for all").replace("block", "block of 128")
        )
        axes.plot(*zip(*points), color=color, marker=marker, markersize=4, linewidth=1.6, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("the outlier, in standard deviations of the other columns (log scale)")
    axes.set_ylabel("error of the other columns (log scale)")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    what = f"{ladder.id}: rows of {rows[0]['cols']} numbers, of which one is an outlier"
    save(plt, figure, target, what, rows[0], more="; root of the mean square, relative to the numbers")


@registry.plot(
    "{ladder}_over_time", "over_time_plot", "Time per launch and the clock over a run, without a pause and with one"
)
def draw_over_time(folder, ladder, target):
    """An experiment that times one kernel for a while: microseconds above, the multiprocessors' clock below."""
    path = folder / ladder.id / "over_time.csv"
    if not path.is_file():
        return
    rows = results.read(path, ["pause_milliseconds", "seconds", "microseconds", "clock_mhz", "stage", "gpu"])
    plt = start()
    figure, both = plt.subplots(2, 1, figsize=(6.0, 4.4), layout="constrained", sharex=True)
    for axes, column, said in zip(both, ("microseconds", "clock_mhz"), ("µs per launch", "SM clock, MHz")):
        tidy(axes)
        for pause, color, marker in (("0", VERMILLION, "v"), ("", BLUE, "o")):
            those = [row for row in rows if (row["pause_milliseconds"] == "0") == bool(pause)]
            label = "no pause" if pause else f"a pause of {those[0]['pause_milliseconds']} ms before each sample"
            points = [(float(row["seconds"]), float(row[column])) for row in those]
            axes.plot(*zip(*points), color=color, marker=marker, markersize=3.5, linewidth=1.2, label=label)
        axes.set_ylim(0, 1.15 * max(float(row[column]) for row in rows))
        axes.set_ylabel(said)
    both[1].set_xlabel("seconds since the first sample")
    figure.legend(*both[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    shape = " × ".join(rows[0][name] for name in ladder.main)
    save(plt, figure, target, f"{ladder.id}: {rows[0]['stage']} on {shape}, the same buffers", rows[0])


def draw_stored(folder, target):
    """Everything that is stored of one GPU."""
    registry.load_pages()
    climbed = ladders.all_ladders()
    for file, draw in registry.PLOTS.items():
        for ladder in climbed if "{ladder}" in file else [None]:
            name = file.partition("}_")[2]
            of_ladder = results.measured(folder, ladder.id, f"{name}.csv") if ladder else folder
            draw(of_ladder, ladder, target / f"{of_ladder.name}_{file.format(ladder=ladder.id if ladder else '')}")


def run(given):
    ladder = next((ladder for ladder in ladders.all_ladders() if ladder.id == given.ladder), None)
    if given.csv and not ladder:
        raise ladders.BadCommand(f"--ladder {given.ladder}: there is no such ladder")
    if given.csv:
        rows, folder = timed.read(given.csv, ladder), given.csv.parent
        if any(number(row, "gb_per_s") for row in rows):
            return draw_stages(ladder, rows, folder / f"{results.slug(rows[0]['device'])}_{ladder.id}_bandwidth")
        print("plot: this run was not timed (no GPU), so a stored one is drawn")
    stored = results.stored(given.gpu)
    if stored is None or given.csv and not (stored / ladder.id / results.MAIN).is_file():
        print("plot: no GPU has been measured yet, so there is nothing to draw; make bench measures one")
    elif given.csv:
        rows = timed.read(stored / ladder.id / results.MAIN, ladder)
        draw_stages(ladder, rows, given.csv.parent / f"{stored.name}_{ladder.id}_bandwidth")
    else:
        draw_stored(stored, given.out or ladders.ROOT / "plots")
