"""What the CPU device counts of a stage: the lines of its kernels, and the sums beside those of Nsight Compute."""

import math

from ..core import markers, results
from ..core.results import number
from .counters import MISSING, REQUESTS, SASS_WAVEFRONTS, SECTORS, SECTORS_EACH

# The sums that Nsight Compute has as well: title -> (its metric, what the CPU device sums up).
COMPARED = {
    "load requests": (REQUESTS.format("ld"), "global load", "requests"),
    "load sectors": (SECTORS.format("ld"), "global load", "sectors"),
    "store requests": (REQUESTS.format("st"), "global store", "requests"),
    "store sectors": (SECTORS.format("st"), "global store", "sectors"),
    "shared load wavefronts": (SASS_WAVEFRONTS.format("ld"), "shared load", "wavefronts"),
    "shared store wavefronts": (SASS_WAVEFRONTS.format("st"), "shared store", "wavefronts"),
}


def path_of(stage):
    return results.store() / results.CPU_DEVICE / stage.ladder.id / f"{stage.name}.csv"


def read(path):
    """(rows of sums, rows of single lines) of all kernels of a stage."""
    rows = results.read(path, ["kernel", "file", "line", "source", "what", "requests", "distinct_bytes"])
    return [row for row in rows if not row["file"]], [row for row in rows if row["file"]]


def total(sums, what, column):
    return sum(number(row, column) or 0 for row in sums if row["what"] == what)


def product(text):
    return math.prod(map(int, text.split("x")))


def elements(given):
    return math.prod(given.values())


def operations(rows):
    """(barriers per block, shuffles per warp), summed over the lines of a launch; of several launches the most."""
    barriers, shuffles = {}, {}
    for row in rows:
        launch = row["kernel"], row["grid"], row["block"]
        blocks, threads = product(row["grid"]) * int(row["launches"]), product(row["block"])
        if row["what"] == "block_barrier":
            barriers[launch] = barriers.get(launch, 0) + number(row, "lanes") / (blocks * threads)
        if row["what"] == "shuffle":
            shuffles[launch] = shuffles.get(launch, 0) + number(row, "requests") / (blocks * -(-threads // 32))
    return max(barriers.values(), default=0), max(shuffles.values(), default=0)


def shapes(rows, what):
    """{(bytes per lane, sectors per request)} of the lines that make more than a hundredth of the requests of this kind."""
    rows = [row for row in rows if row["what"].startswith(what)]
    most = sum(int(row["requests"]) for row in rows)
    rows = [row for row in rows if int(row["requests"]) > most / 100]
    return {(int(row["bytes_per_lane"]), int(row["sectors"]) / int(row["requests"])) for row in rows}


def busiest(rows):
    """The line that makes most of the shared loads, a tree's for example; None if there are none."""
    return max(
        (row for row in rows if row["what"] == "shared load"), key=lambda row: int(row["requests"]), default=None
    )


def counted(path, given):
    """What a page's claims are about, counted on that input: the same names, numbers instead of words."""
    sums, rows = read(path)
    barriers, shuffles = operations(rows)
    tree = busiest(rows)
    return {
        "loads": shapes(rows, "global load"),
        "stores": shapes(rows, "global store"),
        "asked": total(sums, "global load", "bytes") / elements(given),
        "barriers": barriers,
        "shuffles": shuffles,
        "lanes": round(number(tree, "lanes") / number(tree, "requests"), 2) if tree else 0,
        "conflicts": round(number(tree, "wavefronts") / number(tree, "requests"), 2) if tree else 0,
    }


def claimed(stage):
    """The same as the stage's page claims it; what it need not claim is left out."""
    said = markers.claims(stage)
    numbers = {name: markers.total(said[name]) for name in ("asked", "barriers", "shuffles")}
    numbers.update({name: float(said[name]) for name in markers.OF_SHARED_LOADS if markers.is_number(said.get(name))})
    return {"loads": set(markers.pairs(said["loads"])), "stores": set(markers.pairs(said["stores"])), **numbers}


def short(value):
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def several(value, unit):
    return f"{short(value)} {unit}" + ("" if value == 1 else "s")


def units_of(ladder):
    """(name, how many there are) of what a block works on, a row for example; ("", 1) if the ladder names nothing."""
    for name, parameter in ladder.unit.items():
        return name, ladder.analyze[parameter]
    return "", 1


def profile_of(folder, stage):
    """(path, scale) of the stored counters: those of the same input, or else those of the main input, scaled to it."""
    given, main = elements(stage.ladder.analyze), elements(stage.ladder.main)
    for name, scale in (("ncu_small", 1), ("ncu", given / main)):
        if name == "ncu" and stage.ladder.unscalable:
            continue
        path = folder / stage.ladder.id / name / f"{stage.name}.csv"
        if path.is_file():
            return path, scale
    return None, 0


def has_several_launches(profile):
    """Of the rows of a stored profile."""
    return any(row["name"] == "launches" for row in profile)


def ncu_sums(folder, stage):
    """{metric: number} of a call on the input of make analyze, as Nsight Compute counts it."""
    path, scale = profile_of(folder, stage)
    if path is None:
        return {}
    profile = results.read(path, ["name", "metric", "value"])
    rows = [row for row in profile if row["metric"] and row["value"] != MISSING]
    sums = {row["metric"]: number(row, "value") * scale for row in rows if row["metric"].endswith(".sum")}
    ratios = {row["metric"]: number(row, "value") for row in rows if row["metric"].endswith(".ratio")}
    for op in ("ld", "st"):  # most profiles hold sectors as a mean over requests: of several launches, of the longest
        requests, sectors, each = (name.format(op) for name in (REQUESTS, SECTORS, SECTORS_EACH))
        if sectors not in sums and each in ratios and requests in sums and not has_several_launches(profile):
            sums[sectors] = sums[requests] * ratios[each]
    return sums


def comparison(folder, stage):
    """{title: (counted here, counted by ncu)} of the sums that both have."""
    if not path_of(stage).is_file():
        return {}
    sums, ncu = read(path_of(stage))[0], ncu_sums(folder, stage)
    return {title: (total(sums, what, column), ncu[m]) for title, (m, what, column) in COMPARED.items() if m in ncu}


def agree(here, there):
    return abs(here - there) <= 0.005 * max(here, there)
