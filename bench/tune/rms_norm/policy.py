"""The policy of include/rms_norm, made from what bench/tune/rms_norm measured: profiling_results/<gpu>/header/tune.csv.

bench/tune/README.md says by which rules a cell, a length of rows and a size of problem, gets its shape.
"""

import collections
import math

from ladder.core import results
from ladder.core.ladders import Unusable

from bench.tune import policies
from bench.tune.policies import ANY_SIZE, limit, number

JOB, LEAF = "make tune", "bench/tune/rms_norm"
CSV = f"{results.HEADER}/tune.csv"
POLICIES, CALL = "include/rms_norm/policies", "rms_norm::forward<rms_norm::policies::{}>(...)"
DEFAULT = "DefaultPolicy in include/rms_norm/policy.cuh"
TABLES = {"forward": "kForward", "fused_add_rms_norm": "kFusedAdd"}
TOLERANCE = 1.01  # so much slower than the fastest a shape may be that is chosen for another reason
CHAIN_TOLERANCE = 1.02  # the same of a contiguous shape that costs less in a chain
OTHERS_TOLERANCE = 1.03  # the same of one for rows and GPUs that cannot have a cell's first shape
SHORT_KILOBYTES, SHORT_BLOCK = range(512, 4096 + 1), 256  # of a small problem, and the threads of its block
CONTIGUOUS_KILOBYTES = 131072  # of a problem; up to it, contiguous shapes go before others
MOST_PACKS_KILOBYTES = 65536  # up to it, those with the most packs go before other contiguous ones

NUMBERS = "rows cols packs kilobytes vectors block parts kernel_threads multiprocessors".split()
COLUMNS = [*NUMBERS, *"operator access reads role launch verdict microseconds device runtime date".split()]
Shape = collections.namedtuple("Shape", "vectors block parts access kernel_threads reads")
Timed = collections.namedtuple("Timed", "shape microseconds")
Line = collections.namedtuple("Line", "packs limit shape comment")


def read(path):
    return policies.timed_rows(path, COLUMNS, NUMBERS, JOB)


class Operator:
    """What was measured of forward, or of fused_add_rms_norm: the candidates of each cell, a row's packs and a size. Where
    dependent launches of candidates were measured, those without one are out, and the mean of both times counts; plain
    has the times of plain launches alone."""

    def __init__(self, rows, name):
        self.cells, self.plain, self.shown = {}, {}, {}
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
            self.plain[cell] = [Timed(shape, time) for shape, time in plain.items()]
        if not self.cells:
            raise Unusable(f"{CSV} holds no time of {name}; let make tune write it anew")
        self.dependent_sizes = sorted({size for (_, size), by in times.items() if by["dependent"]})
        self.packs, self.sizes = (sorted(set(values)) for values in zip(*self.cells))

    def limit(self, size):
        """Up to how many kilobytes the cells of a size are asked."""
        return limit(self.sizes, size)


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
    """Of those as good as the fastest: see bench/tune/README.md. neighbours holds their shapes, the nearest first."""
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
    before it."""
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


def is_possible(shape, contiguous, clusters):
    return (contiguous or shape.access != "contiguous") and (clusters or shape.parts == 1)


def as_good(candidates, contiguous, clusters):
    """Of the candidates that rows and a GPU can have, those about as fast as the fastest."""
    possible = [timed for timed in candidates if is_possible(timed.shape, contiguous, clusters)]
    least = min((timed.microseconds for timed in possible), default=0)
    return [timed for timed in possible if timed.microseconds <= OTHERS_TOLERANCE * least]


def others(shape, candidates, kernels):
    """The shapes for whoever cannot have a cell's first one, in their order: of those about as fast as the fastest, one of
    these kernels, if there is one. Where no candidate is left, later lines have one."""
    chosen, contiguous, clusters = [], True, True
    while shape.access == "contiguous" or shape.parts > 1:
        contiguous, clusters = contiguous and shape.access != "contiguous", clusters and shape.parts == 1
        good = as_good(candidates, contiguous, clusters)
        if not good:
            break
        known = [timed for timed in good if kernel(timed.shape) in kernels]
        chosen.append(min(known or good, key=lambda timed: timed.microseconds))
        shape = chosen[-1].shape
    return chosen


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
    kernels = {kernel(line.shape) for of_cell in lines.values() for line in of_cell}
    for (packs, size), of_cell in lines.items():
        plain, where = operator.plain[packs, size], operator.shown[packs, size]
        if operator.limit(size) != ANY_SIZE:
            for timed in others(of_cell[0].shape, plain, kernels):
                of_cell.append(Line(packs, of_cell[0].limit, timed.shape, comment(timed, plain, where)))
                kernels.add(kernel(timed.shape))
    return lines


def taken(lines, packs, limit, contiguous, clusters):
    """The shape that launch_first() takes."""
    for line in lines:
        if packs <= line.packs and limit <= line.limit and is_possible(line.shape, contiguous, clusters):
            return line.shape
    return None


def shortened(lines, operator, first):
    """The lines without those that nobody needs: a cell's first shape stays, and whoever cannot have it gets one that is
    as good as the fastest of those that they can have. first is {cell: its first shape}."""
    asked = [(cell, contiguous, clusters) for cell in first for contiguous in (0, 1) for clusters in (0, 1)]

    def answers(lines):
        return [taken(lines, packs, operator.limit(size), *other) for (packs, size), *other in asked]

    allowed = []
    for shape, (cell, *other) in zip(answers(lines), asked):
        allowed.append({shape})
        if not is_possible(first[cell], *other):
            allowed[-1] |= {timed.shape for timed in as_good(operator.plain[cell], *other)}
    for line in reversed(lines):  # so that what follows a line is what will follow it in the end
        fewer = [other for other in lines if other is not line]
        if all(shape in good for shape, good in zip(answers(fewer), allowed)):
            lines = fewer
    return lines


def table(operator):
    """The table that gives each cell its shapes with the fewest kernels, and of two with equally many the shorter one:
    ordered by size, or by length."""
    lines = all_lines(operator)
    first = {cell: lines[cell][0].shape for cell in lines}
    orders = [sorted(lines, key=lambda cell: cell[::-1]), sorted(lines)]
    tables = [shortened([line for cell in order for line in lines[cell]], operator, first) for order in orders]
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


def written(line):
    shape = line.shape
    numbers = f"{line.packs}, {number(line.limit)}, {shape.vectors}, {shape.block}, {shape.parts}"
    return f"{numbers}, Access::{shape.access}, Eviction::{shape.reads}"


def policy(rows, path):
    """The whole file, from the rows of the CSV at that path: profiling_results/<gpu>/header/tune.csv."""
    operators = {name: Operator(rows, name) for name in TABLES}
    said = [policies.source_of(rows[0], path, JOB)]
    both = [size for operator in operators.values() for size in operator.dependent_sizes]
    if both:
        said.append(
            f"Up to {max(both)} KB a time is the mean of a plain and a dependent launch; of a second or third shape"
        )
        said.append("for a length and a size, it is that of a plain one.")
    text = policies.wrapped(said)
    for name, variable in TABLES.items():
        text += policies.table("Shape", variable, [(written(line), line.comment) for line in table(operators[name])])
    limit, said = dependent_limit(rows, operators)
    text += [*policies.wrapped(said), f"  static constexpr int kDependentKilobytes = {number(limit)};"]
    text += [f"  static constexpr int kMultiprocessors = {rows[0]['multiprocessors']};"]
    struct = policies.names(policies.gpu_of(path), POLICIES)[1]
    title = "The policy of one GPU, as make tune wrote it."
    return policies.file(title, "../shape.cuh", "rms_norm::policies", [("", struct, text)])
