"""The policy of include/rms_norm, made from what bench/tune measured: profiling_results/<gpu>/header/tune.csv.

For each length of rows and size of problem the fastest shape, or another one within 1 percent of it:

1. Of shapes that are one kernel and differ only in the reads, the one whose reads leave L2 last counts, unless the other
   is more than 1 percent faster; and in problems above 131072 KB, shapes whose reads leave last go before all others.
   Here a sum is written in place. Where it goes to new memory, reads that leave first take up to 5 percent longer.
2. In problems of up to 131072 KB a contiguous shape goes before all others. Alone it is hardly faster, but in a model's
   chain of kernels it costs less (make chain). Of contiguous shapes the number of packs per thread decides, also if
   they are up to 2 percent slower alone: in problems of 512 to 4096 KB the fewest cost least in a chain, if a block has
   at most 256 threads; in larger problems of up to 65536 KB the most do; in others it makes no difference.
3. Then a kernel that a neighbour has already goes before others, and then the simplest, so that few are compiled.

In small problems the time of a shape is the mean of a plain and a dependent launch, where both were measured.
"""

import collections
import math

from .core import results
from .core.ladders import Unusable

JOB, LEAF = "make tune", "bench/tune"
CSV = f"{results.HEADER}/tune.csv"
POLICIES, CALL = "include/rms_norm/policies", "rms_norm::forward<rms_norm::policies::{}>(...)"
TABLES = {"forward": "kForward", "fused_add_rms_norm": "kFusedAdd"}
TOLERANCE = 1.01  # so much slower than the fastest a shape may be that is chosen for another reason
CHAIN_TOLERANCE = 1.02  # the same of a contiguous shape that costs less in a chain
SHORT_KILOBYTES, SHORT_BLOCK = range(512, 4096 + 1), 256  # of a small problem, and the threads of its block
CONTIGUOUS_KILOBYTES = 131072  # of a problem; up to it, contiguous shapes go before others
MOST_PACKS_KILOBYTES = 65536  # up to it, those with the most packs go before other contiguous ones
ANY_SIZE = math.inf

NUMBERS = "rows cols packs kilobytes vectors block parts kernel_threads".split()
COLUMNS = [*NUMBERS, *"operator access reads role launch verdict microseconds device runtime date".split()]
Shape = collections.namedtuple("Shape", "vectors block parts access kernel_threads reads")
Timed = collections.namedtuple("Timed", "shape microseconds")
Line = collections.namedtuple("Line", "packs limit shape comment")


def timed_rows(path, columns, numbers, job):
    """The rows of a CSV that were timed, with numbers where numbers stand."""
    rows = results.read(path, columns)
    timed = [row for row in rows if row["verdict"] == "ok"]
    if not timed:
        raise Unusable(f"{results.shown(path)} holds no measurement; {job} writes it anew, on a GPU")
    for row in timed:
        row.update((name, int(results.number(row, name))) for name in numbers)
        row["microseconds"] = results.number(row, "microseconds")
    return timed


def read(path):
    return timed_rows(path, COLUMNS, NUMBERS, JOB)


class Operator:
    """What was measured of forward, or of fused_add_rms_norm: the candidates of each cell, a row's packs and a size. Where
    dependent launches of candidates were measured, those without one are out, and the mean of both times counts."""

    def __init__(self, rows, name):
        self.cells, self.shown = {}, {}
        times = collections.defaultdict(lambda: collections.defaultdict(dict))
        for row in rows:
            if row["operator"] == name and row["role"] == "candidate":
                cell, shape = (row["packs"], row["kilobytes"]), Shape(*(row[field] for field in Shape._fields))
                times[cell][row["launch"]][shape] = row["microseconds"]
                self.shown[cell] = f"{row['rows']} x {row['cols']}"
        for cell, by in times.items():
            plain, dependent = by["plain"], by["dependent"]
            both = {shape: (plain[shape] + dependent[shape]) / 2 for shape in plain if shape in dependent}
            self.cells[cell] = [Timed(shape, time) for shape, time in (both or plain).items()]
        if not self.cells:
            raise Unusable(f"{CSV} holds no time of {name}; let make tune write it anew")
        self.dependent_sizes = sorted({size for (_, size), by in times.items() if by["dependent"]})
        self.packs, self.sizes = (sorted(set(values)) for values in zip(*self.cells))

    def limit(self, size):
        """Up to how many kilobytes the cells of a size are asked."""
        return limit(self.sizes, size)


def limit(sizes, size):
    """Up to where a measured size counts: half way to the next, as factors go."""
    larger = [other for other in sizes if other > size]
    return int(math.sqrt(size * min(larger))) if larger else ANY_SIZE


def launch_of(shape):
    """A shape without what L2 is asked to do with reads."""
    return shape._replace(reads="")


def kernel(shape):
    """What a shape compiles. Shapes with other blocks may be one kernel: it takes so many threads as it is given."""
    return launch_of(shape)._replace(block=0)


def with_reads(timed):
    """The time by which shapes that differ in reads are compared."""
    return timed.microseconds * (TOLERANCE if timed.shape.reads == "first" else 1)


def best_in_a_chain(good, candidates, least, size):
    """The contiguous ones with the fewest packs per thread, or the most, or any; none, if no contiguous one is good."""
    contiguous = [timed for timed in good if timed.shape.access == "contiguous"]
    if not contiguous or size < SHORT_KILOBYTES.start:
        return contiguous
    close = [
        timed
        for timed in candidates
        if timed.shape.access == "contiguous" and timed.microseconds <= CHAIN_TOLERANCE * least
    ]
    if size > MOST_PACKS_KILOBYTES:
        return close
    if size in SHORT_KILOBYTES:
        close = [timed for timed in close if timed.shape.block <= SHORT_BLOCK] or contiguous
    extreme = min if size in SHORT_KILOBYTES else max
    packs = extreme(timed.shape.vectors for timed in close)
    return [timed for timed in close if timed.shape.vectors == packs]


def choose(candidates, neighbours, size):
    """Of those as good as the fastest: see the three rules above. neighbours holds their shapes, the nearest first."""
    fastest = {}
    for timed in sorted(candidates, key=with_reads):
        fastest.setdefault(launch_of(timed.shape), timed)
    least = min(timed.microseconds for timed in candidates)
    good = [timed for timed in fastest.values() if timed.microseconds <= TOLERANCE * least]
    if size <= CONTIGUOUS_KILOBYTES:
        good = best_in_a_chain(good, fastest.values(), least, size) or good
    else:
        good = [timed for timed in good if (timed.shape.access, timed.shape.reads) == ("strided", "last")] or good
    for shapes in neighbours:
        kernels, launches = ({of(shape) for shape in shapes} for of in (kernel, launch_of))
        shared = [timed for timed in good if kernel(timed.shape) in kernels]
        if shared:
            return min(shared, key=lambda timed: (launch_of(timed.shape) not in launches, timed.microseconds))
    return min(good, key=lambda timed: (timed.shape.parts, timed.shape.block, timed.microseconds))


def chain(candidates, neighbours, size, is_last):
    """The shapes of one cell in their order: the chosen one, and for the largest size one for whoever cannot have those
    before it. At smaller sizes they get what the next size has."""
    chosen = []
    while candidates:
        chosen.append(choose(candidates, neighbours, size))
        shape = chosen[-1].shape
        if not is_last or (shape.access != "contiguous" and shape.parts == 1):
            return chosen
        if shape.access == "contiguous":
            candidates = [timed for timed in candidates if timed.shape.access != "contiguous"]
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
            chosen[packs, size] = chain(candidates, neighbours, size, limit == ANY_SIZE)
            lines[packs, size] = [
                Line(packs, limit, timed.shape, comment(timed, candidates, where)) for timed in chosen[packs, size]
            ]
    return lines


def taken(lines, packs, limit, contiguous, clusters):
    """The shape that launch_first() takes."""
    for line in lines:
        possible = (contiguous or line.shape.access != "contiguous") and (clusters or line.shape.parts == 1)
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
    """The table that gives each cell its shape with the fewest kernels, and of two with equally many the shorter one:
    ordered by size, or by length."""
    lines = all_lines(operator)
    cells = [(packs, operator.limit(size)) for packs, size in lines]
    orders = [sorted(lines, key=lambda cell: cell[::-1]), sorted(lines)]
    tables = [shortened([line for cell in order for line in lines[cell]], cells) for order in orders]
    return min(tables, key=lambda table: (len({kernel(line.shape) for line in table}), len(table)))


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


def wrapped(words, indent="  ", width=120):
    """Words as comment lines, as long as clang-format lets them be."""
    lines = [f"{indent}//"]
    for word in " ".join(words).split():
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append(f"{indent}//")
        lines[-1] += f" {word}"
    return lines


def names(gpu, policies=POLICIES):
    """A folder of results -> the policy's file and type: "h200" -> h200.cuh, H200; "geforce-rtx-4090" -> rtx_4090.cuh,
    Rtx4090."""
    words = gpu.removeprefix("geforce-").split("-")
    return f"{policies}/{'_'.join(words)}.cuh", "".join(word[:1].upper() + word[1:] for word in words)


def gpu_of(path):
    return path.parents[1].name


def source_of(row, path, job):
    """The sentence by which a policy names its measurement."""
    about = f"{row['device']}, CUDA {results.version(row['runtime'])}, {row['date']}"
    return f"Measured by {job}: {about}. All of it is in {results.shown(path)}."


def policy(rows, path):
    """The whole file, from the rows of the CSV at that path: profiling_results/<gpu>/header/tune.csv."""
    operators = {name: Operator(rows, name) for name in TABLES}
    about = rows[0]
    said = [source_of(about, path, JOB)]
    both = [size for operator in operators.values() for size in operator.dependent_sizes]
    if both:
        said.append(f"Up to {max(both)} KB a time is the mean of a plain and a dependent launch.")
    text = wrapped(said)
    for name, variable in TABLES.items():
        lines = table(operators[name])
        entries = [
            f"      {{{line.packs}, {number(line.limit)}, {line.shape.vectors}, {line.shape.block}, "
            f"{line.shape.parts}, Access::{line.shape.access}, Eviction::{line.shape.reads}}},"
            for line in lines
        ]
        width = max(len(entry) for entry in entries)
        text += [f"  static constexpr Shape {variable}[] = {{"]
        text += [f"{entry:{width}}  // {line.comment}" for entry, line in zip(entries, lines)]
        text += ["  };"]
    limit, said = dependent_limit(rows, operators)
    text += [*wrapped(said), f"  static constexpr int kDependentKilobytes = {number(limit)};"]
    body = "\n".join(text)
    return f"""\
// The policy of one GPU, as make tune wrote it.
#pragma once

#include "../shape.cuh"

namespace rms_norm::policies {{

struct {names(gpu_of(path))[1]} {{
{body}
}};

}}  // namespace rms_norm::policies
"""
