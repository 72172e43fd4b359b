"""A training step of models before and after their norms are patched: what bench/models/training.py stores, and its table.

A CSV has one row for each variant of each model. milliseconds is the median of a step, a forward and a backward pass.
step_mb is the most memory that a step has beyond the weights: activations, logits and gradients. error is that of all
gradients against those of the same model with norms in float64, and limit is twice the stock model's.
"""

from ladder.core import registry, results
from ladder.core.markdown import aligned, link, table
from ladder.core.results import number

from bench.norm import peer_tables

COLUMNS = (
    "model variant verdict milliseconds spread_percent step_mb error limit samples tokens layers norms reason version "
    "torch transformers gpu cuda_runtime driver date sm_clock_mhz"
).split()
TITLES = {"stock": "stock", "patched": "patched", "liger": "Liger's norms", "without_norms": "without norms"}


def read(path):
    """{model: {variant: row}}, in the file's order."""
    return results.grouped(path, COLUMNS, lambda row: row["model"], lambda row: row["variant"])


def store(path, rows):
    results.replace(path, lambda partial: results.write_csv(partial, COLUMNS, rows))


def value(rows, variant, column):
    """None where the variant was not timed, or is not believed."""
    row = rows.get(variant)
    return number(row, column) if row and row["verdict"] == "ok" and row[column] else None


def lines(models):
    """The table's first line, and one line for each model."""
    variants = [name for name in TITLES if any(name in rows for rows in models.values())]
    header = ["model", "layers", "norms", *(f"{TITLES[name]}, ms" for name in variants), "faster by"]
    exact = [name for name in variants if name != "without_norms"]
    header += [f"{TITLES[name]}, MB" for name in variants] + [f"gradients' error, {TITLES[name]}" for name in exact]
    body = []
    for model, rows in models.items():
        first = next(iter(rows.values()))
        stock, patched = (value(rows, name, "milliseconds") for name in ("stock", "patched"))

        def cells(column, form, names, rows=rows):
            found = [(value(rows, name, column), rows.get(name)) for name in names]
            return [
                form.format(one) if one else peer_tables.NOT_TIMED.get(row["verdict"], "") if row else ""
                for one, row in found
            ]

        body.append(
            [
                *(model, first["layers"], first["norms"]),
                *cells("milliseconds", "{:.2f}", variants),
                f"{100 * (stock / patched - 1):+.1f} %" if stock and patched else "",
                *cells("step_mb", "{:.0f}", variants),
                *cells("error", "{:.2e}", exact),
            ]
        )
    return header, body


def title(variant):
    return TITLES.get(variant, variant)


def reasons(models):
    return peer_tables.excluded(models, title, str)


@registry.csv_table("header/training")
def markdown(path, page):
    """A training step of models, before and after."""
    models = read(path)
    row = next(iter(next(iter(models.values())).values()))
    caption = (
        f"{row['tokens']} tokens of one sequence, bfloat16, random weights; median of the samples of a step, all variants "
        f"in turn. PyTorch {row['torch']}, transformers {row['transformers']}. {peer_tables.measured_on(models)}. "
        f"From {link(results.shown(path), path, page)}."
    )
    return "\n\n".join([table(*lines(models), [0]), " ".join([caption, *reasons(models)])])


def printed(path):
    """The same for a terminal."""
    models = read(path)
    return "\n".join([*aligned(*lines(models), (0,)), *reasons(models)])


def is_wrong(path):
    """Whether gradients are wrong."""
    return any(row["verdict"] == "wrong" for rows in read(path).values() for row in rows.values())
