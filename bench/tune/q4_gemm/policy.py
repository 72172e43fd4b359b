"""The policies of include/q4_gemm, made from what bench/tune/q4_gemm measured: profiling_results/<gpu>/q4_gemm/tune.csv.

bench/tune/README.md says by which rules. The microseconds of a shape of kMany are found by least squares of relative errors,
and shapes are added to it one after the other, the most useful one first.
"""

import collections
import math
import operator
import statistics

from ladder.core.ladders import Unusable

from bench.tune import policies
from bench.tune.policies import ANY_SIZE, limit, number

JOB, LEAF = "make tune S=q4_gemm", "bench/tune/q4_gemm"
CSV = "q4_gemm/tune.csv"
POLICIES, CALL = "include/q4_gemm/policies", "q4_gemm::multiply<q4_gemm::policies::{}>(...)"
DEFAULT = "DefaultPolicy in include/q4_gemm/policy.cuh"
NEAR = 1.01  # so much slower than the fastest the best of kFew's kernels may be
TOLERANCE = 1.005  # and a shape that a neighbour has
ALONE = 1.03  # and, where blocks have no clusters, one that needs none
GAIN = 1.002  # so much faster one more shape of kMany has to make the products
PARTS = tuple(range(1, 9))

NUMBERS = "m n k columns tiles warp_tiles groups phases ways depth together x_in_slots parts clusters".split()
COLUMNS = [*NUMBERS, *"table verdict microseconds device runtime date".split()]
Few = collections.namedtuple(
    "Few", "tiles warp_tiles phases depth columns together x_in_slots parts"
)  # as in FewChoice
Many = collections.namedtuple("Many", "columns groups ways together")  # as in ManyChoice
Line = collections.namedtuple("Line", "columns m k shape comment")


def read(path):
    return policies.timed_rows(path, COLUMNS, NUMBERS, JOB)


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


def written(shape):
    """A row of kFew, from the shape on."""
    return ", ".join(str(value).lower() for value in shape._replace(x_in_slots=bool(shape.x_in_slots)))


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
    """{(columns, m, k): {shape: microseconds}}, in the order of kFew's rows."""
    return {
        (n, m, k): {shape: time for (shape, _), time in of_size.items()}
        for (m, n, k), of_size in sorted(times.items(), key=lambda one: (one[0][1], one[0]))
    }


def choose(times, kernels, neighbours):
    """The fastest of these kernels' shapes, or a neighbour's shape that is as good."""
    known = {shape: time for shape, time in times.items() if kernel(shape) in kernels}
    good = {shape: time for shape, time in known.items() if time <= TOLERANCE * min(known.values())}
    return next((shape for shape in neighbours if shape in good), min(good, key=good.get))


def as_good_alone(times):
    """Those without a cluster that are about as fast as the fastest of them."""
    alone = {shape: time for shape, time in times.items() if shape.parts == 1}
    return {shape: time for shape, time in alone.items() if time <= ALONE * min(alone.values())}


def taken(lines, columns, m, k, clusters=True):
    """The shape that launch_first() takes."""
    possible = (line for line in lines if clusters or line.shape.parts == 1)
    return next((line.shape for line in possible if columns <= line.columns and m <= line.m and k <= line.k), None)


def few_lines(times):
    """The rows of kFew, without those that nobody needs: without clusters, another row is as good that is about as fast."""
    cells, lines, chosen = cells_of(times), [], {}
    kernels = few_kernels(cells)
    there = {*kernels}
    counts = sorted({n for n, _, _ in cells})
    for n, m, k in cells:
        rows = sorted({cell[1] for cell in cells if cell[0] == n})
        lengths = sorted({cell[2] for cell in cells if cell[:2] == (n, m)})
        beside = [shape for (columns, _, _), shape in chosen.items() if columns == n][-1:]
        beside += [chosen.get((count, m, k)) for count in reversed(counts) if count < n][:1]
        found = cells[n, m, k]
        shapes = [choose(found, kernels, beside)]
        chosen[n, m, k] = shapes[0]
        good = as_good_alone(found)
        if shapes[0].parts > 1 and good:
            shapes.append(min([shape for shape in good if kernel(shape) in there] or good, key=good.get))
            there.add(kernel(shapes[1]))
        columns = ANY_SIZE if n == counts[-1] else n
        for shape in shapes:
            comment = f"{m} x {k}: {found[shape]:.2f} us, fastest {min(found.values()):.2f}"
            lines.append(Line(columns, limit(rows, m), limit(lengths, k), shape, comment))
    asked = [(cell, clusters) for cell in cells for clusters in (True, False)]
    allowed = []
    for cell, clusters in asked:
        allowed.append({taken(lines, *cell, clusters)})
        if not clusters and chosen[cell].parts > 1:
            allowed[-1] |= as_good_alone(cells[cell]).keys()
    for line in reversed(lines):
        fewer = [other for other in lines if other is not line]
        answers = [taken(fewer, *cell, clusters) for cell, clusters in asked]
        last = fewer and fewer[-1][:3] == (ANY_SIZE,) * 3
        if last and all(map(set.__contains__, allowed, answers)):
            lines = fewer
    return lines


# Many columns.


def clusters_of(rows):
    """How many clusters of so many blocks the GPU holds: of PARTS, first if a multiprocessor has one block, then two."""
    found = collections.defaultdict(list)
    for row in rows:
        if row["table"] != "few" and row["clusters"] > 0:
            found[row["together"], row["parts"]].append(row["clusters"])
    missing = [
        f"{parts} ({together} on a multiprocessor)"
        for together in (1, 2)
        for parts in PARTS
        if (together, parts) not in found
    ]
    if missing:
        raise Unusable(f"{CSV} does not say how many clusters there may be of so many blocks: {', '.join(missing)}")
    return [[min(found[together, parts]) for parts in PARTS] for together in (1, 2)]


def steps(size, shape, parts, clusters):
    """What launch.cuh's plan_of() multiplies with a shape's microseconds: of a chunk, of a block, of one that shares k."""
    m, n, k = size
    chunks, groups = -(-k // 64), -(-m // 64)
    tiles = -(-groups // shape.groups) * -(-n // shape.columns)
    waves = -(-tiles // clusters[shape.together - 1][PARTS.index(parts)])
    return waves * -(-chunks // parts), waves, waves if parts > 1 else 0


def microseconds_of(times, shape, clusters):
    """(of a chunk, of a block, of one that shares k), none of them negative: one after the other is made the best beside
    the others, until none changes."""
    rows = [
        [step / time for step in steps(size, shape, parts, clusters)]
        for size, of_size in times.items()
        for (one, parts), time in of_size.items()
        if one == shape
    ]
    columns = list(zip(*rows, strict=True))
    products = [[sum(map(operator.mul, one, other)) for other in columns] for one in columns]
    found, change = [0.0] * len(columns), math.inf
    while change > 1e-7:
        before = found[:]
        for i, row in enumerate(products):
            others = sum(row[j] * found[j] for j in range(len(row)) if j != i)
            found[i] = max(0.0, (sum(columns[i]) - others) / row[i]) if row[i] > 0 else 0.0
        change = max(map(abs, map(float.__sub__, found, before)))
    return tuple(found)


def plan(size, choices, clusters):
    """(shape, parts) that plan_of() takes; choices is {shape: its microseconds}, in the order of kMany."""

    def time(shape, parts):
        return sum(map(math.prod, zip(steps(size, shape, parts, clusters), choices[shape], strict=True)))

    possible = [(shape, parts) for shape in choices for parts in PARTS if parts <= -(-size[2] // 64)]
    return min(possible, key=lambda one: time(*one))


def losses(times, choices, clusters):
    """{product: how many times the fastest's time the planned shape needs}; endless if that was not measured."""
    return {
        size: of_size.get(plan(size, choices, clusters), math.inf) / min(of_size.values())
        for size, of_size in times.items()
    }


def many(times, clusters):
    """({shape: its microseconds}, words on how good the plans are)."""
    known = {
        shape: tuple(float(f"{round(one, 4):.3g}") for one in microseconds_of(times, shape, clusters))
        for shape in sorted({shape for of_size in times.values() for shape, _ in of_size})
    }
    chosen, lost = [], math.inf
    while len(chosen) < len(known):
        found = {}
        for shape in known.keys() - set(chosen):
            with_it = {one: known[one] for one in sorted([*chosen, shape])}
            found[shape] = statistics.geometric_mean(losses(times, with_it, clusters).values())
        best = min(sorted(found), key=found.get)
        if chosen and found[best] * GAIN > lost:
            break
        chosen.append(best)
        lost = found[best]
    choices = {shape: known[shape] for shape in sorted(chosen)}
    found = losses(times, choices, clusters)
    size = max(found, key=found.get)
    mean = statistics.geometric_mean(found.values())
    said = f"The shape that plan_of() takes needs {mean:.2f} times the time of the fastest, on average of"
    return choices, [f"{said} {len(found)} products; at worst {found[size]:.2f} times, at {shown(size)}."]


def many_from(few, many):
    """From how many columns on kMany's kernels are the faster ones: one of those that were measured with both."""
    both = sorted({size[1] for size in few} & {size[1] for size in many})
    first = 1 + max(size[1] for size in few)
    for n in reversed(both):
        sizes = [size for size in few if size[1] == n and size in many]
        gains = [math.log(min(few[size].values()) / min(many[size].values())) for size in sizes]
        if statistics.fmean(gains) <= 0:
            break
        first = n
    return first


def many_table(name, scales, times, clusters):
    choices, said = many(times, clusters)
    planned = collections.Counter(plan(size, choices, clusters)[0] for size in times)
    of = f" of {len(times)} products"
    rows = [
        (
            ", ".join([*map(str, shape), *(f"{time:#.3g}f" for time in microseconds)]),
            f"for {planned[shape]}{'' if place else of}",
        )
        for place, (shape, microseconds) in enumerate(choices.items())
    ]
    return [
        f"  static constexpr Scales kScales = Scales::{scales};",
        *policies.wrapped(said),
        *policies.table("ManyChoice", name, rows),
    ]


def policy(rows, path):
    """The whole file, from the rows of the CSV at that path."""
    struct = policies.names(policies.gpu_of(path), POLICIES)[1]
    few, exact, rounded = (
        times_of(rows, table, kind) for table, kind in (("few", Few), ("exact", Many), ("rounded", Many))
    )
    if not few:
        raise Unusable(f"{CSV} holds no time of few columns; {JOB} writes it anew, on a GPU")
    lines = few_lines({size: times for size, times in few.items() if size[1] & (size[1] - 1) == 0})
    body = policies.wrapped([policies.source_of(rows[0], path, JOB)])
    entries = [
        (f"{number(line.columns)}, {number(line.m)}, {number(line.k)}, {written(line.shape)}", line.comment)
        for line in lines
    ]
    body += policies.table("FewChoice", "kFew", entries)
    include, structs = "../choice.cuh", [("", struct, body)]
    if exact and rounded:
        clusters = clusters_of(rows)
        counts = ", ".join(f"{{{', '.join(map(str, one))}}}" for one in clusters)
        body += [
            f"  static constexpr int64_t kManyFrom = {many_from(few, exact)};  // columns",
            "  // Of 1 to 8 blocks, if a multiprocessor has one block, or two.",
            f"  static constexpr int kClusters[2][8] = {{{counts}}};",
            *many_table("kMany", "exact", exact, clusters),
        ]
        about = "// Not exact, and faster: a weight and a number of x are rounded to float16. See Scales.\n"
        more = [f"  static constexpr int64_t kManyFrom = {many_from(few, rounded)};  // columns"]
        more += many_table("kMany", "rounded_to_half", rounded, clusters)
        structs.append((about, f"{struct}Rounded : {struct}", more))
    else:  # there is no wgmma
        include, structs = "h200.cuh", [("", f"{struct} : H200", body)]
    return policies.file(f"The policies of one GPU, as {JOB} wrote them.", include, "q4_gemm::policies", structs)
