"""What all plots share: colours, the form of a figure, and how it is saved."""

import io
import textwrap

from ..core import ladders, results
from ..core.results import number, version
from .svg import dark_style

# Okabe and Ito's palette, which colour-blind readers can distinguish.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
# Further ones, with about the same lightness, so that they are seen on a light and on a dark page.
BROWN, VIOLET, OLIVE, GREY, BRICK, TEAL = "#7a5c00", "#8E6BD1", "#8A8B1E", "#808080", "#A8432F", "#3AA3A8"
LINES = [(ORANGE, "o"), (SKY, "s"), (GREEN, "^"), (BLUE, "D"), (PURPLE, "v"), (VERMILLION, "P")]
LINES += [(BROWN, "X"), (VIOLET, "<"), (OLIVE, ">"), (GREY, "h"), (BRICK, "d"), (TEAL, "p")]
PALE = "#cccccc"
MARKERS = "os^DvP*X<>hdp8"
COLORS = [
    BLUE,
    ORANGE,
    GREEN,
    VERMILLION,
    PURPLE,
    SKY,
    BROWN,
    VIOLET,
    OLIVE,
    GREY,
    BRICK,
    TEAL,
]  # and then again, dashed
LETTER = 0.069  # inches of a caption's letter, on average
IN_COLOR = 4  # lines of a panel


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


def style_of(ladder, stage):
    """The colour and the marker of a stage, the same in all plots."""
    place = [one.name for one in ladder.stages].index(stage) if ladder.stage(stage) else 0
    color, marker = COLORS[place % len(COLORS)], MARKERS[place % len(MARKERS)]
    return {"color": color, "marker": marker, "linestyle": "-" if place < len(COLORS) else "--"}


def parts_of(stages):
    """The stages in order, as many panels as it takes and no panel much emptier than another."""
    count = -(-len(stages) // IN_COLOR)
    bounds = [round(place * len(stages) / count) for place in range(count + 1)]
    return [stages[begin:end] for begin, end in zip(bounds, bounds[1:])]


def grid_of(count):
    """Panels with common scales, two in a row."""
    plt = start()
    down, across = -(-count // 2), min(count, 2)
    figure, grid = plt.subplots(
        *(down, across),
        figsize=(4.2 * across + 0.4, 0.9 + 3.0 * down),
        layout="constrained",
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for axes in grid.flat:
        tidy(axes)
        axes.tick_params(labelbottom=True)
    for axes in grid.flat[count:]:
        axes.set_visible(False)
    return plt, figure, list(grid.flat[:count])


def plain_log_scale(axes):
    """Ticks at 1, 2, 5, 10, 20, …, as people write them."""
    import matplotlib.ticker as ticker

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())


WHISKERS = "; whiskers: 10th to 90th percentile of the samples"


def spread_of(row, value):
    """How far the measured value may be from the median, both ways: half of what lies between the 10th and the 90th
    percentile of the samples."""
    return value * (number(row, "spread_percent") or 0) / 200


def spread_at(place, row, value):
    """A point of whiskers."""
    return place, value, spread_of(row, value)


def whiskers(axes, points, color, across=False):
    """Lines through points (x, y, spread) that are as long as the spread, along y or across it."""
    xs, ys, spreads = zip(*points)
    error = {"xerr" if across else "yerr": spreads}
    axes.errorbar(xs, ys, **error, fmt="none", ecolor=color, elinewidth=1.0, capsize=2.0, capthick=1.0)


def save(plt, figure, target, what, row, settle=False, more=""):
    """The caption says what was measured, where and when; more: what only the caption says, not the title. settle: the
    layout of many axes differs in the last bit from run to run, and so would the file; their places are rounded."""
    where = row.get("device") or row.get("gpu")
    if "date" in row:  # of what was computed without a GPU, neither date nor version matters
        where += f", CUDA {row['cuda_runtime'] if 'cuda_runtime' in row else version(row['runtime'])}, {row['date']}"
    caption = "\n".join(textwrap.wrap(what + more, int(figure.get_figwidth() / LETTER)) + [where])
    figure.supxlabel(caption, fontsize=9, color="#444444")
    if settle:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position([round(place, 6) for place in axes.get_position().bounds])
    target.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None, "Title": what})
    text = drawn.getvalue().replace("</style>", f"{dark_style()}</style>", 1)
    target.with_suffix(".svg").write_text(text, encoding="utf-8")
    plt.close(figure)
    print(f"plot: {results.shown(target)}.svg")
