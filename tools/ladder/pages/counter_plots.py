"""Nsight Compute's counters as pictures, of the stages that ladder.json names in reports: the way of the bytes, and
what the warps wait for.
"""

import re

from ..core import markers, registry, results
from ..measure.counters import SHORT
from . import counter_tables
from .drawing import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION, save, start, tidy

SECTOR = 32  # bytes
REASONS = {  # short names of counters.py: what a warp waits for
    "global_wait": ("data from global memory", BLUE),
    "lg_throttle": ("room in the queue of global accesses", SKY),
    "shared_wait": ("data from shared memory", GREEN),
    "mio_throttle": ("room in the queue of shared accesses", "#7fcdb0"),
    "barrier": ("a barrier", VERMILLION),
    "latency": ("the instruction before", ORANGE),
    "not_selected": ("its turn", PURPLE),
    "selected": ("issues", "#000000"),
}
OTHER = "#bbbbbb"


def is_shown(ladder):
    """Whether a page of the tree has a marker of these plots for the ladder."""
    mine = rf"table:({ladder.id}/)?(bytes|waits)_plot:begin"
    named = rf"table:{ladder.id}/(bytes|waits)_plot:begin"
    return any(
        re.search(mine if ladder.folder in page.parents else named, markers.text_of(page)) for page in markers.pages()
    )


def profiles(folder, ladder):
    """{stage: {short name: value}} of the stages named in reports, and the facts of the last file for the caption."""
    found, about = {}, {}
    for name in ladder.reports if is_shown(ladder) else []:
        path = counter_tables.path_of(folder, ladder.stage(name))
        if path.is_file():
            values, about = counter_tables.read(path)
            found[name] = {short: values.get(metric, ("", None))[1] for short, metric in SHORT.items()}
    runtime = results.environment(folder).get("CUDA runtime", "unknown")
    return found, {"device": about.get("GPU"), "cuda_runtime": runtime, "date": about.get("date")}


@registry.plot("{ladder}_bytes", "bytes_plot", "The bytes between kernel, L1, L2 and DRAM, with hit rates")
def draw_bytes(folder, ladder, target):
    """A line a stage: kernel, L1, L2 and DRAM as boxes, bytes on the arrows, hit rates in the boxes."""
    found, row = profiles(folder, ladder)
    if not found:
        return
    plt = start()
    figure, axes = plt.subplots(figsize=(7.4, 0.9 + 0.78 * len(found)), layout="constrained")
    axes.set_axis_off()
    axes.set_xlim(0, 10)
    axes.set_ylim(-len(found) + 0.35, 0.62)
    places = {"kernel": 2.3, "L1": 4.6, "L2": 6.9, "DRAM": 9.3}
    most = max(loaded(values) or 0 for values in found.values())
    for place, (name, values) in enumerate(found.items()):
        axes.text(0, -place, name, va="center", fontweight="bold", fontsize=8)
        inside = {"L1": values["l1_hits"], "L2": values["l2_read_hits"], "DRAM": values["dram_busy"]}
        for box, x in places.items():
            words = {"DRAM": "\nbusy {:.0f} %"}.get(box, "\nhits {:.0f} %")
            known = inside.get(box)
            axes.text(
                x,
                -place,
                box + (words.format(known) if known is not None else ""),
                ha="center",
                va="center",
                fontsize=7.5,
                bbox={"boxstyle": "round,pad=0.35", "facecolor": "#eef3f8", "edgecolor": BLUE},
            )
        hops = (("L1", "kernel", loaded(values)), ("L2", "L1", values["l2_to_l1"]), ("DRAM", "L2", values["dram_read"]))
        for source, end, count in hops:
            arrow(axes, places[source] - 0.55, places[end] + 0.55, -place + 0.1, count, most, BLUE)
        written = values["dram_written"]
        arrow(axes, places["L2"] + 0.55, places["DRAM"] - 0.55, -place - 0.16, written, most, VERMILLION)
    said = f"{ladder.id}, {ladder.described(ladder.main)}: MB read (blue) and written to DRAM (red), hit rates of reads"
    save(plt, figure, target, said, row)


def loaded(values):
    """The bytes of all sectors that loads asked the L1 cache for."""
    if values["load_requests"] is None or values["load_sectors"] is None:
        return None
    return SECTOR * values["load_requests"] * values["load_sectors"]


def arrow(axes, start_at, end_at, y, count, most, color):
    if count is None:
        return
    width = 0.8 + 3 * min(count / most, 1) ** 0.5
    axes.annotate(
        "",
        (end_at, y),
        xytext=(start_at, y),
        arrowprops={
            "arrowstyle": "-|>",
            "color": color,
            "linewidth": width,
            "alpha": 0.6,
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 9,
        },
    )
    above = color == BLUE
    axes.text(
        (start_at + end_at) / 2,
        y + (0.13 if above else -0.13),
        f"{count / 1e6:,.0f}",
        ha="center",
        va="bottom" if above else "top",
        fontsize=7,
        color=color,
    )


@registry.plot("{ladder}_waits", "waits_plot", "The cycles of all warps, by what they wait for")
def draw_waits(folder, ladder, target):
    """A bar a stage: the cycles of all its warps, by what the warps do in them."""
    found, row = profiles(folder, ladder)
    if not found:
        return
    plt = start()
    figure, axes = plt.subplots(figsize=(7.4, 1.7 + 0.33 * len(found)), layout="constrained")
    tidy(axes)
    for place, values in enumerate(found.values()):
        instructions, left = values["instructions"] or 0, 0.0
        for reason, (words, color) in REASONS.items():
            cycles = 1e-9 * instructions * (values[reason] or 0)
            axes.barh(place, cycles, left=left, color=color, height=0.7, label=words if place == 0 else None)
            left += cycles
        rest = max(1e-9 * instructions * (values["waits"] or 0) - left, 0)
        axes.barh(place, rest, left=left, color=OTHER, height=0.7, label="anything else" if place == 0 else None)
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("cycles of all warps together, 10$^9$: cycles per instruction times instructions")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=7.5)
    save(plt, figure, target, f"{ladder.id}, {ladder.described(ladder.main)}: what the warps wait for", row)
