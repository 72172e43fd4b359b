"""Draws the bandwidth of the stages from stored CSVs, as PNG and SVG. Needs no GPU.

    plot_bandwidth.py [--gpu NAME]     plots/<gpu>_*.{png,svg} from profiling_results/<gpu>/: make plots
    plot_bandwidth.py --run CSV        the CSV of a run, into its folder; of the stored results if the run was not timed
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import peer_tables  # noqa: E402
import results  # noqa: E402
from results import Unusable, number, read, version  # noqa: E402

STAGE_COLUMNS = (
    "stage verdict rows cols weight gb_per_s percent_of_copy percent_of_datasheet copy_microseconds device runtime date"
).split()
# Okabe and Ito's palette: told apart by the colour-blind.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
LINES = [(ORANGE, "o"), (SKY, "s"), (GREEN, "^"), (BLUE, "D"), (PURPLE, "v"), (VERMILLION, "P")]
DASHES = ["-", "--", ":"]  # of the first six lines, the next six, and those after them
GB_PER_S = "bandwidth, GB/s (1 GB = 10$^9$ bytes)"


def start():
    """matplotlib.pyplot, set up so that the same data give the same files."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "ladder", "font.size": 9, "axes.axisbelow": True})
    import matplotlib.pyplot as plt

    return plt


def figure_of(plt, height):
    figure, axes = plt.subplots(figsize=(6.0, height), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.8)
    return figure, axes


def save(plt, figure, target, what, row):
    """The caption names what was measured where and when."""
    caption = f"{what}\n{row['device']}, CUDA {version(row['runtime'])}, {row['date']}"
    figure.supxlabel(caption, fontsize=9, color="#444444")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target.with_suffix(".png"), dpi=200)
    figure.savefig(target.with_suffix(".svg"), metadata={"Date": None, "Creator": None})
    plt.close(figure)
    print(f"plot: {results.shown(target)}.png and .svg")


def datasheet_of(rows, rate="gb_per_s", percent="percent_of_datasheet"):
    """The datasheet's GB/s, from the fastest row; its percentage has three digits, so three are told."""
    known = [(number(row, rate), number(row, percent)) for row in rows]
    known = [(rate, percent) for rate, percent in known if rate and percent]
    return round(100 * max(known)[0] / max(known)[1], -1) if known else None


def copy_rate(rows):
    """GB/s of the copy kernel that was timed with these rows; None where there was none."""
    for row in rows:
        if number(row, "copy_microseconds"):
            return 8e-3 * int(row["rows"]) * int(row["cols"]) / number(row, "copy_microseconds")
    return None


def draw_stages(rows, target):
    """A bar a stage; the copy kernel and the datasheet as lines."""
    plt = start()
    figure, axes = figure_of(plt, 1.6 + 0.33 * len(rows))
    rates = [number(row, "gb_per_s") or 0 for row in rows]
    copy, datasheet = copy_rate(rows), datasheet_of(rows)
    most = max(rates + [copy or 0, datasheet or 0])
    axes.barh([row["stage"] for row in rows], rates, color=BLUE, height=0.7)
    axes.invert_yaxis()
    for position, (row, rate) in enumerate(zip(rows, rates)):
        percent = number(row, "percent_of_copy")
        label = f"{rate:.0f}" + (f" ({percent:.0f} % of copy)" if percent else "") if rate else row["verdict"]
        inside = rate > 0.45 * most
        axes.annotate(
            label,
            (rate, position),
            xytext=(-5 if inside else 5, 0),
            textcoords="offset points",
            color="white" if inside else "black",
            ha="right" if inside else "left",
            va="center",
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
    weight = ", weight" if rows[0]["weight"] == "1" else ""
    save(plt, figure, target, f"RMSNorm, {rows[0]['rows']} × {rows[0]['cols']} float32{weight}, cold cache", rows[0])


def line_style(place):
    color, marker = LINES[place % len(LINES)]
    return {"color": color, "marker": marker, "linestyle": DASHES[place // len(LINES) % len(DASHES)]}


def draw_columns(rows, target):
    """A line a stage over the columns, at constant bytes."""
    plt = start()
    figure, axes = figure_of(plt, 4.8)
    stages = list(dict.fromkeys(row["stage"] for row in rows))
    columns = sorted({int(row["cols"]) for row in rows})

    def line(rates, label, **style):
        points = sorted((cols, rate) for cols, rate in rates.items() if rate)
        if points:
            axes.plot(*zip(*points), label=label, linewidth=1.6, markersize=5, **style)

    for place, stage in enumerate(stages):
        rates = {int(row["cols"]): number(row, "gb_per_s") for row in rows if row["stage"] == stage}
        line(rates, stage, **line_style(place))
    copies = {cols: copy_rate([row for row in rows if int(row["cols"]) == cols]) for cols in columns}
    line(copies, "copy kernel", color=BLACK, linestyle="--")
    datasheet = datasheet_of(rows)
    if datasheet:
        axes.axhline(datasheet, color=BLACK, linestyle=":", linewidth=1.6, label=f"datasheet, {datasheet:.0f}")
    axes.set_xscale("log", base=2)
    axes.set_xticks(columns, [str(cols) for cols in columns])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("columns of the matrix (log scale); its rows times its columns stay the same")
    axes.set_ylabel(GB_PER_S)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    elements = int(rows[0]["rows"]) * int(rows[0]["cols"])
    save(plt, figure, target, f"RMSNorm, {elements:,} float32 in all, cold cache", rows[0])


def draw_sweep(rows, target):
    """Microseconds of the last ten stages and of the copy kernel, over whatever changes from shape to shape."""
    plt = start()
    figure, axes = figure_of(plt, 4.8)
    changes, fixed = ("cols", "rows") if len({row["cols"] for row in rows}) > 1 else ("rows", "cols")
    for place, stage in enumerate(list(dict.fromkeys(row["stage"] for row in rows))[-10:]):
        of_stage = [row for row in rows if row["stage"] == stage and row["microseconds"]]
        points = sorted((int(row[changes]), float(row["microseconds"])) for row in of_stage)
        if points:
            axes.plot(*zip(*points), label=stage, linewidth=1.6, markersize=5, **line_style(place))
    copies = sorted({(int(row[changes]), number(row, "copy_microseconds")) for row in rows})
    axes.plot(*zip(*copies), label="copy kernel", color=BLACK, linestyle="--", linewidth=1.6)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([count for count, _ in copies], [str(count) for count, _ in copies])
    axes.set_xlabel({"rows": "rows", "cols": "columns"}[changes] + " (log scale)")
    axes.set_ylabel("µs a launch (log scale)")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    constant = {"rows": "row", "cols": "columns"}[fixed]
    save(plt, figure, target, f"RMSNorm, {rows[0][fixed]} {constant} of float32, in a CUDA graph", rows[0])


def size(count):
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:g} {unit}"
        count /= 1024
    return f"{count:g} GiB"


def draw_cold_warm(rows, target):
    """The lecture's copy out of memory and out of the cache."""
    plt = start()
    figure, axes = figure_of(plt, 3.8)
    sizes = [int(row["buffer_bytes"]) for row in rows]
    for column, label, color, marker in (
        ("warm_apparent_gb_per_s", "one pair of buffers again and again (warm): not a bandwidth", VERMILLION, "v"),
        ("cold_gb_per_s", "many pairs in turn (cold)", BLUE, "o"),
    ):
        rates = [number(row, column) for row in rows]
        axes.plot(sizes, rates, color=color, marker=marker, markersize=5, linewidth=1.6, label=label)
    datasheet = datasheet_of(rows, "cold_gb_per_s", "cold_percent_of_datasheet")
    if datasheet:
        axes.axhline(datasheet, color=BLACK, linestyle=":", linewidth=1.6, label=f"datasheet, {datasheet:.0f}")
    half = number(rows[0], "l2_bytes") / 2
    label = f"two buffers fill the L2 cache, {size(2 * half)}"
    axes.axvline(half, color="#666666", linestyle="--", linewidth=1.2, label=label)
    axes.set_xscale("log", base=2)
    ticks = [count for count in sizes if count & (count - 1) == 0][::2]
    axes.set_xticks(ticks, [size(count) for count in ticks])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("size of one buffer (log scale)")
    axes.set_ylabel("bytes read and written, GB/s")
    figure.legend(loc="outside upper center", ncols=1, frameon=False)
    row = {"device": rows[0]["gpu"], "date": rows[0]["date"], "runtime": 0}
    row["runtime"] = round(1000 * float(rows[0]["cuda_runtime"]))
    save(plt, figure, target, f"copy kernel {rows[0]['variant']}, input and output the same size", row)


def draw_peers(tables, target):
    """Time of the copy over each competitor's time, a line a shape; a panel an operator."""
    plt = start()
    shapes = [peer_tables.read(table) for table in tables]
    count = sum(map(len, shapes))
    figure, panels = plt.subplots(
        *(len(shapes), 1), figsize=(6.0, 1.9 + 0.21 * count), layout="constrained", sharex=True, squeeze=False,
        height_ratios=list(map(len, shapes)),
    )  # fmt: skip
    named = dict.fromkeys(name for table in shapes for rows in table.values() for name in rows)
    peers = [name for name in named if peer_tables.is_peer(name)]
    styles = {name: (LINES[place % len(LINES)], 5) for place, name in enumerate(peers)}
    styles[peer_tables.OURS] = ((BLACK, "|"), 10)
    styles[peer_tables.OURS_PDL] = ((BLACK, "*"), 9)
    for axes, table, path in zip(panels[:, 0], shapes, tables):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#dddddd", linewidth=0.8)
        for name, ((color, marker), markersize) in styles.items():
            points = []
            for place, rows in enumerate(table.values()):
                copies = [peer_tables.time_of(rows, copy) for copy in peer_tables.COPIES]
                copies = [microseconds for microseconds in copies if microseconds]
                if copies and peer_tables.time_of(rows, name):
                    points.append((100 * min(copies) / peer_tables.time_of(rows, name), place))
            if points:
                label = peer_tables.title(name)
                axes.plot(*zip(*points), linestyle="", color=color, marker=marker, markersize=markersize, label=label)
        axes.axvline(100, color=VERMILLION, linestyle="--", linewidth=1.2)
        axes.set_yticks(range(len(table)), [peer_tables.shape_name(key) for key in table], fontsize=7)
        axes.set_ylim(len(table) - 0.5, -0.5)
        axes.set_title(peer_tables.FILES[path.stem], fontsize=9, loc="left")
    panels[-1, 0].set_xlim(left=0)
    panels[-1, 0].set_xlabel("speed, % of the faster copy of the same bytes")
    entries = dict(reversed(pair) for axes in panels[:, 0] for pair in zip(*axes.get_legend_handles_labels()))
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=4, frameon=False)
    row = next(iter(next(iter(shapes[0].values())).values()))
    about = {"device": row["gpu"], "date": row["date"], "runtime": round(1000 * float(row["cuda_runtime"] or 0))}
    save(plt, figure, target, f"in a CUDA graph, median of {row['replays']} replays", about)


def is_timed(rows):
    return any(number(row, "gb_per_s") for row in rows)


def draw_stored(folder, target):
    """Everything that is stored of one GPU."""
    draw_stages(read(folder / results.MATRIX_CSV, STAGE_COLUMNS), target / f"{folder.name}_matrix_bandwidth")
    if (folder / results.COLUMNS_CSV).is_file():
        draw_columns(read(folder / results.COLUMNS_CSV, STAGE_COLUMNS), target / f"{folder.name}_matrix_by_columns")
    for name in (results.FEW_CSV, results.LONG_CSV):
        if (folder / name).is_file():
            rows = read(folder / name, STAGE_COLUMNS + ["microseconds"])
            draw_sweep(rows, target / f"{folder.name}_{name.split('.')[0]}")
    if (folder / "cold_warm.csv").is_file():
        columns = "buffer_bytes warm_apparent_gb_per_s cold_gb_per_s cold_percent_of_datasheet l2_bytes variant".split()
        rows = read(folder / "cold_warm.csv", columns + ["gpu", "cuda_runtime", "date"])
        draw_cold_warm(rows, target / f"{folder.name}_cold_warm")
    tables = [folder / f"{name}.csv" for name in peer_tables.FILES if (folder / f"{name}.csv").is_file()]
    if tables:
        draw_peers(tables, target / f"{folder.name}_peers")


def main():
    parser = argparse.ArgumentParser(description="Draws the bandwidth of the stages from stored CSVs.")
    parser.add_argument("--gpu", default="", help="whose stored results; by default h200")
    parser.add_argument("--out", default=ROOT / "plots", type=pathlib.Path, help="the folder to draw into")
    parser.add_argument("--run", metavar="CSV", type=pathlib.Path, help="draw this run instead, into the CSV's folder")
    arguments = parser.parse_args()
    if arguments.run:
        rows = read(arguments.run, STAGE_COLUMNS)
        if is_timed(rows):
            draw_stages(rows, arguments.run.parent / f"{results.slug(rows[0]['device'])}_matrix_bandwidth")
            return
        print("plot: this run was not timed (no GPU), so a stored one is drawn")
    folder = results.stored(arguments.gpu)
    if folder is None:
        print("plot: no GPU has been measured yet, so there is nothing to draw; make bench measures one")
    elif arguments.run:
        rows = read(folder / results.MATRIX_CSV, STAGE_COLUMNS)
        draw_stages(rows, arguments.run.parent / f"{folder.name}_matrix_bandwidth")
    else:
        draw_stored(folder, arguments.out)


if __name__ == "__main__":
    try:
        main()
    except Unusable as error:
        sys.exit(f"plot_bandwidth.py: {error}")
