"""What a norm adds to a layer: what chain.py stores, and the tables made from it.

A CSV has one row for each competitor at each shape. All times are microseconds a layer: added_microseconds is the
median of chain - products over the places of the activations (chain_timing.py), error_microseconds the error of that
median, low_ and high_ the 10th and 90th percentile of all rounds, chain_ and products_microseconds the medians of a
layer's time with norms and without. With --split, norm_kernels_ and product_kernels_microseconds say how long the
kernels of each are on the GPU. launches counts a norm's.
"""

import math

from ladder.core import registry, results
from ladder.core.ladders import Unusable
from ladder.core.markdown import aligned, link, table
from ladder.core.results import number

from bench.norm import peer_tables

COLUMNS = (
    "form rows hidden inner dtype competitor memory verdict added_microseconds error_microseconds low_microseconds "
    "high_microseconds chain_microseconds products_microseconds norm_kernels_microseconds "
    "product_kernels_microseconds launches layers places rounds worst_error reason version gpu cuda_runtime driver "
    "date sm_clock_mhz"
).split()
NOTHING, AGAIN = "nothing", "again"
CONTROLS = (AGAIN, NOTHING)  # the header's plain launch, loaded a second time; no norm at all
LAUNCHES = {name: peer_tables.LAUNCHES[name] for name in (peer_tables.OURS, peer_tables.OURS_PDL)}
TITLES = {NOTHING: "nothing", AGAIN: "this header, again", "torch_compile_in_place": "torch.compile, in place"}


def title(competitor):
    return TITLES.get(competitor) or peer_tables.title(competitor)


def shape(row):
    """What must be the same to compare: (form, hidden, inner, rows)."""
    return row["form"], int(row["hidden"]), int(row["inner"]), int(row["rows"])


def read(path):
    """{shape: {competitor: row}}, in the file's order."""
    return results.grouped(path, COLUMNS, shape, lambda row: row["competitor"])


def kept(path, work):
    """The rows of a stored file whose shapes are not measured again."""
    again = {(one.form, one.hidden, one.inner, one.rows) for one in work}
    rows = results.read(path, COLUMNS) if path.is_file() else []
    return [[row[column] for column in COLUMNS] for row in rows if shape(row) not in again]


def store(path, rows):
    results.replace(path, lambda partial: results.write_csv(partial, COLUMNS, rows))


def added(rows, competitor):
    """Microseconds that it adds to a layer, None where it was not timed."""
    row = rows.get(competitor)
    return number(row, "added_microseconds") if row and row["verdict"] == "ok" else None


def cell(rows, competitor):
    """Microseconds that it adds and their error, or why there are none."""
    row = rows.get(competitor)
    if row is None:
        return ""
    if row["verdict"] == "ok":
        return f"{added(rows, competitor):.2f} ±{number(row, 'error_microseconds'):.2f}"
    return peer_tables.NOT_TIMED.get(row["verdict"], row["verdict"])


def fastest_peer(rows):
    """The peer that adds least, None if none was timed."""
    peers = [name for name in rows if name not in CONTROLS and peer_tables.is_peer(name)]
    timed = [name for name in peers if added(rows, name) is not None]
    return min(timed, key=lambda name: added(rows, name)) if timed else None


def behind(rows, competitor):
    """(microseconds more than the fastest peer, what of it may be error), None if either was not timed.

    The error: twice that of the difference of two medians, and what the controls say: how much nothing was measured to
    add, and by how much the same code differs when it is loaded twice.
    """
    peer = fastest_peer(rows)
    if peer is None or added(rows, competitor) is None:
        return None
    of_medians = math.hypot(*(number(rows[name], "error_microseconds") for name in (competitor, peer)))
    first, again = added(rows, peer_tables.OURS), added(rows, AGAIN)
    of_code = 0.0 if first is None or again is None else abs(first - again)
    return added(rows, competitor) - added(rows, peer), 2 * of_medians + abs(added(rows, NOTHING)) + of_code


def is_behind(rows, competitor):
    found = behind(rows, competitor)
    return found is not None and found[0] > found[1]


def is_ahead(rows, competitor):
    found = behind(rows, competitor)
    return found is not None and -found[0] > found[1]


def products(rows):
    """Microseconds of a layer's matrix products alone."""
    return number(rows[NOTHING], "products_microseconds")


def line_of(rows):
    """What one shape gave, for the progress."""
    rows = [dict(zip(COLUMNS, row)) for row in rows]
    by_name = {row["competitor"]: row for row in rows}
    said = [f"products {products(by_name):.2f}"]
    for name, row in by_name.items():
        spread = f" [{row['low_microseconds']}, {row['high_microseconds']}]" if row["verdict"] == "ok" else ""
        said.append(f"{title(name)} {cell(by_name, name)}{spread}")
        if row["norm_kernels_microseconds"]:
            said[-1] += f" ({row['norm_kernels_microseconds']} norm + {row['product_kernels_microseconds']} products)"
    return ", ".join(said) + f"; {rows[0]['layers']} layers, {by_name[NOTHING]['rounds']} rounds"


def groups(shapes):
    """{(form, hidden, inner): {rows: {competitor: row}}}, in the file's order."""
    found = {}
    for key, rows in shapes.items():
        found.setdefault(key[:3], {})[key[3]] = rows
    return found


def names_of(shapes):
    """The competitors of all shapes in the order in which they are met, the controls last."""
    met = dict.fromkeys(name for rows in shapes.values() for name in rows)
    return [*(name for name in met if name not in CONTROLS), *(name for name in CONTROLS if name in met)]


def lines(shapes):
    """The table's first line, and one line for each number of rows."""
    names = names_of(shapes)
    body = []
    for count, rows in shapes.items():
        body.append([str(count), f"{products(rows):.1f}", *(cell(rows, name) for name in names)])
    return ["rows", "products alone", *map(title, names)], body


def heading(form, hidden, inner):
    what = {"residual": "Residual add + norm", "float8": "Residual add + norm to float8"}.get(form, "Norm")
    return f"{what}, products {hidden} → {inner} → {hidden}"


def printed(path):
    """The tables for a terminal: what each adds to a layer, ± the error of the median."""
    text = []
    for key, shapes in groups(read(path)).items():
        text += [f"{heading(*key)}: microseconds a layer", *aligned(*lines(shapes)), ""]
    return "\n".join([*text, *excluded(path)])


def where_behind(shapes):
    """Sentences and a table on the shapes where the header adds more than the fastest peer, beyond the error."""
    said, body = [], []
    for name, launch in LAUNCHES.items():
        compared = [rows for rows in shapes.values() if behind(rows, name)]
        if compared:
            less, more = (sum(test(rows, name) for rows in compared) for test in (is_ahead, is_behind))
            where = f"at {less} of {len(compared)} shapes, more at {more}"
            said.append(f"{launch} adds less than the fastest peer {where}.")
    both = [rows for rows in shapes.values() if all(behind(rows, name) for name in LAUNCHES)]
    if both:
        better = [min(LAUNCHES, key=lambda name, rows=rows: added(rows, name)) for rows in both]
        less, more = (sum(map(test, both, better)) for test in (is_ahead, is_behind))
        said.append(f"Launched in the better of the two ways, it adds less at {less} of {len(both)}, more at {more}.")
    for (form, hidden, inner, count), rows in shapes.items():
        if any(is_behind(rows, name) for name in LAUNCHES):
            peer = fastest_peer(rows)
            more = [f"{behind(rows, name)[0]:.2f}" if is_behind(rows, name) else "" for name in LAUNCHES]
            body.append([heading(form, hidden, inner), str(count), *more, title(peer), f"{added(rows, peer):.2f}"])
    if not said:
        return []
    error = (
        "Counted is a difference beyond twice its error, what nothing was measured to add, and the difference between "
        "this header's two columns of the same code together."
    )
    first = ["chain", "rows", "this header, µs more", "with PDL, µs more", "fastest peer", "which adds"]
    return [" ".join([*said, error]), *([table(first, body, (0, 4))] if body else [])]


@registry.csv_table("header/chain", form="[HIDDEN ...]")
def markdown(path, page, words=()):
    """What the header and its peers add to a layer, at the hidden sizes that the marker names, or all, with captions."""
    shapes = read(path)
    hidden_sizes = sorted({key[1] for key in shapes})
    unknown = [word for word in words if word not in map(str, hidden_sizes)]
    if unknown:
        raise Unusable(f"{results.shown(page)}: {path.name} has no hidden size {unknown[0]}; it has {hidden_sizes}")
    parts = []
    for key, chosen in groups(shapes).items():
        if not words or str(key[1]) in words:
            parts += [f"{heading(*key)}:", table(*lines(chosen), [])]
    rounds, places = ({int(rows[NOTHING][what]) for rows in shapes.values()} for what in ("rounds", "places"))
    caption = (
        f"Microseconds that a norm adds to a layer, bfloat16, median of {min(places)} places of the activations ± its "
        f"error, of {min(rounds)} to {max(rounds)} rounds in all. {peer_tables.measured_on(shapes)}. "
        f"From {link(results.shown(path), path, page)}."
    )
    refused = " ".join(f"{said}." for said in excluded(path))
    return "\n\n".join(filter(None, [*parts, caption, refused, *where_behind(shapes)]))


@registry.csv_table("header/chain_float8")
def gains(path, page):
    """Microseconds of a layer in bfloat16 and in float8, and how much shorter the norm that ends in float8 makes it."""
    shapes = read(path)
    ours, pdl, apart, compiled = peer_tables.OURS, peer_tables.OURS_PDL, peer_tables.APART, "torch_compile"

    def layer(rows, name):
        return number(rows[name], "chain_microseconds") if name in rows and added(rows, name) is not None else None

    body = []
    for (form, hidden, inner, count), rows in shapes.items():
        wide = shapes.get(("residual", hidden, inner, count))
        if form != "float8" or wide is None:
            continue
        times = [layer(wide, pdl), *(layer(rows, name) for name in (apart, compiled, ours, pdl))]
        gained = [f"{time / times[-1]:.2f}" if time and times[-1] else "" for time in times[:3]]
        body.append([f"{hidden} → {inner} → {hidden}", str(count), *(f"{t:.2f}" if t else "" for t in times), *gained])
    first = [
        "products",
        "rows",
        "bfloat16, with PDL",
        "float8: norm, then torch.compile",
        "torch.compile",
        "this header",
    ]
    first += ["with PDL", "faster than bfloat16", "than apart", "than torch.compile"]
    caption = (
        f"Microseconds of a layer: residual add, norm and two products, in a CUDA graph. "
        f"{peer_tables.measured_on(shapes)}. From {link(results.shown(path), path, page)}."
    )
    refused = " ".join(f"{said}." for said in excluded(path))
    return "\n\n".join(filter(None, [table(first, body, (0,)), caption, refused]))


def excluded(path):
    """Sentences on those that were not timed, each reason once."""
    shapes, said = read(path), []
    for (name, verdict, reason), keys in peer_tables.reasons(shapes, title).items():
        count = len(keys)
        where = "everywhere" if count == len(shapes) else f"at {count} shape{'s' * (count > 1)}"
        said.append(f"{name} {where}: {verdict} ({reason})")
    return said


def is_wrong(path, peers):
    """Whether one that is no peer has a wrong result or refuses."""
    rows = [row for rows in read(path).values() for row in rows.values()]
    ours = [row for row in rows if row["competitor"].removesuffix("_in_place") not in peers]
    return any(row["verdict"] in ("wrong", "refused") for row in ours)
