"""The header and its peers as a plot."""

from ladder.core import registry, results
from ladder.pages.drawing import BLACK, LINES, VERMILLION, WHISKERS, save, spread_of, start, tidy, whiskers

from bench.norm import peer_tables

BACKWARD, STEP = "peers_backward", "peers_step"
QUANTIZED = [name for name in peer_tables.FILES if "8" in name]


@registry.plot("header_peers", "header/peers_plot", "Speed of the header and its peers beside a copy of the same bytes")
def draw_forward(folder, _, target):
    draw(folder, [name for name in peer_tables.FILES if name not in (BACKWARD, STEP, *QUANTIZED)], target)


@registry.plot(
    "header_peers_quantized",
    "header/peers_fp8_token_plot",
    "Speed of the norms that end in 8 bits and their peers beside a copy of the same bytes",
)
def draw_quantized(folder, _, target):
    draw(folder, QUANTIZED, target)


@registry.plot(
    f"header_{BACKWARD}",
    f"header/{BACKWARD}_plot",
    "Speed of the gradients and their peers beside a copy of the same bytes",
)
def draw_backward(folder, _, target):
    draw(folder, [BACKWARD, STEP], target)


def draw(folder, names, target):
    """Time of the copy over each competitor's time: one line per shape, one panel per operator."""
    tables = [folder / results.HEADER / f"{name}.csv" for name in names]
    tables = [path for path in tables if path.is_file()]
    if not tables:
        return
    plt = start()
    shapes = [peer_tables.read(table) for table in tables]
    count = sum(map(len, shapes))
    figure, panels = plt.subplots(
        *(len(shapes), 1),
        figsize=(6.0, 1.9 + 0.21 * count),
        layout="constrained",
        sharex=True,
        squeeze=False,
        height_ratios=list(map(len, shapes)),
    )
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
                    speed = 100 * min(copies) / peer_tables.time_of(rows, name)
                    points.append((speed, place, spread_of(rows[name], speed)))
            if points:
                speeds, places, _ = zip(*points)
                label = peer_tables.title(name)
                axes.plot(speeds, places, linestyle="", color=color, marker=marker, markersize=markersize, label=label)
                whiskers(axes, points, color, across=True)
        axes.axvline(100, color=VERMILLION, linestyle="--", linewidth=1.2)
        axes.set_yticks(range(len(table)), [peer_tables.shape_name(key) for key in table], fontsize=7)
        axes.set_ylim(len(table) - 0.5, -0.5)
        axes.set_title(peer_tables.FILES[path.stem], fontsize=9, loc="left")
    panels[-1, 0].set_xlim(left=0)
    panels[-1, 0].set_xlabel("speed, % of the faster copy of the same bytes")
    entries = dict(reversed(pair) for axes in panels[:, 0] for pair in zip(*axes.get_legend_handles_labels()))
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=4, frameon=False)
    row = next(iter(next(iter(shapes[0].values())).values()))
    save(plt, figure, target, f"in a CUDA graph, median of {row['replays']} replays", row, more=WHISKERS)
