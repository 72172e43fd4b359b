"""The report as text: a summary of each kernel, its annotated lines, the hazards, and how exact all of it is."""

import os
import textwrap

from .model import Operation, in_listing_order
from .remarks import remark
from .words import (
    NOTES,
    access_name,
    each_with_unit,
    hazard_title,
    launch_line,
    link_line,
    operation_name,
    operations_line,
    percent,
    shown,
    summary_tables,
    where,
    who,
)

MOST_HAZARDS = 20


class Style:
    def __init__(self, colour):
        self.colour = colour

    def paint(self, code, text):
        return f"\033[{code}m{text}\033[0m" if self.colour and text else text

    def bold(self, text):
        return self.paint("1", text)

    def alarm(self, text):
        return self.paint("1;31", text)

    def remark(self, text):
        return self.paint("33", text)

    def faint(self, text):
        return self.paint("2", text)


def style_for(stream):
    return Style(stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")


def cut(text, width):
    return text if len(text) <= width else text[: width - 1] + "…"


def wrapped(text, width, indent, first=None):
    return textwrap.wrap(
        text, width, initial_indent=" " * indent if first is None else first, subsequent_indent=" " * indent
    )


def aligned(rows, left=(0,), indent="  "):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            text.ljust(width) if column in left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def listing(kernel, sources, width, style):
    """The annotated lines of one kernel: the source, and below it what the warps requested there."""

    def row(*cells):
        return "{:<{}}{:>13}{:>26}{:>8}{:>8}".format(cells[0], width - 56, *cells[1:]).rstrip()

    def remark_lines(text):
        return [style.remark(line) for line in wrapped(text, width, 14, " " * 11 + "-> ")]

    lines, last = [], None
    everything = sorted([*kernel.accesses, *kernel.operations], key=in_listing_order)
    for each in everything:
        if last is None or each.place.file != last.file:
            file = f"  {shown(each.place.file)}" if each.place.file else "  (no line of yours)"
            fits = len(file) < width - 54
            lines += [""] + ([] if fits else [style.bold(file)])
            lines.append(style.bold(row(file if fits else "", "requests", "each (ideal)", "use", "lanes")))
        if each.place != last:
            lines.append(cut(f"{each.place.line or '?':>7}  {sources.text(each.place)}", width))
        last = each.place
        if isinstance(each, Operation):
            lines.append(
                row(
                    " " * 11 + operation_name(each), f"{each.calls:,}", "", "", f"{each.lanes / max(each.calls, 1):.1f}"
                )
            )
            continue
        cells = [f"{each.requests:,}", each_with_unit(each), percent(each.efficiency), f"{each.lanes_per_request:.1f}"]
        lines.append(row(" " * 11 + access_name(each), *cells))
        link = link_line(each.read_from_peers, each.written_to_peers)
        lines += [" " * 11 + link] if link else []
        said = remark(each, kernel)
        lines += remark_lines(said) if said else []
    return lines


def kernel_text(kernel, others, sources, width, style):
    lines = [style.bold(f"kernel {kernel.name}")]
    lines += wrapped(launch_line(kernel, others), width, 2)
    for table in summary_tables(kernel):
        lines += ["", *aligned(table)]
    lines += ["", *wrapped(operations_line(kernel), width, 2)]
    link = link_line(
        *(sum(getattr(a, name) for a in kernel.accesses) for name in ("read_from_peers", "written_to_peers"))
    )
    lines += wrapped(link, width, 2) if link else []
    return lines + listing(kernel, sources, width, style)


def end_text(name, end, sources, width):
    place, source, accessor = where(end.place), sources.text(end.place), who(end)
    fits = len(place) + len(accessor) + 17 <= width
    lines = [(f"     {name:<8} {place}" + (f"   {accessor}" if fits else "")).rstrip()]
    lines += [f"              {cut(source, width - 14)}"] if source else []
    return lines + ([] if fits else [f"              {accessor}"])


def hazard_text(position, hazard, sources, width, style):
    lines = [style.alarm(line) for line in wrapped(hazard_title(hazard), width, 5, f"{position:>3}. ")]
    for name, end in (("at", hazard.first), ("and", hazard.second)):
        lines += end_text(name, end, sources, width) if end else []
    what = hazard.variable or hazard.address
    lines += wrapped(f"what     {what}", width, 14, " " * 5) if what else []
    return lines + (wrapped(hazard.sentence, width, 5) if hazard.sentence else [])


def hazards_text(analysis, width, style):
    if not analysis.hazards and not analysis.unread:
        return [style.bold("hazards: none on the path that ran")]
    lines = [style.alarm(f"errors outside kernels: {len(analysis.unread)}")] if analysis.unread else []
    for sentence in analysis.unread:
        lines += ["", *wrapped(sentence, width, 2)]
    if not analysis.hazards:
        return lines
    lines += [""] * bool(lines) + [style.alarm(f"hazards: {len(analysis.hazards)}")]
    for position, hazard in enumerate(analysis.hazards[:MOST_HAZARDS], 1):
        lines += ["", *hazard_text(position, hazard, analysis.sources, width, style)]
    left_out = len(analysis.hazards) - MOST_HAZARDS
    return lines + (["", f"and {left_out} more: --json lists all"] if left_out > 0 else [])


def notes_text(width, style):
    lines = []
    for name, text in NOTES.items():
        lines += wrapped(f"{name}: {text}", width, 2, "")
    return [style.faint(line) for line in lines]


def report(analysis, width=100, style=None, every_shape=False):
    """The whole report as one text."""
    style = style or Style(False)
    shapes = analysis.shapes(every_shape)
    rule = style.faint("─" * width)
    lines = []
    for kernel, others in shapes:
        lines += [rule, *kernel_text(kernel, others, analysis.sources, width, style), ""]
    if not shapes:
        lines += [rule, "no kernel ran" + (" that was built for it" if analysis.unseen() else "")]
    if analysis.unseen():
        names = ", ".join(analysis.unseen())
        lines += [rule, *wrapped(f"not analysed, since built without simtcc --analyze: {names}", width, 2, "")]
    lines += [rule, *hazards_text(analysis, width, style)]
    if analysis.error and analysis.error not in [hazard.sentence for hazard in analysis.hazards]:
        lines += ["", style.alarm("the program's last kernel ended with:"), *wrapped(analysis.error, width, 2)]
    return "\n".join([*lines, rule, *notes_text(width, style)])
