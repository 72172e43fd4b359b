"""The roofline: the ceilings that lecture W3L1 measured, and where the stages of the ladders lie below them."""

import math
from dataclasses import dataclass

from . import counter_tables, counters, results, timed
from .results import number

LADDER, CEILINGS, INTENSITY = "W3L1", "ceilings.csv", "intensity.csv"  # the sweep of one kernel over its operations
COLUMNS = "ceiling stage counted tera_per_s percent_of_datasheet gpu cuda_runtime date".split()
# Operations per element, for CSVs that were written before they had the column; tests compare it with the programs.
PER_ELEMENT = {"rms_norm": 4, "sum": 1, "copy": 0}


@dataclass(frozen=True)
class Ceiling:
    unit: str  # "DRAM", "float32", ...
    stage: str
    tera: float  # 10^12 bytes or operations per second
    percent: float  # of the datasheet; None if it says nothing
    is_slope: bool  # of bytes


@dataclass(frozen=True)
class Point:
    stage: str
    intensity: float  # operations per byte of DRAM
    tera: float  # 10^12 operations per second
    counted: bool  # the bytes are those of Nsight Compute, not the fewest possible


def rows_of(folder):
    """The table of the ceilings of a GPU; none if they were not measured."""
    path = folder / LADDER / CEILINGS
    return results.read(path, COLUMNS) if path.is_file() else []


def ceilings(rows):
    """Every row; of several stages for one unit the best is the ceiling (best())."""
    return [
        Ceiling(row["ceiling"], row["stage"], number(row, "tera_per_s"), number(row, "percent_of_datasheet"),
                row["counted"] == "bytes")
        for row in rows
        if row["tera_per_s"]
    ]  # fmt: skip


def best(found):
    """The highest ceiling of each unit, but both of DRAM: one reads, the other copies."""
    highest = {}
    for ceiling in found:
        key = (ceiling.unit, ceiling.stage if ceiling.unit == "DRAM" else "")
        if key not in highest or ceiling.tera > highest[key].tera:
            highest[key] = ceiling
    return list(highest.values())


def operations(ladder, row):
    if row.get("operations"):
        return float(row["operations"])
    return PER_ELEMENT.get(ladder.operator, 0) * math.prod(map(float, timed.given(ladder, row)))


def dram_bytes(folder, stage):
    """What Nsight Compute counted on the main input; None if that is not stored."""
    path = stage and counter_tables.path_of(folder, stage)
    if not path or not path.is_file():
        return None
    values, _ = counter_tables.read(path)
    both = [values.get(counters.SHORT[name], ("", None))[1] for name in ("dram_read", "dram_written")]
    return None if None in both else sum(both)


def points(folder, ladder, rows):
    """The stages that compute anything, in their order. Bytes are the fewest possible, or what Nsight Compute counted
    if that is more: bytes that L2 still holds at the end of a launch are written later, and not counted."""
    found = []
    for row in rows:
        computed, microseconds = operations(ladder, row), number(row, "microseconds")
        if not computed or not microseconds or not number(row, "gb_per_s"):
            continue
        fewest = 1e3 * number(row, "gb_per_s") * microseconds
        moved = dram_bytes(folder, ladder.stage(row["stage"]))
        counted = moved is not None and moved > fewest
        found.append(
            Point(row["stage"], computed / (moved if counted else fewest), computed / microseconds / 1e6, counted)
        )
    return found


def of_ladders(folder, climbed):
    """{ladder: its points}, without the ladder of the ceilings."""
    found = {}
    for ladder in climbed:
        path = folder / ladder.id / results.MAIN
        if ladder.id != LADDER and path.is_file():
            found[ladder] = points(folder, ladder, timed.read(path, ladder))
    return found


def of_intensity(folder, climbed):
    """The points of the kernel that does more and more operations for each byte."""
    path = folder / LADDER / INTENSITY
    ladder = next((ladder for ladder in climbed if ladder.id == LADDER), None)
    return points(folder, ladder, timed.read(path, ladder)) if ladder and path.is_file() else []


def spread(values, least):
    """The values, pushed apart until neighbours differ by at least that much; they keep their order."""
    order, moved = sorted(range(len(values)), key=lambda place: values[place]), sorted(values)
    for _ in range(1000):
        for place in range(len(moved) - 1):
            lacking = least - (moved[place + 1] - moved[place])
            if lacking > 1e-9:
                moved[place] -= lacking / 2
                moved[place + 1] += lacking / 2
    return [moved[order.index(place)] for place in range(len(values))]
