"""Whole models before and after their norms are patched, as a plot."""

from ladder.core import registry, results
from ladder.pages.drawing import BLACK, LINES, VERMILLION, save, start, tidy

from bench.models import model_tables


@registry.plot(
    "header_end_to_end",
    "header/end_to_end_plot",
    "Time of a step with patched norms and without norms, relative to the stock model",
)
def draw(folder, _, target):
    """Time of a step relative to the stock model's, of each input; a panel for eager mode and one for CUDA graphs."""
    path = folder / results.HEADER / "end_to_end.csv"
    if not path.is_file():
        return
    plt, shapes = start(), model_tables.read(path)
    timed_ways = [way for way, compiled in model_tables.ways(shapes) if not compiled]
    figure, panels = plt.subplots(
        *(1, len(timed_ways)),
        figsize=(3.6 + 2.4 * len(timed_ways), 1.6 + 0.21 * len(shapes)),
        layout="constrained",
        sharey=True,
        squeeze=False,
    )
    for axes, way in zip(panels[0], timed_ways):
        tidy(axes)
        for variant, (color, marker) in zip(list(model_tables.TITLES)[1:], [LINES[3], (BLACK, "*"), LINES[0]]):
            points = []
            for place, rows in enumerate(shapes.values()):
                stock, time = (model_tables.milliseconds(rows, one, "", way) for one in (model_tables.STOCK, variant))
                if stock and time:
                    points.append((100 * time / stock, place))
            if points:
                label = model_tables.TITLES[variant]
                axes.plot(*zip(*points), linestyle="", color=color, marker=marker, markersize=6, label=label)
        axes.axvline(100, color=VERMILLION, linestyle="--", linewidth=1.2)
        axes.set_yticks(
            range(len(shapes)), [", ".join(model_tables.name_of(*one)) for one in shapes.items()], fontsize=7
        )
        axes.set_ylim(len(shapes) - 0.5, -0.5)
        axes.set_title(model_tables.way_name(way, ""), fontsize=9, loc="left")
        axes.set_xlabel("time of a step, % of stock")
    entries = {label: line for axes in panels[0] for line, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=3, frameon=False)
    save(plt, figure, target, "whole models with random weights", next(iter(next(iter(shapes.values())).values())))
