"""The report as one HTML file that needs nothing else: the source with its counters, and pictures of warps."""

import re
from html import escape

from .model import Place
from .remarks import remark
from .warp_pictures import picture
from .words import (
    NOTES,
    access_name,
    coordinates,
    count,
    hazard_title,
    launch_line,
    link_line,
    operation_name,
    operations_line,
    per_request,
    percent,
    shown,
    summary_tables,
    where,
    who,
)

PICTURES = 4  # a kernel
REACH = 30  # lines in which the head and the end of a function are looked for

# The system's choice, unless the page's own script has set the root's data-scheme.
DARK = """--text: #dde3ea; --back: #14171b; --faint: #97a1ad; --line: #333a43; --global: 255, 110, 50;
  --shared: 80, 160, 255; --word: #c792ea; --text-in: #8bc98b; --used: #2f5f93; --clash: #a44a2a; --idle: #20252b;
  --alarm: #ff8a80; --said: #e5b567; --link: #8ab4f8;"""
STYLE = (
    f"""
:root {{ color-scheme: light dark; --text: #1b1f24; --back: #fff; --faint: #667; --line: #d5dae1; --global: 214, 70, 20;
  --shared: 20, 110, 200; --word: #7a3e9d; --text-in: #2a7a3b; --used: #9ec5f4; --clash: #f0a58a; --idle: #f1f3f5;
  --alarm: #b3261e; --said: #8a5a00; --link: #1a56c4; }}
@media (prefers-color-scheme: dark) {{ :root:not([data-scheme="light"]) {{ {DARK} }} }}
:root[data-scheme="dark"] {{ color-scheme: dark; {DARK} }} :root[data-scheme="light"] {{ color-scheme: light; }}
"""
    + """
body { color: var(--text); background: var(--back); font: 15px/1.45 system-ui, sans-serif; margin: 1.5em auto;
  max-width: 90em; padding: 0 1em; }
a { color: var(--link); }
h1 { font-size: 1.3em; overflow-wrap: anywhere; } h2 { font-size: 1.1em; margin-top: 2em; overflow-wrap: anywhere; }
h3 { font-size: 1em; margin-bottom: .3em; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9em; }
th { font-weight: normal; color: var(--faint); text-align: right; } th, td { padding: .1em .6em; white-space: nowrap; }
td { text-align: right; font-variant-numeric: tabular-nums; vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
.left, .code, .said, .source th:nth-child(4), .source th:last-child { text-align: left; }
.source { width: 100%; } .source td:last-child { width: 100%; min-width: 24em; }
.source th:nth-child(-n+2), .source td:nth-child(-n+2) { padding: 0; min-width: 1.1em; }
.code { white-space: pre-wrap; overflow-wrap: anywhere; font-family: ui-monospace, monospace; }
.code i { font-style: normal; } .code .k { color: var(--word); } .code .c { color: var(--faint); }
.code .s { color: var(--text-in); } .patch { display: inline-block; width: 1em; height: 1em; vertical-align: -.15em; }
.said { color: var(--said); white-space: normal; }
.hazard { border-left: 3px solid var(--alarm); padding-left: 1em; margin: 1em 0; } .hazard b { color: var(--alarm); }
pre { margin: .2em 0; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .9em; } .faint, footer { color: var(--faint); }
svg text { font: 9px system-ui, sans-serif; text-anchor: middle; fill: var(--text); } svg { margin: .3em 0; }
svg .where { text-anchor: start; fill: var(--faint); } svg .bank { fill: var(--faint); }
svg rect { stroke: var(--line); stroke-width: .5; } svg .used { fill: var(--used); } svg .clash { fill: var(--clash); }
svg .idle { fill: var(--idle); } svg .frame { fill: none; stroke: var(--faint); stroke-width: 1; }
/* On a narrow screen a line of the source stands above its counters. */
@media (max-width: 50em) {
  .source, .source tbody { display: block; }
  .source tr { display: flex; flex-wrap: wrap; column-gap: .8em; border-top: 1px solid var(--line); }
  .source tr:first-child, .source td:empty { display: none; }
  .source td, .source td:last-child { padding: 0; min-width: 0; width: auto; white-space: normal; overflow-wrap: anywhere; }
  .source td:nth-child(-n+2) { display: block; flex: 0 0 1.1em; margin-right: -.6em; min-width: 1.1em; }
  .source td:nth-child(3) { flex: 0 0 2em; }
  .source td.code { flex: 1 1 0; white-space: pre-wrap; font-size: .9em; }
  .source td.said { flex: 1 1 100%; }
  .source tr::after { content: ""; order: 1; flex: 0 0 100%; }
  .source td:nth-child(n+4):not(.code):not(.said) { order: 2; flex: 0 0 auto; color: var(--faint); }
  .source td:nth-child(5)::after { content: " requests"; } .source td:nth-child(6)::after { content: " each"; }
  .source td:nth-child(7)::after { content: " used"; } .source td:nth-child(8)::after { content: " lanes"; }
}
"""
)


def row(cells, tag="td"):
    tags = [tag if cell else "td" for cell in cells]  # a header says something
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for tag, cell in zip(tags, cells)) + "</tr>"


def wide(html, name):
    """What may be wider than the screen, and scrolls by itself, by keyboard too."""
    return f'<div class="wide" tabindex="0" role="group" aria-label="{escape(name)}">{html}</div>'


def summary(kernel):
    tables = [f"<table>{row(head, 'th')}{''.join(map(row, rows))}</table>" for head, *rows in summary_tables(kernel)]
    return wide("<br>".join(tables), f"Sums of {kernel.name}")


def extent(lines, numbers):
    """The first and last line of the functions in which the numbered lines stand, as far as their layout tells."""
    first, last = min(numbers), max(numbers)
    starts = [n for n in range(max(first - REACH, 1), first + 1) if re.search(r"\b__(global|device)__\b", lines[n - 1])]
    start = starts[-1] if starts else max(first - 3, 1)
    while start > 1 and re.match(r"\s*(template\b|//)", lines[start - 2]):
        start -= 1
    closing = re.compile(r"\}|\S.*\}\s*(//.*)?$")  # of a function, or all of one on a line
    ends = [n for n in range(last, min(last + REACH, len(lines)) + 1) if closing.match(lines[n - 1])]
    return start, ends[0] if ends else min(last + 3, len(lines))


def heat_of(kernel):
    """{memory: {place: 0 to 1}}: the line's share of the kernel's transfers of that memory, against the largest."""
    heat = {"global": {}, "shared": {}}
    for access in kernel.accesses:
        of_space = heat[access.space]
        of_space[access.place] = of_space.get(access.place, 0) + access.transfers
    for of_space in heat.values():
        largest = max(of_space.values(), default=0) or 1
        of_space.update({place: transfers / largest for place, transfers in of_space.items()})
    return heat


def warm(space, value):
    return f'<td style="background: rgba(var(--{space}), {value:.2f})"></td>'


def legend():
    patches = "".join(
        f'<span class="patch" style="background: rgba(var(--{space}), {strength})"></span> {said} '
        for space, strength, said in (
            ("global", 1, "the line with the most sectors of global memory,"),
            ("global", 0.3, "one with 30 % of that;"),
            ("shared", 1, "the line with the most wavefronts of shared memory,"),
            ("shared", 0.3, "one with 30 % of that."),
        )
    )
    return f'<p class="faint">The first two columns: {patches}</p>'


WORDS = set(
    "alignas auto bool break case char class const constexpr continue default do double else enum extern false float for "
    "if inline int long namespace new nullptr return short signed sizeof static struct switch template this true typedef "
    "typename union unsigned using void volatile while __global__ __device__ __host__ __shared__ __constant__ "
    "__restrict__ __launch_bounds__ __forceinline__ __syncthreads __syncwarp".split()
)
TOKEN = re.compile(
    r"""(?P<c>//.*|/\*.*?(?:\*/|$))|(?P<s>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<w>[A-Za-z_]\w*)|[^\w"'/]+|."""
)


def coloured(line, in_comment=False):
    """(HTML of a source line, whether a comment goes on after it)"""
    if in_comment:
        comment, closed, rest = line.partition("*/")
        html, goes_on = coloured(rest) if closed else ("", True)
        return f'<i class="c">{escape(comment + closed)}</i>{html}', goes_on
    out, goes_on = [], False
    for token in TOKEN.finditer(line):
        kind = "k" if token["w"] in WORDS else "c" if token["c"] else "s" if token["s"] else ""
        out.append(f'<i class="{kind}">{escape(token[0])}</i>' if kind else escape(token[0]))
        goes_on = token[0].startswith("/*") and not token[0].endswith("*/")
    return "".join(out), goes_on


def counters_at(kernel, place):
    """Rows of (what, requests, each, use, lanes, remark) for one line."""
    for access in kernel.accesses:
        if access.place == place:
            lanes = f"{access.lanes_per_request:.1f}"
            cells = (
                access_name(access),
                f"{access.requests:,}",
                per_request(access),
                percent(access.efficiency),
                lanes,
            )
            said = filter(None, (link_line(access.read_from_peers, access.written_to_peers), remark(access, kernel)))
            yield (*cells, "; ".join(said) or None)
    for each in kernel.operations:
        if each.place == place:
            lanes = f"{each.lanes / each.calls:.1f}" if each.calls else ""
            yield (operation_name(each), f"{each.calls:,}", "", "", lanes, None)


def no_access(kernel, place):
    """The cells of a line that touches no memory: how many lanes run it together, where that is known."""
    times, lanes = kernel.ran.get(place, (0, 0))
    return ("", "", "", "", f"{lanes / times:.1f}" if times else "", None)


def listing(kernel, file, sources):
    lines = sources.lines(file)
    heat = heat_of(kernel)
    places = [*heat["global"], *heat["shared"], *(each.place for each in kernel.operations)]
    marked = {place.line for place in places if place.file == file}
    marked |= {place.line for place in kernel.ran if place.file == file}
    marked = {line for line in marked if line <= len(lines)}
    if not marked:
        return f'<p class="faint">{escape(shown(file))} cannot be read.</p>'
    out = [row(["", "", "line", "access", "requests", "each (ideal)", "use", "lanes", "source"], "th")]
    first, last = extent(lines, marked)
    in_comment = False
    for line_number in range(first, last + 1):
        place = Place(file, line_number)
        counters = list(counters_at(kernel, place)) or [no_access(kernel, place)]
        for position, (*cells, said) in enumerate(counters):
            first_of_line = position == 0
            beside = ("said", escape(said or ""))
            if first_of_line:
                code, in_comment = coloured(lines[line_number - 1], in_comment)
                beside = ("code", code)
            heats = "".join(warm(space, heat[space].get(place, 0) * first_of_line) for space in heat)
            out.append(
                f'<tr>{heats}<td class="faint">{line_number if first_of_line else ""}</td>'
                f'<td class="left">{cells[0]}</td>{"".join(f"<td>{cell}</td>" for cell in cells[1:])}'
                f'<td class="{beside[0]}">{beside[1]}</td></tr>'
            )
            if said and first_of_line:
                out.append(f'<tr><td colspan="8"></td><td class="said">{escape(said)}</td></tr>')
    table = wide(f'<table class="source">{"".join(out)}</table>', f"Lines of {shown(file)}")
    return f"<h3>{escape(shown(file))}</h3>{legend()}{table}"


def pictures(kernel, sources):
    """The lines with the most transfers beyond the ideal; where there are none, the busiest one of each memory."""
    ranked = sorted(kernel.accesses, key=lambda access: (access.excess, access.transfers), reverse=True)
    chosen = [access for access in ranked if access.excess]
    for space in ("global", "shared"):
        if not any(access.space == space for access in chosen):
            chosen += [access for access in ranked if access.space == space][:1]
    out, seen = [], {None}
    for access in chosen:
        drawn = picture(access)
        if drawn in seen or len(out) == PICTURES:
            continue
        seen.add(drawn)
        worst = access.worst
        unit = "sector" if access.is_global else "wavefront"
        said = f"warp {worst['warp']} of block {coordinates(worst['block'])}: {access_name(access)}, {count(worst[f'{unit}s'], unit)}"
        said += f", addresses in {worst['base']}" if worst.get("base") else ""
        source = f"{where(access.place)}: {sources.text(access.place)}"
        out.append(f"<h3>{escape(said)}</h3><pre>{escape(source)}</pre>{wide(drawn, said)}")
    if not out:
        return ""
    key = "Each cell is a 4-byte word and holds the number of the lane that requests it. "
    key += "Eight words are a sector of global memory; a column is a bank of shared memory."
    return f'{"".join(out)}<p class="faint">{key}</p>'


def kernel_html(kernel, others, sources):
    said = f"{escape(launch_line(kernel, others))}.<br>{escape(operations_line(kernel))}."
    files = "".join(listing(kernel, file, sources) for file in kernel.files())
    return f"<h2>kernel {escape(kernel.name)}</h2><p>{said}</p>{summary(kernel)}{files}{pictures(kernel, sources)}"


def hazard_html(hazard, sources):
    out = [f"<b>{escape(hazard_title(hazard))}</b>"]
    for end in filter(None, (hazard.first, hazard.second)):
        out.append(f"<pre>{escape(where(end.place))}: {escape(sources.text(end.place))}</pre>{escape(who(end))}")
    out.append(f"<p>{escape(hazard.variable or hazard.address)}</p><p>{escape(hazard.sentence)}</p>")
    return f'<div class="hazard">{"".join(out)}</div>'


def page(analysis, every_shape=False, name=""):
    """The whole report as one HTML text. name: what it calls the program, if not by its file."""
    title = f"Analysis of {escape(name or analysis.program.rsplit('/', 1)[-1])}"
    hazards = "".join(hazard_html(hazard, analysis.sources) for hazard in analysis.hazards)
    hazards = hazards or ("" if analysis.unread else "<p>None on the path that ran.</p>")
    errors = [*analysis.unread, *filter(None, [analysis.error])]
    error = "".join(f'<p class="hazard"><b>{escape(sentence)}</b></p>' for sentence in errors)
    shapes = analysis.shapes(every_shape)
    kernels = "".join(kernel_html(kernel, others, analysis.sources) for kernel, others in shapes)
    notes = "".join(f"<p><b>{name}</b>: {escape(text)}</p>" for name, text in NOTES.items())
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{STYLE}</style></head>\n<body><main><h1>{title}</h1>'
        f"{error}{kernels}<h2>Hazards</h2>{hazards}</main><footer>{notes}</footer></body></html>\n"
    )
