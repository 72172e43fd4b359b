"""The tables of Nsight Compute's counters: counters against stages."""

from . import results
from .counters import COUNTERS, MISSING
from .ladders import Unusable
from .markdown import link, table
from .results import number


def path_of(folder, stage):
    return folder / stage.ladder.id / f"ncu/{stage.name}.csv"


def read(path):
    """One stage's stored counters: {ncu's name: (unit, number or None)}, and what else its file says."""
    rows = results.read(path, ["name", "metric", "unit", "value"])
    values = {}
    for row in rows:
        if row["metric"]:
            values[row["metric"]] = (row["unit"], None if row["value"] == MISSING else number(row, "value"))
    return values, {row["name"]: row["value"] for row in rows if not row["metric"]}


def plain(value):
    """As many digits as a reader compares."""
    if value is None:
        return MISSING
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def scaled(unit, values):
    """The unit that all cells of a row share, and its size."""
    most = max((abs(value) for value in values if value is not None), default=0)
    if unit in ("ns", "nsecond"):
        return "µs", 1e3
    if unit in ("byte", "bytes"):
        return ("MB", 1e6) if most >= 1e6 else ("bytes", 1)
    if unit == "%":
        return "%", 1
    return ("million", 1e6) if most >= 1e7 else ("", 1)


def chosen(ladder, words, where):
    """The stages that a marker names, NAME or FROM..TO where one end may be left out; all where it names none."""
    if not words:
        return ladder.stages
    names, found = [stage.name for stage in ladder.stages], []
    for word in words:
        first, dots, last = word.partition("..")
        ends = [first or names[0], (last or names[-1]) if dots else first]
        unknown = [name for name in ends if name not in names]
        if unknown:
            raise Unusable(f"{where}: there is no stage {', '.join(unknown)} in {ladder.id}")
        found += ladder.stages[names.index(ends[0]) : names.index(ends[1]) + 1]
    return found


def build(folder, page, metrics, stages):
    """With the files they came from; None where none of these stages has been profiled."""
    stages = [stage for stage in stages if path_of(folder, stage).is_file()]
    if not stages:
        return None
    profiles = [read(path_of(folder, stage)) for stage in stages]
    lines = []
    for metric in metrics:
        if not any(metric in values for values, _ in profiles):
            continue  # not asked for when these were profiled
        cells = [values.get(metric, ("", None)) for values, _ in profiles]
        values = [value for _, value in cells]
        unit, scale = scaled(next((unit for unit, value in cells if value is not None), ""), values)
        name = COUNTERS[metric] + (f", {unit}" if unit else "")
        lines.append([name] + [plain(None if value is None else value / scale) for value in values])
    about = profiles[-1][1]
    files = ", ".join(link(stage.name, path_of(folder, stage), page) for stage in stages)
    caption = (
        f"One launch, caches emptied first. {about.get('GPU', '')}, Nsight Compute {about.get('Nsight Compute', '')}, "
        f"{about.get('date', '')}. All counters: {files}."
    )
    return f"{table(['counter', *(stage.name for stage in stages)], lines)}\n\n{caption}"
