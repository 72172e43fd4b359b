"""A table of any stored CSV."""

import re

from ..core import results
from ..core.ladders import Unusable
from ..core.markdown import link, table

TITLES = {
    "graph_microseconds": "in a graph, µs",
    "plain_microseconds": "in a stream, µs",
    "submit_microseconds": "CPU's share, µs",
    "host_microseconds": "host's time, µs",
    "event_pair_microseconds": "an event pair each, µs",
    "right": "right?",
    **{f"{n}_pack{s}_pdl_microseconds": f"{n} pack{s}, PDL, µs" for n, s in (("four", "s"), ("two", "s"), ("one", ""))},
    "root_of_65520_by_cols": "√(65520 / cols)",
    "tera_per_s": "10¹² per second",
    "datasheet_tera_per_s": "datasheet",
    "source_of_datasheet": "the datasheet",
}
UNITS = (
    *(("microseconds", "µs"), ("gb_per_s", "GB/s"), ("gflop_per_s", "GFLOP/s"), ("megabytes", "MB"), ("mhz", "MHz")),
    ("spread_percent", "spread, %"),
)


def title(column):
    """cold_gb_per_s -> "cold, GB/s"; percent_of_ceiling -> "% of ceiling"; buffer_bytes -> "buffer"."""
    if column in TITLES:
        return TITLES[column]
    before, percent, after = column.partition("percent_of_")
    if percent:
        return (before.replace("_", " ").strip() + ", " if before else "") + "% of " + after.replace("_", " ")
    for suffix, unit in UNITS:
        if column.endswith(suffix):
            words = column[: -len(suffix)].replace("_", " ").strip()
            return f"{words}, {unit}" if words else unit
    return re.sub(r"_bytes$|^is_", "", column).replace("_", " ")


def size(count):
    """Bytes as people write them: powers of two as KiB, MiB, GiB."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= scale and count * 16 % scale == 0:
            return f"{count / scale:g} {unit}"
    return f"{count:,}"


def cell(column, text):
    if column.endswith("_bytes") and text.isdigit():
        return size(int(text))
    if column.startswith("is_"):
        return {"1": "yes", "0": ""}.get(text, text)
    return text.replace("|", "\\|")


def is_numeric(rows, column):
    return all(re.fullmatch(r"[-+]?[\d.]*(e[-+]?\d+)?", row[column]) for row in rows) and not column.startswith("is_")


def picked(path, page, rows, only):
    """The rows that have one of the values in each column of only, {column: "value,value"}."""
    for column, values in only.items():
        met = {row.get(column) for row in rows}
        lacking = [value for value in values.split(",") if value not in met]
        if lacking:
            where = f"{results.shown(page)}: {path.name}"
            raise Unusable(f"{where} has no row with {column}={lacking[0]}; a marker names a column and its values")
        rows = [row for row in rows if row[column] in values.split(",")]
    return rows


def build(path, page, chosen, only=None):
    """The columns chosen, or all; what is the same in every row is said once, below the table."""
    stored = results.read(path)
    if not stored:
        raise Unusable(f"{results.shown(path)} holds no rows")
    rows = picked(path, page, stored, only or {})
    unknown = [column for column in chosen if column not in rows[0]]
    if unknown:
        where = f"{results.shown(page)}: {path.name}"
        raise Unusable(f"{where} has no column {', '.join(unknown)}; it has {', '.join(rows[0])}")
    same = [column for column in rows[0] if len({row[column] for row in rows}) == 1 and column not in chosen]
    same = [column for column in same if len(rows) > 1 or column in results.OF_THE_RUN]
    columns = list(chosen) or [column for column in rows[0] if column not in same]
    words = [place for place, column in enumerate(columns) if not is_numeric(rows, column)]
    body = table([title(column) for column in columns], [[cell(c, row[c]) for c in columns] for row in rows], words)
    first = rows[0]
    facts = [column for column in same if column not in results.OF_THE_RUN and first[column]]
    facts = "; ".join(f"{title(column)} {cell(column, first[column])}" for column in facts)
    where = [first.get("gpu", "")]
    where += [f"clocks as found (SM: at most {first['sm_clock_mhz']} MHz)"] if first.get("sm_clock_mhz") else []
    where += [f"CUDA {first['cuda_runtime']}"] if first.get("cuda_runtime") else []
    where = ", ".join(word for word in [*where, first.get("date", "")] if word)
    source = f"From {link(results.shown(path), path, page)}"
    source += f", which has all {len(stored)} rows" if len(rows) < len(stored) else ""
    sentences = [facts[:1].upper() + facts[1:], where, source]
    return body + "\n\n" + " ".join(f"{sentence}." for sentence in sentences if sentence)
