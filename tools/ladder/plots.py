"""Draws what is stored of a GPU as PNG and SVG into plots/; needs no GPU.

Of each ladder its stages beside the copy kernel and the datasheet, and its sweeps: bandwidth where all inputs have as
many elements, else microseconds. Of the ladder of ceilings the roofline, with every other ladder's stages. With
--run it draws the CSV of a run into that file's folder, or what is stored if the run was not timed, since then there
was no GPU.
"""

import math
import pathlib

from . import any_csv, chain_tables, ladders, peer_tables, results, roofline, timed
from .results import number, version

# Okabe and Ito's palette, which colour-blind readers can distinguish.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
LINES = [(ORANGE, "o"), (SKY, "s"), (GREEN, "^"), (BLUE, "D"), (PURPLE, "v"), (VERMILLION, "P")]
DASHES = ["-", "--", ":"]  # of the first six lines, the next six, and those after them
GB_PER_S = "bandwidth, GB/s (1 GB = 10$^9$ bytes)"
COLD_WARM = "buffer_bytes warm_apparent_gb_per_s cold_gb_per_s cold_percent_of_datasheet l2_bytes variant gpu".split()
MOST_LINES = 10  # in a plot of microseconds: the last stages


def arguments(parser):
    parser.add_argument("--gpu", default="", help="whose stored results; by default the H200's")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIRECTORY", help="where to draw, instead of plots/")
    parser.add_argument(
        "--run", dest="csv", type=pathlib.Path, metavar="CSV", help="draw this run, into the CSV's folder"
    )
    parser.add_argument("--ladder", default=ladders.DEFAULT, help="the ladder of the run; by default %(default)s")


def start():
    """matplotlib.pyplot, set up so that the same data give the same files."""
    try:
        import matplotlib
    except ImportError:
        raise ladders.Unusable("matplotlib is needed to draw; scripts/setup.sh plots installs it into .venv")
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "ladder", "font.size": 9, "axes.axisbelow": True})
    import matplotlib.pyplot as plt

    return plt


def tidy(axes):
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.8)


def figure_of(height):
    plt = start()
    figure, axes = plt.subplots(figsize=(6.0, height), layout="constrained")
    tidy(axes)
    return plt, figure, axes


def save(plt, figure, target, what, row):
    """The caption says what was measured, where and when."""
    runtime = row["cuda_runtime"] if "cuda_runtime" in row else version(row["runtime"])
    caption = f"{what}\n{row.get('device') or row.get('gpu')}, CUDA {runtime}, {row['date']}"
    figure.supxlabel(caption, fontsize=9, color="#444444")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target.with_suffix(".png"), dpi=200)
    figure.savefig(target.with_suffix(".svg"), metadata={"Date": None, "Creator": None})
    plt.close(figure)
    print(f"plot: {results.shown(target)}.png and .svg")


def datasheet_of(folder, rows, rate="gb_per_s", percent="percent_of_datasheet"):
    """The datasheet's GB/s: what is stored of the GPU, or of a run that is not stored, three digits from its fastest
    row, whose percentage has no more."""
    stored = results.environment(folder).get(results.DATASHEET, "")
    if stored:
        return float(stored.split()[0])
    known = [(number(row, rate), number(row, percent)) for row in rows]
    known = [(rate, percent) for rate, percent in known if rate and percent]
    return round(100 * max(known)[0] / max(known)[1], -1) if known else None


def draw_stages(ladder, rows, folder, target):
    """A bar per stage; the copy kernel and the datasheet as lines. folder: where the rows are stored."""
    plt, figure, axes = figure_of(1.6 + 0.33 * len(rows))
    rates = [number(row, "gb_per_s") or 0 for row in rows]
    copy, datasheet = timed.copy_rate(rows)[0], datasheet_of(folder, rows)
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
    save(plt, figure, target, f"{ladder.id}: {timed.described(ladder, rows[0])}, cold cache", rows[0])


def draw_sweep(ladder, rows, title, folder, target):
    """One line per stage over the parameter that changes: bandwidth if all inputs have one size, else microseconds."""
    plt, figure, axes = figure_of(4.8)
    is_rate = timed.is_of_one_size(ladder, rows)
    changes = [name for name in ladder.main if len({row[name] for row in rows}) > 1][-1]
    stages = list(dict.fromkeys(row["stage"] for row in rows))

    def line(of_rows, value, label, **style):
        points = sorted({(int(row[changes]), value(row)) for row in of_rows if value(row)})
        if points:
            axes.plot(*zip(*points), label=label, linewidth=1.6, markersize=5, **style)

    for place, stage in enumerate(stages if is_rate else stages[-MOST_LINES:]):
        color, marker = LINES[place % len(LINES)]
        style = {"color": color, "marker": marker, "linestyle": DASHES[place // len(LINES) % len(DASHES)]}
        column = "gb_per_s" if is_rate else "microseconds"
        line([row for row in rows if row["stage"] == stage], lambda row: number(row, column), stage, **style)
    first_of = list({row[changes]: row for row in rows if number(row, "gb_per_s")}.values())
    of_copy = (lambda row: timed.copy_rate([row])[0]) if is_rate else (lambda row: number(row, "copy_microseconds"))
    line(first_of, of_copy, "copy kernel", color=BLACK, linestyle="--")
    datasheet = datasheet_of(folder, rows) if is_rate else None
    if datasheet:
        axes.axhline(datasheet, color=BLACK, linestyle=":", linewidth=1.6, label=f"datasheet, {datasheet:.0f}")
    values = sorted({int(row[changes]) for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, [str(value) for value in values])
    axes.set_xlabel(f"{changes} (log scale)")
    if is_rate:
        axes.set_ylim(bottom=0)
        axes.set_ylabel(GB_PER_S)
    else:
        axes.set_yscale("log")
        axes.set_ylabel("µs per launch in a CUDA graph (log scale)")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    save(plt, figure, target, f"{ladder.id}: {title}", rows[0])


def draw_cold_warm(rows, folder, target):
    """W1L2's copy from memory and from the cache."""
    plt, figure, axes = figure_of(3.8)
    sizes = [int(row["buffer_bytes"]) for row in rows]
    for column, label, color, marker in (
        ("warm_apparent_gb_per_s", "one pair of buffers again and again (warm): not a bandwidth", VERMILLION, "v"),
        ("cold_gb_per_s", "many pairs in turn (cold)", BLUE, "o"),
    ):
        rates = [number(row, column) for row in rows]
        axes.plot(sizes, rates, color=color, marker=marker, markersize=5, linewidth=1.6, label=label)
    datasheet = datasheet_of(folder, rows, "cold_gb_per_s", "cold_percent_of_datasheet")
    if datasheet:
        axes.axhline(datasheet, color=BLACK, linestyle=":", linewidth=1.6, label=f"datasheet, {datasheet:.0f}")
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


def draw_peers(tables, target):
    """Time of the copy over each competitor's time: one line per shape, one panel per operator."""
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
        tidy(axes)
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
    save(plt, figure, target, f"in a CUDA graph, median of {row['replays']} replays", row)


def draw_chain(path, target):
    """Microseconds that each competitor adds to a layer over the rows; a panel a form and hidden size."""
    plt = start()
    panels = chain_tables.groups(chain_tables.read(path))
    forms = list(dict.fromkeys(form for form, _, _ in panels))
    down = -(-len(panels) // len(forms))
    figure, grid = plt.subplots(
        *(down, len(forms)), figsize=(3.4 * len(forms) + 0.4, 1.2 + 2.3 * down), layout="constrained", sharex=True,
        squeeze=False,
    )  # fmt: skip
    named = [name for name in chain_tables.names_of(chain_tables.read(path)) if name != chain_tables.NOTHING]
    peers = [name for name in named if peer_tables.is_peer(name)]
    styles = {name: (LINES[place % len(LINES)], "-:"[place // len(LINES) % 2]) for place, name in enumerate(peers)}
    styles[peer_tables.OURS], styles[peer_tables.OURS_PDL] = ((BLACK, "|"), "--"), ((BLACK, "*"), "-")
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    places = {form: iter(grid[:, column]) for column, form in enumerate(forms)}
    for key, shapes in panels.items():
        axes = next(places[key[0]])
        tidy(axes)
        for name in named:
            (color, marker), dash = styles[name]
            points = [(count, chain_tables.added(rows, name)) for count, rows in sorted(shapes.items())]
            points = [(count, microseconds) for count, microseconds in points if microseconds and microseconds > 0]
            if points:
                axes.plot(
                    *zip(*points), linestyle=dash, color=color, marker=marker, markersize=4, linewidth=1.2,
                    label=chain_tables.title(name),
                )  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_title(chain_tables.heading(*key), fontsize=7, loc="left")
    for axes in grid[-1]:
        axes.set_xlabel("rows (log scale)")
    for axes in grid[:, 0]:
        axes.set_ylabel("µs added (log scale)")
    entries = dict(reversed(pair) for axes in grid.flat for pair in zip(*axes.get_legend_handles_labels()))
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=4, frameon=False)
    row = next(iter(chain_tables.read(path).values()))[chain_tables.NOTHING]
    save(plt, figure, target, "microseconds that a norm adds to a layer in a CUDA graph, bfloat16", row)


def draw_roof(axes, found, left, right, bottom):
    """Slopes and ceilings, with their names at the left and at the right end."""
    slopes = sorted((each for each in found if each.is_slope), key=lambda each: each.tera)
    flats = sorted((each for each in found if not each.is_slope), key=lambda each: each.tera)
    highest = max((each.tera for each in flats), default=None)
    for slope, style in zip(slopes, ["-", "--", "-.", ":"]):
        end = min(right, highest / slope.tera) if highest else right
        axes.plot([left, end], [slope.tera * left, slope.tera * end], color=BLACK, linestyle=style, linewidth=1.3,
                  label=f"{slope.unit}{SLOPES.get(slope.stage, '')}, {slope.tera:.3g} TB/s")  # fmt: skip
    steepest = slopes[-1].tera if slopes else None
    for flat in flats:
        start = max(left, flat.tera / steepest) if steepest else left
        axes.plot([start, right], [flat.tera] * 2, color=BLACK, linewidth=1.3)
        of_datasheet = f" ({flat.percent:.0f} % of datasheet)" if flat.percent else ""
        axes.annotate(f"{flat.unit} {flat.tera:.0f}{of_datasheet}", (right, flat.tera), xytext=(0, 4),
                      textcoords="offset points", ha="right", va="bottom", fontsize=7.5, bbox=PAPER)  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, 3 * (highest or steepest * right))


SLOPES = {"01_dram_read": " read", "02_dram_copy": " copied"}
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # behind names that stand on lines
THREAD = {"arrowstyle": "-", "color": "#aaaaaa", "linewidth": 0.5}  # from a name to its point
ACROSS = 2  # ladders side by side below the roofline


def draw_roofline(folder, rows, target):
    """Above, all ceilings with every stage; below, a panel a ladder with the names of its stages."""
    climbed = ladders.all_ladders()
    found = roofline.best(roofline.ceilings(rows))
    of_ladders = {ladder: points for ladder, points in roofline.of_ladders(folder, climbed).items() if points}
    lines = dict(zip(of_ladders, LINES * 3))
    plt = start()
    down = -(-len(of_ladders) // ACROSS)
    figure = plt.figure(figsize=(7.6, 4.4 + 3.3 * down), layout="constrained")
    grid = figure.add_gridspec(1 + down, ACROSS, height_ratios=[4.0] + [3.3] * down)
    axes = figure.add_subplot(grid[0, :])
    tidy(axes)
    every = [point for points in of_ladders.values() for point in points]
    chosen = roofline.of_intensity(folder, climbed)
    lowest = min([point.tera for point in every + chosen], default=0.1)
    furthest = max([point.intensity for point in every + chosen], default=512)
    draw_roof(axes, found, 2**-4, max(2**14, 2 * furthest), lowest / 2)
    if chosen:
        axes.plot([point.intensity for point in chosen], [point.tera for point in chosen], linestyle="", marker="x",
                  color="#666666", markersize=5, label="05 of W3L1, 1 to 1024 multiply-adds per element")  # fmt: skip
    for ladder, points in of_ladders.items():
        color, marker = lines[ladder]
        axes.plot([point.intensity for point in points], [point.tera for point in points], linestyle="", color=color,
                  marker=marker, markersize=4, label=ladder.id)  # fmt: skip
    axes.set_xlabel("operations per byte of the memory whose slope it is; stages: of DRAM (log scale)")
    axes.set_ylabel("10$^{12}$ operations per second (log scale)")
    axes.legend(loc="lower right", fontsize=7.5, frameon=False)
    for place, (ladder, points) in enumerate(of_ladders.items()):
        below = figure.add_subplot(grid[1 + place // ACROSS, place % ACROSS])
        tidy(below)
        draw_names(below, ladder, points, found, lines[ladder])
    row = {**rows[0], "device": rows[0]["gpu"]}
    save(plt, figure, target, "roofline: measured ceilings, and the stages of every ladder that computes", row)


def draw_names(axes, ladder, points, found, line):
    """One ladder below the slope of DRAM, its stages by name."""
    color, marker = line
    least, most = min(point.intensity for point in points), max(point.intensity for point in points)
    left, right = least / 1.6, 6.5 * most
    low, high = min(point.tera for point in points), max(point.tera for point in points)
    for slope in found:
        if slope.is_slope and slope.unit == "DRAM":
            axes.plot([left, right], [slope.tera * left, slope.tera * right], color=BLACK, linewidth=1.1)
    for point in points:
        axes.plot(point.intensity, point.tera, marker, color=color, markersize=5,
                  fillstyle="full" if point.counted else "none")  # fmt: skip
    bottom, top = low / 1.8, 2.2 * max(high, low * 4)
    gap = (math.log(top) - math.log(bottom)) / 21
    heights = roofline.spread([math.log(point.tera) for point in points], gap)
    for point, height in zip(points, heights):
        axes.annotate(point.stage, (point.intensity, point.tera), xytext=(1.8 * most, math.exp(height)), fontsize=7,
                      va="center", bbox=PAPER, arrowprops=THREAD)  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(min(bottom, math.exp(min(heights)) / 1.2), max(top, 1.3 * math.exp(max(heights))))
    axes.set_title(ladder.id, fontsize=9, loc="left", color=color)


def draw_stored(folder, target):
    """Everything that is stored of one GPU."""
    ceilings = roofline.rows_of(folder)
    if ceilings:
        draw_roofline(folder, ceilings, target / f"{folder.name}_roofline")
    elif any(ladder.id == roofline.LADDER for ladder in ladders.all_ladders()):
        print(f"plot: no ceilings of this GPU are stored, so no roofline; make bench S={roofline.LADDER} measures them")
    for ladder in ladders.all_ladders():
        own, name = folder / ladder.id, f"{folder.name}_{ladder.id}"
        if (own / results.MAIN).is_file() and ladder.id != roofline.LADDER:
            draw_stages(ladder, timed.read(own / results.MAIN, ladder), own, target / f"{name}_bandwidth")
        for sweep, described in ladder.sweeps.items():
            if (own / f"{sweep}.csv").is_file() and "program" not in described:  # controls are read in tables
                rows = timed.read(own / f"{sweep}.csv", ladder)
                draw_sweep(ladder, rows, described["title"], own, target / f"{name}_{sweep}")
        if (own / "cold_warm.csv").is_file():
            draw_cold_warm(results.read(own / "cold_warm.csv", COLD_WARM), own, target / f"{name}_cold_warm")
    tables = [folder / results.HEADER / f"{name}.csv" for name in peer_tables.FILES]
    tables = [path for path in tables if path.is_file()]
    if tables:
        draw_peers(tables, target / f"{folder.name}_header_peers")
    chain = folder / results.HEADER / "chain.csv"
    if chain.is_file():
        draw_chain(chain, target / f"{folder.name}_header_chain")


def run(given):
    ladder = next((ladder for ladder in ladders.all_ladders() if ladder.id == given.ladder), None)
    if given.csv and not ladder:
        raise ladders.BadCommand(f"--ladder {given.ladder}: there is no such ladder")
    if given.csv:
        rows, folder = timed.read(given.csv, ladder), given.csv.parent
        if any(number(row, "gb_per_s") for row in rows):
            return draw_stages(ladder, rows, folder, folder / f"{results.slug(rows[0]['device'])}_{ladder.id}_bandwidth")
        print("plot: this run was not timed (no GPU), so a stored one is drawn")
    stored = results.stored(given.gpu)
    if stored is None or given.csv and not (stored / ladder.id / results.MAIN).is_file():
        print("plot: no GPU has been measured yet, so there is nothing to draw; make bench measures one")
    elif given.csv:
        rows = timed.read(stored / ladder.id / results.MAIN, ladder)
        draw_stages(ladder, rows, stored / ladder.id, given.csv.parent / f"{stored.name}_{ladder.id}_bandwidth")
    else:
        draw_stored(stored, given.out or ladders.ROOT / "plots")
