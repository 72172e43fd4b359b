"""The rows of a ladder's CSVs: the inputs they were measured on, and the copy kernel's time in the same run."""

import math

from ..core import results
from ..core.results import number

COLUMNS = (
    "stage verdict microseconds gb_per_s percent_of_copy percent_of_datasheet copy_microseconds iterations device "
    "runtime date"
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


def copy_rate(rows):
    """GB/s of the copy kernel that was timed with these rows, and its percentage of the datasheet; None if unknown.

    Where the stages of a ladder move different bytes, the copy's are those of the rows whose percentages fit. Where
    none does, since all stages also read a weight, the rate follows from the highest percentage: its digits say most.
    """
    timed = [row for row in rows if number(row, "gb_per_s") and number(row, "copy_microseconds")]
    rates = [number(row, "gb_per_s") * number(row, "microseconds") / number(row, "copy_microseconds") for row in timed]
    known = list(zip(timed, rates))
    if not known:
        return None, None
    fitting = [pair for pair in known if fits(*pair)]
    row, rate = fitting[-1] if fitting else from_percentage(timed)
    of_datasheet = number(row, "percent_of_datasheet")
    return rate, rate / number(row, "gb_per_s") * of_datasheet if of_datasheet else None


def fits(row, rate):
    """Whether the row's percentage is that of a copy kernel of this rate, but for the digits that the CSV lacks."""
    percent = number(row, "percent_of_copy")
    return not percent or abs(100 * number(row, "gb_per_s") / rate - percent) < 0.06 + 0.01 * percent


def from_percentage(rows):
    """(row, the copy kernel's GB/s) by the percentage of the row that comes nearest to the copy."""
    row = max(rows, key=lambda row: number(row, "percent_of_copy"))
    return row, 100 * number(row, "gb_per_s") / number(row, "percent_of_copy")


def moves_as_much(row, rate):
    """Whether the row's stage moves the bytes of the copy kernel that has this rate; without a time it does."""
    if not number(row, "gb_per_s") or not number(row, "copy_microseconds"):
        return True
    moved = number(row, "gb_per_s") * number(row, "microseconds")
    return abs(moved / (rate * number(row, "copy_microseconds")) - 1) < 0.02


def is_of_one_size(ladder, rows):
    """Whether a sweep's inputs all have as many elements, so that its bandwidths can be compared."""
    sizes = {math.prod(map(int, given(ladder, row))) for row in rows}
    return len(sizes) == 1 and len({given(ladder, row) for row in rows}) > 1
