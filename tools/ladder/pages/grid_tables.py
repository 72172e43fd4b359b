"""The serving ladder's grid in few numbers: for each function and type, at how many shapes the document's changes, and
the production header, make a kernel faster or slower, and how much slower at most."""

from ..core import registry, results
from ..core.markdown import source, table
from ..core.results import number

PAIRS = (("before", "after"), ("after", "header"))  # the second of both is held against the first
TITLES = {"before": '"before"', "after": '"after"', "header": "header"}


def times(row, kernel):
    """{tokens: microseconds} of a row."""
    prefix = f"{kernel}_microseconds_"
    return {int(column[len(prefix) :]): number(row, column) for column in row if column.startswith(prefix)}


def slower_shapes(rows, first, second):
    """(time of the second by time of the first, tokens, hidden size), the worst first."""
    shapes = []
    for row in rows:
        of_first, of_second = times(row, first), times(row, second)
        shapes += [(of_second[n] / of_first[n], n, int(row["hidden_size"])) for n in of_first]
    return sorted((shape for shape in shapes if shape[0] > 1), reverse=True)


def compared(rows, first, second):
    """The cells of one pair: how often faster, equal and slower, and the largest loss."""
    pairs = [(times(row, first)[n], times(row, second)[n]) for row in rows for n in times(row, first)]
    slower = slower_shapes(rows, first, second)
    faster = sum(after < before for before, after in pairs)
    worst = [f"{100 * (ratio - 1):.2f} % at {tokens} × {size}" for ratio, tokens, size in slower[:1]]
    return [str(faster), str(len(pairs) - faster - len(slower)), str(len(slower)), *(worst or [""])]


@registry.csv_table("serving/grid_summary", file="grid.csv")
def markdown(path, page):
    """Of the serving ladder's grid.csv: which kernel is faster at how many shapes."""
    rows = results.read(path, ["function", "dtype", "hidden_size"])
    kinds = {}
    for row in rows:
        kinds.setdefault((row["function"], row["dtype"]), []).append(row)
    header = ["function", "dtype"]
    for first, second in PAIRS:
        name = TITLES[second]
        header += [f"{name} faster than {TITLES[first]}", "as fast", f"{name} slower", "by at most"]
    lines = [
        [*kind, *(cell for pair in PAIRS for cell in compared(of_kind, *pair))]
        for kind, of_kind in [*kinds.items(), (("all", ""), rows)]
    ]
    said = f"Shapes, and the largest loss at tokens × hidden size. {source(path, page)}"
    return f"{table(header, lines, words=(0, 1, 5, 9))}\n\n{said}"
