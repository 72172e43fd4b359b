"""What all plots share: colours, the form of a figure, and how it is saved."""

from ..core import ladders, results
from ..core.results import version

# Okabe and Ito's palette, which colour-blind readers can distinguish.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
LINES = [(ORANGE, "o"), (SKY, "s"), (GREEN, "^"), (BLUE, "D"), (PURPLE, "v"), (VERMILLION, "P")]
PALE = "#cccccc"
MARKERS = "os^DvP*X<>hdp8"
COLORS = [BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, "#7a5c00"]  # and then again, with other markers
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


def save(plt, figure, target, what, row, settle=False):
    """The caption says what was measured, where and when. settle: the layout of many axes differs in the last bit from run
    to run, and so would the file; their places are rounded."""
    where = row.get("device") or row.get("gpu")
    if "date" in row:  # of what was computed without a GPU, neither date nor version matters
        where += f", CUDA {row['cuda_runtime'] if 'cuda_runtime' in row else version(row['runtime'])}, {row['date']}"
    caption = f"{what}\n{where}"
    figure.supxlabel(caption, fontsize=9, color="#444444")
    if settle:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position([round(place, 6) for place in axes.get_position().bounds])
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target.with_suffix(".svg"), metadata={"Date": None, "Creator": None, "Title": what})
    plt.close(figure)
    print(f"plot: {results.shown(target)}.svg")
