"""The roofline: the ceilings that lecture W3L1 measured, and where the stages of the ladders lie below them."""

import itertools
import math
from dataclasses import dataclass

from ..core import ladders, registry, results
from ..core.results import number
from ..measure import counters, timed
from . import counter_tables
from .drawing import BLACK, LINES, save, start, tidy

LADDER, CEILINGS, INTENSITY = "W3L1", "ceilings.csv", "intensity.csv"  # the sweep of one kernel over its operations
COLUMNS = "ceiling stage counted tera_per_s percent_of_datasheet gpu cuda_runtime date".split()
SLOPES = {"01_dram_read": " read", "02_dram_copy": " copied"}
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # behind names that stand on lines
THREAD = {"arrowstyle": "-", "color": "#aaaaaa", "linewidth": 0.5}  # from a name to its point
ACROSS = 2  # ladders side by side below the roofline
# Operations per element, for CSVs that were written before they had the column; tests compare it with the programs.
PER_ELEMENT = {"rms_norm": 4, "sum": 1, "copy": 0}


@dataclass(frozen=True)
class Ceiling:
    unit: str  # "DRAM", "float32", ...
    stage: str
    tera: float  # 10^12 bytes or operations per second
    percent: float  # of the datasheet; None if it says nothing
    is_slope: bool  # of bytes


@dataclass(frozen=True)
class Point:
    stage: str
    intensity: float  # operations per byte of DRAM
    tera: float  # 10^12 operations per second
    counted: bool  # the bytes are those of Nsight Compute, not the fewest possible


def rows_of(folder):
    """The table of the ceilings of a GPU; none if they were not measured."""
    path = folder / LADDER / CEILINGS
    return results.read(path, COLUMNS) if path.is_file() else []


def ceilings(rows):
    """Every row; of several stages for one unit the best is the ceiling (best())."""
    return [
        Ceiling(
            row["ceiling"],
            row["stage"],
            number(row, "tera_per_s"),
            number(row, "percent_of_datasheet"),
            row["counted"] == "bytes",
        )
        for row in rows
        if row["tera_per_s"]
    ]


def best(found):
    """The highest ceiling of each unit, but both of DRAM: one reads, the other copies."""
    highest = {}
    for ceiling in found:
        key = (ceiling.unit, ceiling.stage if ceiling.unit == "DRAM" else "")
        if key not in highest or ceiling.tera > highest[key].tera:
            highest[key] = ceiling
    return list(highest.values())


def operations(ladder, row):
    if row.get("operations"):
        return float(row["operations"])
    return PER_ELEMENT.get(ladder.operator, 0) * math.prod(map(float, timed.given(ladder, row)))


def dram_bytes(folder, stage):
    """What Nsight Compute counted on the main input; None if that is not stored."""
    path = stage and counter_tables.path_of(folder, stage)
    if not path or not path.is_file():
        return None
    values, _ = counter_tables.read(path)
    both = [values.get(counters.SHORT[name], ("", None))[1] for name in ("dram_read", "dram_written")]
    return None if None in both else sum(both)


def points(folder, ladder, rows):
    """The stages that compute anything, in their order. Bytes are the fewest possible, or what Nsight Compute counted
    if that is more: bytes that L2 still holds at the end of a launch are written later, and not counted."""
    found = []
    for row in rows:
        computed, microseconds = operations(ladder, row), number(row, "microseconds")
        if not computed or not microseconds or not number(row, "gb_per_s"):
            continue
        fewest = 1e3 * number(row, "gb_per_s") * microseconds
        moved = dram_bytes(folder, ladder.stage(row["stage"]))
        counted = moved is not None and moved > fewest
        found.append(
            Point(row["stage"], computed / (moved if counted else fewest), computed / microseconds / 1e6, counted)
        )
    return found


def of_ladders(folder, climbed):
    """{ladder: its points}, without the ladder of the ceilings and without those that compute nothing in floats."""
    found = {}
    for ladder in climbed:
        path = folder / ladder.id / results.MAIN
        if ladder.id != LADDER and path.is_file():
            found[ladder] = points(folder, ladder, timed.read(path, ladder))
    return {ladder: places for ladder, places in found.items() if places}


def of_intensity(folder, climbed):
    """The points of the kernel that does more and more operations for each byte."""
    path = folder / LADDER / INTENSITY
    ladder = next((ladder for ladder in climbed if ladder.id == LADDER), None)
    return points(folder, ladder, timed.read(path, ladder)) if ladder and path.is_file() else []


def spread(values, least):
    """The values, pushed apart until neighbours differ by at least that much; they keep their order."""
    order, moved = sorted(range(len(values)), key=lambda place: values[place]), sorted(values)
    for _ in range(1000):
        for place in range(len(moved) - 1):
            lacking = least - (moved[place + 1] - moved[place])
            if lacking > 1e-9:
                moved[place] -= lacking / 2
                moved[place + 1] += lacking / 2
    return [moved[order.index(place)] for place in range(len(values))]


def draw_lines(axes, found, left, right, bottom):
    """Slopes and ceilings, with their names at the left and at the right end."""
    slopes = sorted((each for each in found if each.is_slope), key=lambda each: each.tera)
    flats = sorted((each for each in found if not each.is_slope), key=lambda each: each.tera)
    highest = max((each.tera for each in flats), default=None)
    for slope, style in zip(slopes, ["-", "--", "-.", ":"]):
        end = min(right, highest / slope.tera) if highest else right
        axes.plot(
            [left, end],
            [slope.tera * left, slope.tera * end],
            color=BLACK,
            linestyle=style,
            linewidth=1.3,
            label=f"{slope.unit}{SLOPES.get(slope.stage, '')}, {slope.tera:.3g} TB/s",
        )
    steepest = slopes[-1].tera if slopes else None
    for flat in flats:
        start = max(left, flat.tera / steepest) if steepest else left
        axes.plot([start, right], [flat.tera] * 2, color=BLACK, linewidth=1.3)
        of_datasheet = f" ({flat.percent:.0f} %)" if flat.percent else ""
        axes.annotate(
            f"{flat.unit} {flat.tera:.0f}{of_datasheet}",
            (right, flat.tera),
            xytext=(0, 4),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=7.5,
            bbox=PAPER,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, 3 * (highest or steepest * right))


@registry.plot(
    "roofline", "roofline", "The measured ceilings as slopes and lines, and the stages of every ladder below them"
)
def draw(folder, _, target):
    """Above, all ceilings with every stage; below, a panel a ladder with the names of its stages."""
    rows, climbed = rows_of(folder), ladders.all_ladders()
    if not rows:
        if any(ladder.id == LADDER for ladder in climbed):
            print(f"plot: no ceilings of this GPU are stored, so no roofline; make bench S={LADDER} measures them")
        return
    found = best(ceilings(rows))
    below_it = {ladder: points for ladder, points in of_ladders(folder, climbed).items() if points}
    lines = dict(zip(below_it, itertools.cycle(LINES)))
    plt = start()
    down = -(-len(below_it) // ACROSS)
    figure = plt.figure(figsize=(7.6, 4.4 + 3.3 * down), layout="constrained")
    grid = figure.add_gridspec(1 + down, ACROSS, height_ratios=[4.0] + [3.3] * down)
    axes = figure.add_subplot(grid[0, :])
    tidy(axes)
    every = [point for points in below_it.values() for point in points]
    chosen = of_intensity(folder, climbed)
    lowest = min([point.tera for point in every + chosen], default=0.1)
    furthest = max([point.intensity for point in every + chosen], default=512)
    draw_lines(axes, found, 2**-4, max(2**14, 2 * furthest), lowest / 2)
    if chosen:
        axes.plot(
            [point.intensity for point in chosen],
            [point.tera for point in chosen],
            linestyle="",
            marker="x",
            color="#666666",
            markersize=5,
            label="05 of W3L1, 1 to 1024 multiply-adds per element",
        )
    for ladder, points in below_it.items():
        color, marker = lines[ladder]
        axes.plot(
            [point.intensity for point in points],
            [point.tera for point in points],
            linestyle="",
            color=color,
            marker=marker,
            markersize=4,
            label=ladder.id,
        )
    axes.set_xlabel("operations per byte of the memory whose slope it is; stages: of DRAM (log scale)")
    axes.set_ylabel("10$^{12}$ operations per second (log scale)")
    axes.legend(loc="lower right", fontsize=7.5, frameon=False)
    for place, (ladder, points) in enumerate(below_it.items()):
        below = figure.add_subplot(grid[1 + place // ACROSS, place % ACROSS])
        tidy(below)
        draw_names(below, ladder, points, found, lines[ladder])
    row = {**rows[0], "device": rows[0]["gpu"]}
    what = "roofline: ceilings as measured (% of the datasheet), and the stages of every ladder"
    save(plt, figure, target, what, row, settle=True)


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
        axes.plot(
            point.intensity,
            point.tera,
            marker,
            color=color,
            markersize=5,
            fillstyle="full" if point.counted else "none",
        )
    bottom, top = low / 1.8, 2.2 * max(high, low * 4)
    gap = (math.log(top) - math.log(bottom)) / 21
    heights = spread([math.log(point.tera) for point in points], gap)
    for point, height in zip(points, heights):
        axes.annotate(
            point.stage,
            (point.intensity, point.tera),
            xytext=(1.8 * most, math.exp(height)),
            fontsize=7,
            va="center",
            bbox=PAPER,
            arrowprops=THREAD,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(min(bottom, math.exp(min(heights)) / 1.2), max(top, 1.3 * math.exp(max(heights))))
    axes.set_title(ladder.id, fontsize=9, loc="left", color=color)
