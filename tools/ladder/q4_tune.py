"""The policies of include/q4_gemm, made from what bench/q4_tune measured: profiling_results/<gpu>/q4_gemm/tune.csv.

kFew has a row for each number of columns and each number of weights that were measured, and kMany a list of shapes. Each
kernel is compiled by every program, so few are wanted: as many as it takes for one to be there for each product that takes
at most 3 percent longer than the fastest. Of these, a row has the fastest, or the shape of a neighbouring row if that is
within 1 percent. The microseconds of a shape in kMany are those that launch.cuh's estimate needs to come out right: the
median over the products, each with the parts of k that are the fastest. kManyFrom is the smallest number of columns from
which on kMany's kernels are the faster ones.
"""

import collections
import math
import statistics

from . import results, tune
from .ladders import Unusable
from .tune import ANY_SIZE, TOLERANCE, number

JOB, LEAF = "make tune S=q4_gemm", "bench/q4_tune"
CSV = "q4_gemm/tune.csv"
POLICIES, CALL = "include/q4_gemm/policies", "q4_gemm::multiply<q4_gemm::policies::{}>(...)"
NEAR = 1.03  # so much slower than the fastest the best of the kernels may be
PARTS = tuple(range(1, 9))

NUMBERS = "m n k columns tiles groups phases ways depth together parts clusters".split()
COLUMNS = [*NUMBERS, *"table verdict microseconds device runtime date".split()]
Few = collections.namedtuple("Few", "tiles phases depth columns together parts")  # as in FewChoice
Many = collections.namedtuple("Many", "columns groups ways together")  # as in ManyChoice
Line = collections.namedtuple("Line", "columns weights shape comment")


def read(path):
    return tune.timed_rows(path, COLUMNS, NUMBERS, JOB)


def times_of(rows, table, kind):
    """{(m, n, k): {(shape, parts): microseconds}} of one table's candidates."""
    times = collections.defaultdict(dict)
    for row in rows:
        if row["table"] == table:
            shape = kind(*(row[name] for name in kind._fields))
            times[row["m"], row["n"], row["k"]][shape, row["parts"]] = row["microseconds"]
    return times


def shown(size):
    return " x ".join(map(str, size))


def kernel(shape):
    """What a shape compiles: into how many parts k is split is an argument."""
    return shape._replace(parts=0) if isinstance(shape, Few) else shape


def few_kernels(cells):
    """A few, so that of each of the cells, {cell: {shape: microseconds}}, one is among the fastest."""
    ratios = {}
    for cell, times in cells.items():
        ratios[cell] = {}
        for shape, time in sorted(times.items(), key=lambda one: one[1]):
            ratios[cell].setdefault(kernel(shape), time / min(times.values()))
    chosen = []
    while ratios:
        near = collections.defaultdict(list)
        for found in ratios.values():
            for one, ratio in found.items():
                if ratio <= NEAR:
                    near[one].append(ratio)
        best = max(near, key=lambda one: (len(near[one]), -sum(near[one])))
        chosen.append(best)
        ratios = {cell: found for cell, found in ratios.items() if found.get(best, math.inf) > NEAR}
    return sorted(chosen)


# Few columns.


def cells_of(times):
    """{(columns, weights): {shape: microseconds}}; of matrices with equally many weights, the geometric mean."""
    products = collections.defaultdict(list)
    for size, of_size in times.items():
        products[size[1], size[0] * size[2]].append({shape: time for (shape, _), time in of_size.items()})
    cells = {}
    for cell, found in sorted(products.items()):
        common = [shape for shape in found[0] if all(shape in one for one in found)]
        cells[cell] = {shape: math.exp(statistics.fmean(math.log(one[shape]) for one in found)) for shape in common}
    return cells


def choose(times, kernels, neighbours):
    """The fastest of these kernels' shapes, or a neighbour's shape that is as good."""
    known = {shape: time for shape, time in times.items() if kernel(shape) in kernels}
    good = {shape: time for shape, time in known.items() if time <= TOLERANCE * min(known.values())}
    return next((shape for shape in neighbours if shape in good), min(good, key=good.get))


def taken(lines, columns, weights):
    """The shape that launch_first() takes."""
    return next(line.shape for line in lines if columns <= line.columns and weights <= line.weights)


def few_lines(times):
    """The rows of kFew, without those that change nothing."""
    cells, lines, chosen = cells_of(times), [], {}
    kernels = few_kernels(cells)
    counts, sizes = (sorted({cell[place] for cell in cells}) for place in (0, 1))
    for columns, weights in cells:
        beside = [chosen.get((columns, size)) for size in sizes[: sizes.index(weights)][-1:]]
        beside += [chosen.get((count, weights)) for count in counts[: counts.index(columns)][-1:]]
        found = cells[columns, weights]
        shape = chosen[columns, weights] = choose(found, kernels, beside)
        larger = sizes[sizes.index(weights) + 1 :]
        limit = int(math.sqrt(weights * larger[0])) if larger else ANY_SIZE
        comment = f"{weights / 1e6:.1f} million weights: {found[shape]:.2f} us, fastest {min(found.values()):.2f}"
        lines.append(Line(ANY_SIZE if columns == counts[-1] else columns, limit, shape, comment))
    wanted = [taken(lines, *cell) for cell in cells]
    for line in reversed(lines):
        fewer = [other for other in lines if other is not line]
        if fewer and fewer[-1][:2] == (ANY_SIZE, ANY_SIZE) and [taken(fewer, *cell) for cell in cells] == wanted:
            lines = fewer
    return lines


# Many columns.


def clusters_of(rows):
    """How many clusters of so many blocks the GPU holds: of PARTS, first if a multiprocessor has one block, then two."""
    found = collections.defaultdict(list)
    for row in rows:
        if row["table"] != "few" and row["clusters"] > 0:
            found[row["together"], row["parts"]].append(row["clusters"])
    missing = [f"{parts} ({together} on a multiprocessor)" for together in (1, 2) for parts in PARTS
               if (together, parts) not in found]  # fmt: skip
    if missing:
        raise Unusable(f"{CSV} does not say how many clusters there may be of so many blocks: {', '.join(missing)}")
    return [[min(found[together, parts]) for parts in PARTS] for together in (1, 2)]


def steps(size, shape, parts, clusters):
    """What launch.cuh's plan_of() multiplies with the shape's microseconds."""
    m, n, k = size
    chunks, groups = -(-k // 64), -(-m // 64)
    tiles = -(-groups // shape.groups) * -(-n // shape.columns)
    waves = -(-tiles // clusters[shape.together - 1][PARTS.index(parts)])
    return waves * (-(-chunks // parts) + 4)


def many_shapes(times):
    """Those of kMany, whatever the parts of k."""
    cells = {}
    for size, of_size in times.items():
        cells[size] = {}
        for (shape, _), time in of_size.items():
            cells[size][shape] = min(time, cells[size].get(shape, time))
    return few_kernels(cells)


def microseconds_of(times, shape, clusters):
    """Of 64 numbers of k, as a plan counts them."""
    found = []
    for size, of_size in times.items():
        own = {parts: time for (one, parts), time in of_size.items() if one == shape}
        if own:
            parts = min(own, key=own.get)
            found.append(own[parts] / steps(size, shape, parts, clusters))
    return statistics.median(found)


def plan(size, choices, clusters):
    """(shape, parts) that plan_of() takes; choices is {shape: microseconds}, in the order of kMany."""
    possible = [(shape, parts) for shape in choices for parts in PARTS if parts <= -(-size[2] // 64)]
    return min(possible, key=lambda one: steps(size, *one, clusters) * choices[one[0]])


def many(times, clusters):
    """({shape: microseconds}, words on how good the plans are)."""
    choices = {shape: float(f"{microseconds_of(times, shape, clusters):.3g}") for shape in many_shapes(times)}
    lost = []
    for size, of_size in times.items():
        planned = plan(size, choices, clusters)
        if planned in of_size:
            lost.append((of_size[planned] / min(of_size.values()), size))
    worst, size = max(lost)
    mean = math.exp(statistics.fmean(math.log(one) for one, _ in lost))
    said = f"The shape that plan_of() takes needs {mean:.2f} times the time of the fastest, on average of"
    return choices, [f"{said} {len(lost)} products; at worst {worst:.2f} times, at {shown(size)}."]


def many_from(few, exact):
    """From how many columns on kMany's kernels are the faster ones: one of those that were measured with both."""
    both = sorted({size[1] for size in few} & {size[1] for size in exact})
    first = 1 + max(size[1] for size in few)
    for n in reversed(both):
        sizes = [size for size in few if size[1] == n and size in exact]
        gains = [math.log(min(few[size].values()) / min(exact[size].values())) for size in sizes]
        if statistics.fmean(gains) <= 0:
            break
        first = n
    return first


def many_table(name, scales, choices, said):
    entries = [
        f"      {{{', '.join(map(str, shape))}, {time:#.3g}f}}," for shape, time in choices.items()
    ]
    return [
        f"  static constexpr Scales kScales = Scales::{scales};",
        *tune.wrapped(said),
        f"  static constexpr ManyChoice {name}[] = {{",
        *entries,
        "  };",
    ]


def policy(rows, path):
    """The whole file, from the rows of the CSV at that path."""
    struct = tune.names(tune.gpu_of(path), POLICIES)[1]
    few, exact, rounded = (
        times_of(rows, table, kind) for table, kind in (("few", Few), ("exact", Many), ("rounded", Many))
    )
    if not few:
        raise Unusable(f"{CSV} holds no time of few columns; {JOB} writes it anew, on a GPU")
    lines = few_lines({size: times for size, times in few.items() if size[1] & (size[1] - 1) == 0})
    entries = [
        f"      {{{number(line.columns)}, {number(line.weights)}, {', '.join(map(str, line.shape))}}},"
        for line in lines
    ]
    width = max(map(len, entries))
    body = tune.wrapped([tune.source_of(rows[0], path, JOB)])
    body += ["  static constexpr FewChoice kFew[] = {"]
    body += [f"{entry:{width}}  // {line.comment}" for entry, line in zip(entries, lines)]
    body += ["  };"]
    include, base, more = "../choice.cuh", "", ""
    if exact and rounded:
        clusters = clusters_of(rows)
        body += [f"  static constexpr int64_t kManyFrom = {many_from(few, exact)};  // columns"]
        counts = ", ".join(f"{{{', '.join(map(str, one))}}}" for one in clusters)
        body += ["  // Of 1 to 8 blocks, if a multiprocessor has one block, or two."]
        body += [f"  static constexpr int kClusters[2][8] = {{{counts}}};"]
        body += many_table("kMany", "exact", *many(exact, clusters))
        table = "\n".join(many_table("kMany", "rounded_to_half", *many(rounded, clusters)))
        more = f"""
// Not exact, and faster: a weight and a number of x are rounded to float16. See Scales.
struct {struct}Rounded : {struct} {{
{table}
}};
"""
    else:  # there is no wgmma
        include, base = "h200.cuh", " : H200"
    text = "\n".join(body)
    return f"""\
// The policies of one GPU, as {JOB} wrote them.
#pragma once

#include "{include}"

namespace q4_gemm::policies {{

struct {struct}{base} {{
{text}
}};
{more}
}}  // namespace q4_gemm::policies
"""
