"""What a norm adds to a layer, as a plot."""

from ladder.core import registry, results
from ladder.core.results import number
from ladder.pages.drawing import BLACK, LINES, save, start, tidy

from bench.norm import chain_tables, peer_tables

WHICH = ("added", "low", "high")


@registry.plot("header_chain", "header/chain_plot", "What the header and its peers add to a layer")
def draw(folder, _, target):
    """Microseconds that each competitor adds to a layer over the rows; a panel a form and hidden size."""
    path = folder / results.HEADER / "chain.csv"
    if not path.is_file():
        return
    plt = start()
    panels = chain_tables.groups(chain_tables.read(path))
    forms = list(dict.fromkeys(form for form, _, _ in panels))
    down = -(-len(panels) // len(forms))
    figure, grid = plt.subplots(
        *(down, len(forms)),
        figsize=(3.4 * len(forms) + 0.4, 1.2 + 2.3 * down),
        layout="constrained",
        sharex=True,
        squeeze=False,
    )
    named = [name for name in chain_tables.names_of(chain_tables.read(path)) if name not in chain_tables.CONTROLS]
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
            timed = [(count, rows[name]) for count, rows in sorted(shapes.items()) if chain_tables.added(rows, name)]
            points = [(count, *(number(row, f"{which}_microseconds") for which in WHICH)) for count, row in timed]
            points = [point for point in points if point[1] > 0]
            if points:
                counts, added, low, high = zip(*points)
                errors = [[a - max(b, 0.01) for a, b in zip(added, low)], [b - a for a, b in zip(added, high)]]
                axes.errorbar(counts, added, yerr=errors, fmt="none", ecolor=color, elinewidth=0.8)
                axes.plot(
                    counts,
                    added,
                    linestyle=dash,
                    color=color,
                    marker=marker,
                    markersize=4,
                    linewidth=1.2,
                    label=chain_tables.title(name),
                )
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
    save(
        plt,
        figure,
        target,
        "microseconds that a norm adds to a layer in a CUDA graph, bfloat16",
        row,
        more="; whiskers: 10th to 90th percentile of all rounds",
    )
