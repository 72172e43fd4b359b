"""What all plots share: colours, the form of a figure, and how it is saved."""

from . import ladders, results
from .results import version

# Okabe and Ito's palette, which colour-blind readers can distinguish.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
LINES = [(ORANGE, "o"), (SKY, "s"), (GREEN, "^"), (BLUE, "D"), (PURPLE, "v"), (VERMILLION, "P")]
DASHES = ["-", "--", ":"]  # of the first six lines, the next six, and those after them


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
    figure.savefig(target.with_suffix(".png"), dpi=200)
    figure.savefig(target.with_suffix(".svg"), metadata={"Date": None, "Creator": None})
    plt.close(figure)
    print(f"plot: {results.shown(target)}.png and .svg")
