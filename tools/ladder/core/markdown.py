"""Pieces of Markdown that the tables are made of."""

import os

from . import ladders, results


def table(header, rows, words=(0,)):
    """A Markdown table; the columns numbered in `words` hold words, the others numbers."""
    rule = ["---" if column in words else "---:" for column in range(len(header))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows])


def aligned(header, rows, words=()):
    """The same for a terminal, as lines."""
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    pad = [str.ljust if column in words else str.rjust for column in range(len(header))]
    return [
        "  ".join(fit(cell, width) for fit, cell, width in zip(pad, line, widths)).rstrip() for line in [header, *rows]
    ]


def link(text, target, page):
    return f"[{text}]({os.path.relpath(target, page.parent)})"


def image(gpu, name, text, page):
    """The plot, if it has been drawn, and links to those of other GPUs."""
    path = ladders.ROOT / "plots" / f"{gpu}_{name}.svg"
    if not path.is_file():
        return []
    others = {one.name.removesuffix(f"_{name}.svg"): one for one in sorted(path.parent.glob(f"*_{name}.svg"))}
    same = [link(other.upper(), one, page) for other, one in others.items() if other != gpu and "_" not in other]
    said = f"\n\nThe same plot, measured on another GPU: {', '.join(same)}." if same else ""
    return [f"![{text}]({os.path.relpath(path, page.parent)}){said}"]


def how_we_measure(text, page):
    """The text, linked to the description of the method, which a caption need not repeat."""
    return link(text, ladders.ROOT / "profiling_results/README.md#how-we-measure", page)


def source(path, page):
    return f"From {link(results.shown(path), path, page)}."


def code(text, width=60):
    """A line of source in a table's cell."""
    text = text if len(text) <= width else text[: width - 1] + "…"
    return f"`{text}`".replace("|", "\\|") if text else ""
