"""The tables of Nsight Compute's counters, counters against stages; and sections of its own report."""

import re
import sys
import textwrap

from ..core import machine, registry, results
from ..core.ladders import Unusable
from ..core.markdown import how_we_measure, link, table
from ..core.results import number
from ..measure.counters import COUNTERS, MISSING

READER = "lectures/W3L2_nsight_compute/read_report.py"
ADVICE = ("INF ", "OPT ", "WRN ")  # how ncu's own remarks on a section begin


def path_of(folder, stage, profile=""):
    """The stage's counters on the main input, or on the input of a profile of ladder.json."""
    return folder / stage.ladder.id / (f"ncu_{profile}" if profile else "ncu") / f"{stage.name}.csv"


def profile_of(ladder, block):
    """The profile that the marker names, input=NAME; "" for the main input."""
    name = block.values.get("input", "")
    if name and name not in ladder.profiles:
        there = ", ".join(ladder.profiles) or "none"
        raise Unusable(f"{block.where}: input={name}: ladder.json of {ladder.id} has no such profile; it has {there}")
    return name


def read(path):
    """One stage's stored counters: {ncu's name: (unit, number or None)}, and what else its file says."""
    rows = results.read(path, ["name", "metric", "unit", "value"])
    values = {}
    for row in rows:
        if row["metric"]:
            values[row["metric"]] = (row["unit"], None if row["value"] == MISSING else number(row, "value"))
    return values, {row["name"]: row["value"] for row in rows if not row["metric"]}


def plain(value):
    """A number with as many digits as a reader compares."""
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
    """The stages that a marker names, NAME or FROM..TO, where one end may be left out; all if it names none."""
    if not words:
        return ladder.stages
    names, found = [stage.name for stage in ladder.stages], []
    for word in words:
        first, dots, last = word.partition("..")
        ends = [first or names[0], (last or names[-1]) if dots else first]
        unknown = [name for name in dict.fromkeys(ends) if name not in names]
        if unknown:
            raise Unusable(f"{where}: there is no stage {', '.join(unknown)} in {ladder.id}")
        found += ladder.stages[names.index(ends[0]) : names.index(ends[1]) + 1]
    return found


def build(folder, page, metrics, stages, profile=""):
    """The table with the files it came from; None if none of these stages has been profiled."""
    stages = [stage for stage in stages if path_of(folder, stage, profile).is_file()]
    if not stages:
        return None
    profiles = [read(path_of(folder, stage, profile)) for stage in stages]
    lines = []
    for metric in metrics:
        if not any(metric in values for values, _ in profiles):
            continue  # the stored profiles do not have it
        cells = [values.get(metric, ("", None)) for values, _ in profiles]
        values = [value for _, value in cells]
        unit, scale = scaled(next((unit for unit, value in cells if value is not None), ""), values)
        name = COUNTERS[metric] + (f", {unit}" if unit else "")
        lines.append([name] + [plain(None if value is None else value / scale) for value in values])
    about = profiles[-1][1]
    files = ", ".join(link(stage.name, path_of(folder, stage, profile), page) for stage in stages)
    ladder = stages[0].ladder
    on = f" on {ladder.described(ladder.profiles[profile].input)}" if profile else ""
    caption = (
        f"{how_we_measure('One launch', page)}{on}. {about.get('GPU', '')}, "
        f"Nsight Compute {about.get('Nsight Compute', '')}, "
        f"{about.get('date', '')}. All counters: {files}."
    )
    return f"{table(['counter', *(stage.name for stage in stages)], lines)}\n\n{caption}"


@registry.table("details", form='STAGE section="..." [table="..."]')
def details(folder, ladder, block):
    """A section of a stage's stored report as ncu prints it: its first table, the one that the marker names, and ncu's
    remarks."""
    stage = ladder.stage(block.words[0]) if block.words else None
    if not stage or "section" not in block.values:
        raise Unusable(f'{block.where} must name a stage and a section, for example 02_name section="Occupancy"')
    path = folder / ladder.id / f"ncu_details/{stage.name}.txt"
    if not path.is_file():
        return None
    text, wanted = path.read_text(encoding="utf-8"), block.values["section"]
    sections = dict(part.split("\n", 1) for part in text.split("\n    Section: ")[1:])
    if wanted not in sections:
        raise Unusable(f"{block.where}: {results.shown(path)} has no section {wanted}; it has {', '.join(sections)}")
    first, *others = textwrap.dedent(sections[wanted]).strip("\n").split("\n\n")
    parts, name = [f"Section: {wanted}\n{first}"], block.values.get("table")
    if name:
        tables = {title: part for part in others for title in re.findall(r"^Table Name : (.*)", part, re.MULTILINE)}
        if name not in tables:
            raise Unusable(f"{block.where}: the section {wanted} has no table {name}; it has {', '.join(tables)}")
        parts.append(tables[name])
    parts += [part for part in others if part.startswith(ADVICE)]
    said = "\n\n".join(parts)
    return f"```text\n{said}\n```\n\nFrom {stage.name}'s report, {link(results.shown(path), path, block.page)}."


@registry.table("answers", form="STAGE")
def answers(folder, ladder, block):
    """What the program of lecture W3L2 prints of a stage's stored counters."""
    stage = ladder.stage(block.words[0]) if block.words else None
    if not stage:
        raise Unusable(f"{block.where} must name a stage")
    path = path_of(folder, stage)
    if not path.is_file():
        return None
    said = machine.output_of(sys.executable, "-B", READER, path)
    return f"```text\n{said}\n```\n\nFrom {link(results.shown(path), path, block.page)}."
