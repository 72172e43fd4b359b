"""Pieces of Markdown that the tables are made of."""

import os


def table(header, rows, words=(0,)):
    """A Markdown table; the columns numbered in `words` hold words, the others numbers."""
    rule = ["---" if column in words else "---:" for column in range(len(header))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows])


def link(text, target, page):
    return f"[{text}]({os.path.relpath(target, page.parent)})"


def code(text, width=60):
    """A line of source in a table's cell."""
    text = text if len(text) <= width else text[: width - 1] + "…"
    return f"`{text}`".replace("|", "\\|") if text else ""
