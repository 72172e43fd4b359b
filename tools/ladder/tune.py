"""Chooses the header's kernels for this machine's GPU and writes them into include/rms_norm/policy.cuh.

Builds bench/tune, which measures every candidate, and stores profiling_results/<gpu>/header/tune.csv and
tune_environment.txt. From the CSV comes what stands between the policy markers: for each length of rows and size of
problem the fastest shape, or one within 1 percent of it that a neighbour has already or that is simpler, so that few
kernels are compiled.
"""

import collections
import math
import os
import re
import subprocess

from . import ladders, machine, results
from .ladders import Unusable

LEAF = "bench/tune"
CSV, ENVIRONMENT = f"{results.HEADER}/tune.csv", f"{results.HEADER}/tune_environment.txt"
POLICY = "include/rms_norm/policy.cuh"
BEGIN, END = "// policy:begin\n", "// policy:end\n"
TABLES = {"forward": "kForward", "forward_add": "kForwardAdd"}
TOLERANCE = 1.01  # so much slower than the fastest a shape may be that a neighbour has, or that is simpler
ANY_SIZE = math.inf

NUMBERS = "rows cols packs kilobytes vectors block parts kernel_threads".split()
COLUMNS = [*NUMBERS, *"operator traffic role launch verdict microseconds device runtime date".split()]
Shape = collections.namedtuple("Shape", "vectors block parts traffic kernel_threads")
Timed = collections.namedtuple("Timed", "shape microseconds")
Line = collections.namedtuple("Line", "packs limit shape comment")


def read(path):
    """The rows of the CSV that were timed, with numbers where numbers stand."""
    rows = results.read(path, COLUMNS)
    timed = [row for row in rows if row["verdict"] == "ok"]
    if not timed:
        raise Unusable(f"{results.shown(path)} holds no measurement; make tune writes it anew, on a GPU")
    for row in timed:
        row.update((name, int(results.number(row, name))) for name in NUMBERS)
        row["microseconds"] = results.number(row, "microseconds")
    return timed


class Operator:
    """What was measured of forward, or of forward_add: the candidates of each cell, a row's packs and a size."""

    def __init__(self, rows, name):
        self.cells, self.shown = collections.defaultdict(list), {}
        for row in rows:
            if row["operator"] == name and row["role"] == "candidate":
                cell = row["packs"], row["kilobytes"]
                self.cells[cell].append(Timed(Shape(*(row[field] for field in Shape._fields)), row["microseconds"]))
                self.shown[cell] = f"{row['rows']} x {row['cols']}"
        if not self.cells:
            raise Unusable(f"{CSV} holds no time of {name}; let make tune write it anew")
        self.packs, self.sizes = (sorted(set(values)) for values in zip(*self.cells))

    def limit(self, size):
        """Up to how many kilobytes the cells of a size are asked: half way to the next, as factors go."""
        larger = self.sizes[self.sizes.index(size) + 1 :]
        return int(math.sqrt(size * larger[0])) if larger else ANY_SIZE


def choose(candidates, neighbours):
    """Of those as good as the fastest: what the first neighbour has that has one of them, or else the simplest."""
    good = [timed for timed in candidates if timed.microseconds <= TOLERANCE * min(t.microseconds for t in candidates)]
    for shapes in neighbours:
        shared = [timed for timed in good if timed.shape in shapes]
        if shared:
            return min(shared, key=lambda timed: timed.microseconds)
    return min(good, key=lambda timed: (timed.shape.parts, timed.shape.block, timed.microseconds))


def chain(candidates, neighbours, is_last):
    """The shapes of one cell in their order: the chosen one, and for the largest size one for whoever cannot have those
    before it. At smaller sizes they get what the next size has."""
    chosen = []
    while candidates:
        chosen.append(choose(candidates, neighbours))
        shape = chosen[-1].shape
        if not is_last or (shape.traffic != "few" and shape.parts == 1):
            return chosen
        if shape.traffic == "few":  # asks for contiguous rows
            candidates = [timed for timed in candidates if timed.shape.traffic != "few"]
        else:  # asks for clusters
            candidates = [timed for timed in candidates if timed.shape.parts == 1]
    raise Unusable(f"a cell has no candidate for every GPU and every layout; let make tune write {CSV} anew")


def comment(timed, candidates, where):
    """What was measured: the shape's time, and that of the best of the others."""
    others = [other.microseconds for other in candidates if other.shape != timed.shape]
    said = f"{timed.microseconds:.2f} us at {where}"
    if others:
        word = "fastest" if min(others) < timed.microseconds else "next"
        said += f", {word} {min(others):.2f}"
    return said


def all_lines(operator):
    """Every cell's lines, by cell."""
    chosen, lines = {}, {}
    for packs in operator.packs:
        for size in operator.sizes:
            candidates = operator.cells.get((packs, size))
            if not candidates:
                raise Unusable(f"{CSV} has no time for {packs} packs and {size} KB; let make tune write it anew")
            beside = [(packs, smaller) for smaller in operator.sizes if smaller < size][-1:]
            beside += [(smaller, size) for smaller in operator.packs if smaller < packs][-1:]
            limit, where = operator.limit(size), operator.shown[packs, size]
            neighbours = [{timed.shape for timed in chosen[cell]} for cell in beside]
            chosen[packs, size] = chain(candidates, neighbours, limit == ANY_SIZE)
            lines[packs, size] = [
                Line(packs, limit, timed.shape, comment(timed, candidates, where)) for timed in chosen[packs, size]
            ]
    return lines


def taken(lines, packs, limit, contiguous, clusters):
    """The shape that launch_first() takes."""
    for line in lines:
        possible = (contiguous or line.shape.traffic != "few") and (clusters or line.shape.parts == 1)
        if packs <= line.packs and limit <= line.limit and possible:
            return line.shape
    return None


def shortened(lines, cells):
    """The lines without those that change nothing for any cell, layout and GPU."""
    asked = [(*cell, contiguous, clusters) for cell in cells for contiguous in (0, 1) for clusters in (0, 1)]
    wanted = [taken(lines, *question) for question in asked]
    for line in reversed(lines):  # so that what follows a line is what will follow it in the end
        fewer = [other for other in lines if other is not line]
        if [taken(fewer, *question) for question in asked] == wanted:
            lines = fewer
    return lines


def table(operator):
    """The shortest table that gives each cell its shape: ordered by size, or by length where that is shorter."""
    lines = all_lines(operator)
    cells = [(packs, operator.limit(size)) for packs, size in lines]
    orders = [sorted(lines, key=lambda cell: cell[::-1]), sorted(lines)]
    return min((shortened([line for cell in order for line in lines[cell]], cells) for order in orders), key=len)


def dependent_limit(rows, operators):
    """(kilobytes, comment): up to where dependent launches take no longer than plain ones, as a geometric mean."""
    times = {}
    for row in rows:
        if row["role"] == "winner":
            times[row["operator"], row["packs"], row["kilobytes"], row["launch"]] = row["microseconds"]
    limit, said = 0, []
    for sizes in zip(*(operator.sizes for operator in operators.values())):
        ratios = [
            math.log(time / times[(*cell, "plain")])
            for (*cell, launch), time in times.items()
            if launch == "dependent" and cell[2] in sizes and (*cell, "plain") in times
        ]
        if not ratios:
            continue
        ratio = math.exp(sum(ratios) / len(ratios))
        said.append(f"{ratio:.3f} at {'/'.join(str(size) for size in sorted(set(sizes)))} KB")
        if ratio > 1:
            break
        limit = min(operator.limit(size) for operator, size in zip(operators.values(), sizes))
    if not said:
        return 0, ["Dependent launches were not measured: they need compute capability 9.0."]
    return limit, ["Time of a dependent launch over that of a plain one:", f"{', '.join(said)}."]


def number(limit):
    return "kAnySize" if limit == ANY_SIZE else str(limit)


def wrapped(words, width=120):
    """Words as comment lines, as long as clang-format lets them be."""
    lines = ["//"]
    for word in " ".join(words).split():
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append("//")
        lines[-1] += f" {word}"
    return lines


def policy(rows, path):
    """What stands between the markers."""
    operators = {name: Operator(rows, name) for name in TABLES}
    about = rows[0]
    source = f"{about['device']}, CUDA {results.version(about['runtime'])}, {about['date']}"
    text = wrapped([f"Measured by make tune: {source}. All of it is in {results.shown(path)}."])
    for name, variable in TABLES.items():
        lines = table(operators[name])
        entries = [
            f"    {{{line.packs}, {number(line.limit)}, {line.shape.vectors}, {line.shape.block}, {line.shape.parts}, "
            f"Traffic::{line.shape.traffic}}},"
            for line in lines
        ]
        width = max(len(entry) for entry in entries)
        text += [f"inline constexpr Shape {variable}[] = {{"]
        text += [f"{entry:{width}}  // {line.comment}" for entry, line in zip(entries, lines)]
        text += ["};"]
    limit, said = dependent_limit(rows, operators)
    return "\n".join([*text, *wrapped(said), f"constexpr int kDependentKilobytes = {number(limit)};"]) + "\n"


def policy_file():
    """policy.cuh in three: up to the table, the table, what follows."""
    try:
        text = (ladders.ROOT / POLICY).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{POLICY} cannot be read: {getattr(error, 'strerror', None) or error}")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(END) < text.index(BEGIN):
        raise Unusable(f"{POLICY} must have the lines {BEGIN.strip()} and {END.strip()}, once each")
    first, last = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:first], text[first:last], text[last:]


def write_policy(path):
    before, _, after = policy_file()
    new, target = policy(read(path), path), ladders.ROOT / POLICY
    partial = target.with_name(f".{target.name}.partial")
    try:
        partial.write_text(before + new + after, encoding="utf-8")
        os.replace(partial, target)
    except OSError as error:
        raise Unusable(f"{POLICY} cannot be written: {error.strerror}; the results are stored")
    print(f"tune: {POLICY} has the table of {results.shown(path)}, {new.count('Traffic::')} lines")


def check(gpu):
    """Compares the table with the CSV of the GPU asked for, or that it names, or that is stored."""
    table_now = policy_file()[1]
    named = re.search(r"^// Measured by make tune: .*?profiling_results/([\w-]+)/", table_now, re.DOTALL)
    names = [gpu] if gpu else [named.group(1)] if named else results.stored_gpus(CSV)
    if not names:
        print("tune: no measurement is stored, so the table in policy.cuh is compared with nothing; make tune measures")
        return
    path = results.store() / names[0] / CSV
    if policy(read(path), path) != table_now:
        raise Unusable(
            f"the table in {POLICY} is not what {results.shown(path)} gives; "
            f"make tune GPU={names[0]} writes it anew, and needs no GPU"
        )
    print(f"tune: {POLICY} is what {results.shown(path)} gives")


def measure():
    """Builds and starts the program; the folder where its results are stored."""
    work, out = machine.workplace("tune")
    (out / results.HEADER).mkdir()
    machine.build(f"{LEAF}/program")
    before, program = machine.clocks(), ladders.ROOT / "build/cuda" / LEAF / "tune"
    try:
        done = machine.run(program, "--csv", out / CSV, stdout=None, stderr=None, timeout=900)
    except OSError as error:
        raise Unusable(f"{results.shown(program)} cannot be started: {error.strerror}")
    except subprocess.TimeoutExpired:
        raise Unusable("the program was not done after 900 seconds; nothing was stored")
    if done.returncode != 0:
        raise Unusable(f"the program ended with exit code {done.returncode}, see above; nothing was stored")
    about = read(out / CSV)[0]
    said = machine.environment(about["device"], results.version(about["runtime"]), before, machine.clocks())
    (out / ENVIRONMENT).write_text(said, encoding="utf-8")
    target = results.target("", about["device"])
    results.publish(out, target)
    print(f"tune: tune.csv and tune_environment.txt are in {results.shown(target / results.HEADER)}")
    return target


def arguments(parser):
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the table is stale")
    parser.add_argument("--gpu", default="", help="write it from the stored results of this GPU, for example h200")


def run(given):
    stored = results.stored_gpus(CSV)
    if given.gpu and given.gpu not in stored:
        said = (
            f"GPU={given.gpu}: no tune.csv of that name in profiling_results; there is: {', '.join(stored) or 'none'}"
        )
        raise ladders.BadCommand(said)
    if given.check:
        check(given.gpu)
    elif given.gpu:
        write_policy(results.store() / given.gpu / CSV)
    elif not machine.gpu():
        machine.no_gpu(
            "tune", "make tune GPU=h200 writes the table from stored results, where there are any, and needs no GPU."
        )
    else:
        write_policy(measure() / CSV)
