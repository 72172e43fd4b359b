"""Models before and after their norms are patched: what bench/models/end_to_end.py stores, and the tables made from it.

A CSV has one row for each variant (stock, patched, patched_pdl, without_norms) of each input of each model, in each way
(eager, graph), with torch.compile or without. milliseconds is the median of a step: a decode step, a prefill, an image.
error is the largest of a sequence's logits against those of the same model with norms in float64 (the norm of the
difference over the norm), and limit is twice the stock model's. norms counts the model's RMSNorm modules, layers those
of the language model. bench/models/tensor_parallel.py stores the same of models that are split over GPUs.
"""

from ladder.core import registry, results
from ladder.core.ladders import Unusable
from ladder.core.markdown import aligned, link, table
from ladder.core.results import number

from bench.norm import peer_tables

COLUMNS = (
    "model types input batch tokens variant compiled way verdict milliseconds spread_percent tokens_per_s samples "
    "error limit compile_seconds layers norms reason torch transformers gpu cuda_runtime driver date "
    "sm_clock_mhz"
).split()
STOCK, PATCHED, PATCHED_PDL, WITHOUT = "stock", "patched", "patched_pdl", "without_norms"
TITLES = {STOCK: "stock", PATCHED: "patched", PATCHED_PDL: "patched, PDL", WITHOUT: "without norms"}
TYPES = {"mixed": "float32, weights float16", "float8": "bfloat16, products in float8"}
IMAGE_MODEL = "Qwen3-VL-8B"


def point(row):
    """What is measured together, and replaced together: (model, types, input)."""
    return row["model"], row["types"], row["input"]


def read(path):
    """{point: {(variant, compiled, way): row}}, in the file's order."""
    return results.grouped(path, COLUMNS, point, lambda row: (row["variant"], row["compiled"], row["way"]))


def kept(path):
    """{point: its rows}, of a file that may not be there."""
    if not path.is_file():
        return {}
    return {key: [[row[column] for column in COLUMNS] for row in rows.values()] for key, rows in read(path).items()}


def store(path, rows):
    results.replace(path, lambda partial: results.write_csv(partial, COLUMNS, rows))


def milliseconds(rows, variant, compiled="", way="graph"):
    """None where it was not timed, or is not believed."""
    row = rows.get((variant, compiled, way))
    return number(row, "milliseconds") if row and row["verdict"] == "ok" else None


def best_patched(rows, compiled="", way="graph"):
    """The faster of the two patched variants, None if neither was timed."""
    times = [milliseconds(rows, variant, compiled, way) for variant in (PATCHED, PATCHED_PDL)]
    return min((time for time in times if time), default=None)


def share(rows, time, compiled="", way="graph"):
    """The part of a step, in percent, that it takes beyond the step without norms; None where either is missing."""
    floor = milliseconds(rows, WITHOUT, compiled, way)
    return 100 * (time - floor) / time if time and floor else None


def ways(shapes):
    """Those that were timed, as (way, compiled)."""
    met = dict.fromkeys((way, compiled) for rows in shapes.values() for _, compiled, way in rows)
    order = [("eager", ""), ("graph", ""), ("eager", "torch.compile"), ("graph", "torch.compile")]
    return [one for one in order if one in met]


def way_name(way, compiled):
    return {"eager": "eager", "graph": "CUDA graph"}[way] + (f", {compiled}" if compiled else "")


def name_of(key, rows):
    """(model with its types, input) as people write them."""
    first = next(iter(rows.values()))
    model, types, given = key
    kind, _, count = given.partition("_")
    what = {"prefill": f"prefill, {count} tokens", "decode": f"decode, batch {count}", "image": "image encoder"}[kind]
    if given == "image":
        what += f", {first['tokens']} tokens"
    return f"{model}, {TYPES.get(types, types)}", what


def fixed(value, digits=2, sign=False):
    return "" if value is None else f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"


def rate(rows, time):
    """Tokens a second, for a step of these milliseconds."""
    first = next(iter(rows.values()))
    if not time or first["input"] == "image":
        return None
    return 1e3 * int(first["batch"]) * int(first["tokens"]) / time


def rate_lines(shapes, way, compiled):
    """Tokens a second before and after."""
    header = [
        "model",
        "input",
        "stock, tokens/s",
        "patched",
        "patched, PDL",
        "faster by",
        "logits' error, stock",
        "patched",
    ]
    body = []
    for key, rows in shapes.items():
        stock = milliseconds(rows, STOCK, compiled, way)
        times = [milliseconds(rows, variant, compiled, way) for variant in (PATCHED, PATCHED_PDL)]
        best = best_patched(rows, compiled, way)
        if stock is None or best is None or rate(rows, stock) is None:
            continue
        errors = {
            variant: rows[variant, compiled, way]["error"] for variant in TITLES if (variant, compiled, way) in rows
        }
        worst = max(
            [errors[variant] for variant in (PATCHED, PATCHED_PDL) if errors.get(variant)], key=float, default=""
        )
        rates = [fixed(rate(rows, time), 1) for time in (stock, *times)]
        body.append([*name_of(key, rows), *rates, f"{100 * (stock / best - 1):+.1f} %", errors[STOCK], worst])
    return header, body


def share_lines(shapes, way, compiled):
    """Milliseconds of a step, and what part of it the norms take."""
    header = ["model", "input", "norms", "stock, ms", "patched", "patched, PDL", "without norms"]
    header += ["norms' share, stock", "patched"]
    body = []
    for key, rows in shapes.items():
        times = [milliseconds(rows, variant, compiled, way) for variant in TITLES]
        if not times[0]:
            continue
        shares = [share(rows, time, compiled, way) for time in (times[0], best_patched(rows, compiled, way))]
        norms = next(iter(rows.values()))["norms"]
        percents = [f"{value:.1f} %" if value is not None else "" for value in shares]
        body.append([*name_of(key, rows), norms, *map(fixed, times), *percents])
    return header, body


FORMS = {"tokens": rate_lines, "shares": share_lines}


def caption(path, page, shapes):
    row = next(iter(next(iter(shapes.values())).values()))
    counts = [int(row["samples"]) for rows in shapes.values() for row in rows.values() if row["samples"]]
    apart = any(compiled and way == "eager" for rows in shapes.values() for _, compiled, way in rows)
    order = "all variants of an input in turn" + (
        ", but compiled ones in eager mode as soon as each is compiled" if apart else ""
    )
    samples = " to ".join(map(str, sorted({min(counts), max(counts)})))
    return (
        f"Random weights; median of {samples} samples of a step, {order}. "
        f"PyTorch {row['torch']}, transformers {row['transformers']}. {peer_tables.measured_on(shapes)}. "
        f"From {link(results.shown(path), path, page)}."
    )


@registry.csv_table("header/end_to_end", form="[tokens|shares] [text|image|MODEL] [compiled]")
def markdown(path, page, words=()):
    """Whole models before and after, by every way to run them, in the forms that the marker names; image: those of the model that sees images."""
    shapes = read(path)
    models = {key[0] for key in shapes}
    unknown = [word for word in words if word not in (*FORMS, "image", "text", "compiled", *models)]
    if unknown:
        choices = ", ".join([*FORMS, "image", "text", "compiled", *sorted(models)])
        raise Unusable(f"{results.shown(page)}: {unknown[0]} is no form of this table; choose among {choices}")
    for word, of_model in (
        ("image", lambda model: model == IMAGE_MODEL),
        ("text", lambda model: model != IMAGE_MODEL),
        *((model, model.__eq__) for model in models),
    ):
        if word in words:
            shapes = {key: rows for key, rows in shapes.items() if of_model(key[0])}
    forms = [form for name, form in FORMS.items() if name in words] or list(FORMS.values())
    parts = []
    for way, compiled in ways(shapes):
        if bool(compiled) != ("compiled" in words):
            continue
        for form in forms:
            header, body = form(shapes, way, compiled)
            if body:
                title = way_name(way, compiled)
                parts += [f"{title[0].upper() + title[1:]}:", table(header, body, [0, 1])]
    if not parts:
        return None
    return "\n\n".join([*parts, " ".join([caption(path, page, shapes), *excluded(shapes)])])


@registry.csv_table("header/tensor_parallel", form="[tokens|shares] [MODEL]")
def of_ranks(path, page, words=()):
    """Models that are split over GPUs before and after their sums and norms are patched, as header/end_to_end."""
    made, ranks = markdown(path, page, words), path.parent.parent.name.rpartition("x")[2]
    return made and f"{made} The slowest of {ranks} ranks."


def excluded(shapes):
    """Sentences on what was not timed, each reason once."""
    found = {}
    for key, rows in shapes.items():
        for (variant, compiled, way), row in rows.items():
            if row["verdict"] != "ok":
                what = (
                    way_name(way, compiled),
                    peer_tables.NOT_TIMED.get(row["verdict"], row["verdict"]),
                    row["reason"],
                )
                found.setdefault(what, {}).setdefault(", ".join(name_of(key, rows)), []).append(TITLES[variant])
    said = []
    for (way, verdict, reason), where in found.items():
        places = "; ".join(f"{place} ({', '.join(variants)})" for place, variants in where.items())
        said.append(f"{way}: {verdict} ({reason}): {places}.")
    return said


def line_of(rows):
    """What one input gave, for the progress."""
    rows = [dict(zip(COLUMNS, row)) for row in rows]
    said = []
    for way, compiled in ways({"": {(row["variant"], row["compiled"], row["way"]): row for row in rows}}):
        chosen = [row for row in rows if (row["way"], row["compiled"]) == (way, compiled)]
        times = [f"{TITLES[row['variant']]} {row['milliseconds'] or row['verdict']}" for row in chosen]
        said.append(f"{way_name(way, compiled)}: {', '.join(times)}")
    return f"{rows[0]['input']}: " + "; ".join(said)


def printed(path):
    """The tables for a terminal."""
    shapes, text = read(path), []
    for way, compiled in ways(shapes):
        for form in FORMS.values():
            header, body = form(shapes, way, compiled)
            if body:
                text += [way_name(way, compiled), *aligned(header, body), ""]
    return "\n".join([*text, *excluded(shapes)])


def is_wrong(path):
    """Whether logits are wrong, or a time cannot be."""
    return any(row["verdict"] in ("wrong", "impossible") for rows in read(path).values() for row in rows.values())
