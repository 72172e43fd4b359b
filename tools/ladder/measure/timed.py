"""The rows of a ladder's CSVs: the inputs they were measured on, and the copy kernel's time in the same run."""

import math

from ..core import results
from ..core.results import number

COLUMNS = (
    "stage verdict microseconds gb_per_s percent_of_copy percent_of_datasheet copy_microseconds copied_bytes "
    "datasheet_gb_per_s iterations device runtime date"
).split()


def read(path, ladder):
    rows = results.read(path, [*COLUMNS, *ladder.main])
    if not rows:
        raise results.Unusable(f"{results.shown(path)} holds no stage")
    return rows


def given(ladder, row):
    """The values of the operator's parameters."""
    return tuple(row[name] for name in ladder.main)


def described(ladder, row):
    """ "8192 × 8192 float32 with a weight": the optional tensors stand between the parameters and the seed."""
    names = list(row)
    first = max(names.index(name) for name in ladder.main) + 1
    optional = names[first : names.index("seed")] if "seed" in names[first:] else []
    return ladder.described(row) + "".join(f" with a {name}" for name in optional if row[name] == "1")


def copy_rate(row):
    """GB/s of the copy kernel that was timed with this row; None if there was none."""
    copied, microseconds = number(row, "copied_bytes"), number(row, "copy_microseconds")
    return copied / microseconds / 1e3 if copied and microseconds else None


def sweep_of(ladder, rows):
    """(what a plot of a sweep shows, over what): bandwidth where all inputs have as many elements, else microseconds where
    one parameter changes, and percent of the copy kernel where several do."""
    changing = [name for name in ladder.main if len({row[name] for row in rows}) > 1]
    if is_of_one_size(ladder, rows):
        return "bandwidth", changing[-1]
    if len(changing) == 1:
        return "microseconds", changing[0]
    return "percent of the copy kernel", " × ".join(ladder.main)


def is_of_one_size(ladder, rows):
    """Whether a sweep's inputs all have as many elements, so that its bandwidths can be compared."""
    sizes = {math.prod(map(int, given(ladder, row))) for row in rows}
    return len(sizes) == 1 and len({given(ladder, row) for row in rows}) > 1
