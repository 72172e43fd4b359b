"""What the counters of a kernel must show so that an exercise is solved: not only right values, but the idea.

Each idea compares what the CPU device counts of the student's kernels with what is stored of the stage, or with the
figure that the exercise's page gives (barriers=0). An idea has a sentence for the skeleton, which says what will be
wanted, and one for a kernel that does not have it, with the line, the figure wanted and the figure found.
"""

import re
from dataclasses import dataclass

from ..core.results import number
from ..measure import cpu_device

FEW = 0.02  # a line with less than this share of its kind's requests is an edge
LARGEST = 16  # bytes that one lane moves; what is larger is a bulk copy
MULTIPROCESSORS = 4  # of the CPU device, and so of the stored counts


@dataclass
class Counts:
    """The rows of one run of a stage or of a student's file."""

    sums: list
    rows: list
    elements: int
    code: str = ""  # a student's, without comments
    shared_bytes: int = 0  # of a block, of a student's kernel
    busiest_bytes: int = 0  # of global memory, moved by the busiest thread of each launch, of a student's kernels
    elsewhere: tuple = ()  # (multiprocessors, threads) on a larger device, of a student's kernels
    link: tuple = ()  # bytes that kernels (load from, store to) other devices' memory, of a student's kernels

    @classmethod
    def read(cls, path, given, *more):
        return cls(*cpu_device.read(path), cpu_device.elements(given), *more)

    def lines(self, *kinds):
        """The rows of these kinds, the busiest first."""
        chosen = [row for row in self.rows if row["what"].startswith(kinds)]
        return sorted(chosen, key=lambda row: -int(row["requests"]))

    def busy(self, *kinds):
        """Those that make more than a few of their kind's requests."""
        found = []
        for kind in kinds:
            rows = self.lines(kind)
            most = sum(int(row["requests"]) for row in rows)
            found += [row for row in rows if int(row["requests"]) > FEW * most]
        return found

    def total(self, column, *kinds):
        return sum(number(row, column) or 0 for row in self.lines(*kinds))

    def lanes(self, *kinds):
        """Lanes of a request on average; bulk copies, which one thread issues, left out."""
        rows = [row for row in self.lines(*kinds) if int(row["bytes_per_lane"]) <= LARGEST]
        return sum(number(row, "lanes") for row in rows) / max(sum(number(row, "requests") for row in rows), 1)

    def distinct(self, kind):
        """Bytes that each kernel has accessed, however often."""
        return [number(row, "distinct_bytes") or 0 for row in self.sums if row["what"] == kind]

    @property
    def threads(self):
        """Of the largest launch."""
        sizes = (cpu_device.product(grid) * cpu_device.product(block) for kernel, grid, block in self.launches)
        return max(sizes, default=0)

    @property
    def launches(self):
        """(kernel, grid, block) -> how many launches."""
        return {(row["kernel"], row["grid"], row["block"]): int(row["launches"]) for row in self.sums + self.rows}


def shown(value):
    return cpu_device.short(value)


def place(row):
    """Where it is: "line 31", or "line 29 of common/kernel_helpers.cuh" where another file than the kernel's has it."""
    is_shared = row["file"].startswith(("common/", "assignment", "lectures/"))
    of_stage = row["file"].endswith((".cu", "/kernel.cuh"))
    return f"line {row['line']}" + (f" of {row['file']}" if is_shared and not of_stage else "")


def places(rows):
    """Where the most of it is."""
    found = list(dict.fromkeys(place(row) for row in rows[:3]))
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"


def mostly(rows):
    return f", most of them in {place(rows[0])}" if rows else ""


class Idea:
    def __init__(self, exercise, said):
        self.exercise, self.said = exercise, said

    def wanted(self, stage):
        """The figure: that of the stage's counts, or with shared=x10 ten times as much, or the page's own."""
        times, own = re.fullmatch(r"(?:x(\d+))?([\d.]*)", self.said).groups()
        return float(own) if own else int(times or 1) * self.of(stage)


class AtMost(Idea):
    """A figure that may not be larger than the stage's."""

    slack = 0.001

    def complaint(self, mine, stage):
        found, wanted = self.of(mine), self.wanted(stage)
        return self.found(mine, found, wanted) if found > wanted * (1 + self.slack) + 1e-9 else ""


class Barriers(AtMost):
    """Barriers of a block; where blocks work on rows, barriers per row, since one block may take several rows. Such a
    block needs one barrier more per row, before it uses its shared memory again."""

    def of(self, counts):
        return cpu_device.operations(counts.rows)[0] * min(self.blocks_per_row(counts), 1)

    def blocks_per_row(self, counts):
        unit, rows = self.unit
        blocks = [cpu_device.product(row["grid"]) for row in counts.lines("block_barrier")]
        return max(blocks) / rows if unit and blocks else 1

    def complaint(self, mine, stage):
        found, wanted = self.of(mine), self.wanted(stage)
        again = 1 if wanted and self.blocks_per_row(mine) < 1 else 0
        return self.found(mine, found, wanted) if found > (wanted + again) * (1 + self.slack) else ""

    @property
    def unit(self):
        ladder = self.exercise.stage.ladder
        return next(((name, self.exercise.given[parameter]) for name, parameter in ladder.unit.items()), ("", 1))

    def wish(self, stage):
        return self.phrase(self.wanted(stage))

    def found(self, mine, found, wanted):
        return f"requires {self.phrase(wanted)}: yours has {shown(found)}{mostly(mine.lines('block_barrier'))}"

    def phrase(self, wanted):
        of = f"per {self.unit[0]}" if self.unit[0] else "of a block"
        return f"at most {cpu_device.several(wanted, 'barrier')} {of}" if wanted else f"no barrier {of}"


class LeastBarriers(AtMost):
    """Of all kernels the one with the fewest barriers."""

    def of(self, counts):
        each = dict.fromkeys(counts.launches, 0.0)
        for row in counts.lines("block_barrier"):
            launch = row["kernel"], row["grid"], row["block"]
            threads = cpu_device.product(row["grid"]) * cpu_device.product(row["block"]) * int(row["launches"])
            each[launch] += number(row, "lanes") / threads
        return min(each.values(), default=0)

    def wish(self, stage):
        return "one of the kernels without a barrier of a block"

    def found(self, mine, found, wanted):
        rows = mine.lines("block_barrier")
        return f"requires one of the kernels to have no barrier: yours all have one ({places(rows)})"


class Shuffles(AtMost):
    def of(self, counts):
        return cpu_device.operations(counts.rows)[1]

    def wish(self, stage):
        return f"at most {shown(self.wanted(stage))} shuffles of a warp"

    def found(self, mine, found, wanted):
        rows = mine.lines("shuffle")
        return f"requires at most {shown(wanted)} shuffles of a warp: yours has {shown(found)}{mostly(rows)}"


class Steps(Idea):
    """Shuffles of a warp and barriers of a block together, at least as many as the stage's: none of its steps is left out."""

    def of(self, counts):
        return sum(cpu_device.operations(counts.rows))

    def wish(self, stage):
        return f"at least {shown(self.wanted(stage))} shuffles of a warp and barriers of a block, one a step"

    def complaint(self, mine, stage):
        found = self.of(mine)
        return "" if found >= self.wanted(stage) else f"requires {self.wish(stage)}: yours has {shown(found)}"


class Reads(AtMost):
    """How often each input element is read: read=1x4 says that the stage reads it once, and that it has 4 bytes."""

    slack = 0.02

    @property
    def times(self):
        return float(self.said.partition("x")[0])

    def bytes_of(self, counts):
        return counts.total("bytes", "global load") / counts.elements

    def complaint(self, mine, stage):
        times = self.times
        found = times + (self.bytes_of(mine) - self.bytes_of(stage)) / int(self.said.partition("x")[2])
        if found <= times + self.slack:
            return ""
        rows = mine.busy("global load")
        return (
            f"requires each input element to be read {self.often(times)}: yours is read {found:.1f} times "
            f"(loads of global memory: {places(rows)})"
        )

    def often(self, times):
        return {1: "once", 2: "at most twice"}.get(times, f"at most {shown(times)} times")

    def wish(self, stage):
        return f"each input element read {self.often(self.times)}"


class Width(Idea):
    """Bytes per lane of the loads that make most requests; where ranks wait for each other, single lanes that poll are left
    out."""

    kind, name = "global load", "loads"

    def rows(self, counts):
        return [row for row in counts.busy(self.kind) if "link" not in self.exercise.wants or not self.polls(row)]

    @staticmethod
    def polls(row):
        return row["what"].endswith("volatile") and row["lanes"] == row["requests"]

    def of(self, counts):
        return min(int(row["bytes_per_lane"]) for row in self.rows(counts))

    def wish(self, stage):
        return f"{self.name} of {shown(self.wanted(stage))} bytes per lane, in global memory"

    def complaint(self, mine, stage):
        wanted = self.wanted(stage)
        narrow = [row for row in self.rows(mine) if int(row["bytes_per_lane"]) < wanted]
        if not narrow:
            return ""
        worst = min(narrow, key=lambda row: int(row["bytes_per_lane"]))
        return f"requires {self.name} of {shown(wanted)} bytes: {place(worst)} moves {worst['bytes_per_lane']}"


class StoreWidth(Width):
    kind, name = "global store", "stores"


class Ratio(Idea):
    """What a request of a busy line takes, over the least that its lanes could have needed."""

    def ratios(self, counts):
        rows = [row for row in counts.busy(*self.kinds) if number(row, f"ideal_{self.unit}")]
        return [(number(row, self.unit) / number(row, f"ideal_{self.unit}"), row) for row in rows]

    def of(self, counts):
        return max((ratio for ratio, row in self.ratios(counts)), default=1.0)

    def complaint(self, mine, stage):
        worst, row = max(self.ratios(mine), key=lambda one: one[0], default=(1.0, None))
        if worst <= self.wanted(stage) * 1.02 + 0.01:
            return ""
        each, ideal = (number(row, name) / number(row, "requests") for name in (self.unit, f"ideal_{self.unit}"))
        return self.found(row, shown(round(each, 2)), shown(round(ideal, 2)))


class Coalesced(Ratio):
    """Sectors of the loads and stores."""

    kinds, unit = ("global load", "global store"), "sectors"

    def wish(self, stage):
        ratio = self.wanted(stage)
        few = f"more than {shown(ratio)} times the sectors" if ratio > 1.02 else "more sectors"
        return f"neighbouring lanes at neighbouring addresses: no request touches {few} than its bytes fill"

    def found(self, row, each, ideal):
        what = "load" if "load" in row["what"] else "store"
        return f"requires coalesced requests: a {what} in {place(row)} touches {each} sectors where {ideal} would do"


class Conflicts(Ratio):
    kinds, unit = ("shared load", "shared store"), "wavefronts"

    def wish(self, stage):
        return "no bank conflicts in shared memory"

    def found(self, row, each, ideal):
        what = "load" if "load" in row["what"] else "store"
        return f"requires no bank conflicts: a shared {what} in {place(row)} takes {each} wavefronts where {ideal} would do"


class Lanes(Idea):
    """Lanes per request of the shared loads."""

    def of(self, counts):
        return counts.total("lanes", "shared load") / max(counts.total("requests", "shared load"), 1)

    def wish(self, stage):
        return f"at least {shown(round(self.wanted(stage), 1))} of 32 lanes in a load from shared memory, on average"

    def complaint(self, mine, stage):
        found, wanted = self.of(mine), self.wanted(stage)
        rows = mine.lines("shared load")
        if not rows or found >= 0.98 * wanted:
            return ""
        return (
            f"requires {shown(round(wanted, 1))} lanes in a load from shared memory, on average: "
            f"{place(rows[0])} has {shown(round(found, 1))}"
        )


class Requests(AtMost):
    """Requests for a thousand elements of the input."""

    slack = 0.05

    def of(self, counts):
        return 1000 * counts.total("requests", *self.kinds) / counts.elements

    def wish(self, stage):
        return f"at most {shown(self.wanted(stage))} {self.name} for 1000 elements"

    def found(self, mine, found, wanted):
        rows = mine.lines(*self.kinds)
        return (
            f"requires at most {shown(wanted)} {self.name} for 1000 elements: yours makes {shown(found)}{mostly(rows)}"
        )


class SharedRequests(Requests):
    kinds, name = ("shared",), "requests to shared memory"


class AtomicRequests(Requests):
    kinds, name = ("global atomic",), "atomic requests"


class Loads(Requests):
    kinds, name = ("global load",), "load requests to global memory"


class Launches(AtMost):
    def of(self, counts):
        return sum(counts.launches.values())

    def wish(self, stage):
        return f"at most {cpu_device.several(self.wanted(stage), 'kernel launch').replace('launchs', 'launches')}"

    def found(self, mine, found, wanted):
        said = cpu_device.several(wanted, "kernel launch").replace("launchs", "launches")
        return f"requires at most {said}: yours makes {shown(found)}"


class Blocks(AtMost):
    def of(self, counts):
        return max((cpu_device.product(grid) for kernel, grid, block in counts.launches), default=0)

    def wish(self, stage):
        return f"a grid of at most {shown(self.wanted(stage))} blocks"

    def found(self, mine, found, wanted):
        return f"requires a grid of at most {cpu_device.several(wanted, 'block')}: yours has {shown(found)}"


class Fills(Idea):
    """A grid that just fills the GPU: as many threads as the device holds at once, also on a larger device."""

    def wish(self, stage):
        threads = f"{shown(stage.threads)} threads on the {MULTIPROCESSORS} multiprocessors here"
        return f"a grid that just fills the GPU, whatever the input's size: {threads}, more on a larger GPU"

    def complaint(self, mine, stage):
        if not self.is_full(mine.threads, stage.threads):
            return f"requires a grid that just fills the GPU, {shown(stage.threads)} threads: yours has {shown(mine.threads)}"
        many, threads = mine.elsewhere or (MULTIPROCESSORS, mine.threads)
        wanted = stage.threads * many // MULTIPROCESSORS
        if self.is_full(threads, wanted):
            return ""
        return (
            f"requires a grid that just fills any GPU: one with {many} multiprocessors holds {shown(wanted)} threads, and "
            f"your launcher starts {shown(threads)} there. resident_blocks returns how many blocks the GPU holds"
        )

    @staticmethod
    def is_full(threads, wanted):
        return 0.9 * wanted <= threads <= wanted


class Shuffle(Idea):
    """Values go from lane to lane through registers."""

    KINDS = ("shuffle", "warp_reduce")

    def wish(self, stage):
        return "values that go from lane to lane through registers, by shuffles"

    def complaint(self, mine, stage):
        return "" if mine.lines(*self.KINDS) else "requires shuffles, and yours has none: see __shfl_down_sync"


class Threads(Idea):
    """Threads that share the work. A kernel of few threads has no bank conflicts, no barriers, and no speed. Where the
    stage has many, a warp may do what its blocks do."""

    MANY = 2048

    def least(self, stage):
        return float(self.said) if self.said else min(stage.threads / 8, self.MANY)

    def wish(self, stage):
        return f"the work shared by at least {shown(self.least(stage))} threads, whole warps of them in each access"

    def complaint(self, mine, stage):
        least = self.least(stage)
        begin = f"requires the work to be shared by at least {shown(least)} threads"
        if mine.threads < least:
            return f"{begin}: your largest launch has {shown(mine.threads)}. A GPU is fast because thousands of threads work"
        total = sum(mine.total("bytes", kind) for kind in ("global load", "global store", "global atomic"))
        if mine.busiest_bytes and total / mine.busiest_bytes < 0.8 * least:
            share = 100 * mine.busiest_bytes / total
            part = f"{share:.2g}" if share < 10 else f"{share:.0f}"
            return f"{begin}: one thread of yours moves {part} % of all bytes, while others have little to do"
        return ""


class Together(Idea):
    """Lanes per request of global memory: a warp whose lanes work one after the other wastes the others' turns."""

    def complaint(self, mine, stage):
        for kind, verb in (("global load", "load"), ("global store", "store")):
            found, wanted = mine.lanes(kind), stage.lanes(kind)
            if mine.lines(kind) and found < 0.6 * wanted:
                (row, *_) = sorted(mine.busy(kind), key=lambda one: number(one, "lanes") / number(one, "requests"))
                return (
                    f"requires the lanes of a warp to work together: {shown(round(found, 1))} of 32 {verb} at a time "
                    f"({place(row)}), where the stage has {shown(round(wanted, 1))}"
                )
        return ""


class Exchange(Idea):
    """Where the stage's threads exchange values, those of a right solution do: over shared memory or by shuffles."""

    KINDS = ("shared store", "shared atomic", *Shuffle.KINDS, "global load async")

    def complaint(self, mine, stage):
        if not stage.lines(*self.KINDS) or mine.lines(*self.KINDS):
            return ""
        return "requires threads that work together, over shared memory or by shuffles: yours exchange no values"


class Seen(Idea):
    """The counters must have seen the work: each byte of the inputs loaded, and of large outputs stored. What several
    kernels of the stage load, a right solution may load in one."""

    def complaint(self, mine, stage):
        loads, stores = (max(stage.distinct(f"global {kind}"), default=0) for kind in ("load", "store"))
        wanted = {"global load": ("loaded", loads), "global store": ("stored", stores if 4 * stores > loads else 0)}
        for kind, (verb, least) in wanted.items():
            found = sum(mine.distinct(kind))
            if found < 0.9 * least:
                return (
                    f"requires all elements to be {verb} by your kernels while they are counted: yours {verb} "
                    f"{shown(found)} of {shown(least)} bytes"
                )
        return ""


class SharedBytes(AtMost):
    """Bytes of shared memory of a block, which the stored counts do not have."""

    def of(self, counts):
        return counts.shared_bytes

    def wish(self, stage):
        return f"at most {shown(self.wanted(stage))} bytes of shared memory for a block"

    def found(self, mine, found, wanted):
        return f"requires at most {shown(wanted)} bytes of shared memory for a block: yours has {shown(found)}"


class Link(Idea):
    """Bytes that cross the link, which the stored counts do not have: link=loads says that each rank loads every other rank's
    partial result once and stores nothing there, link=stores the reverse."""

    slack = 0.02  # barriers and flags

    @property
    def most(self):
        given = self.exercise.given
        return given["ranks"] * (given["ranks"] - 1) * given["rows"] * given["cols"] * 2

    def wish(self, stage):
        back = "none stored" if self.said == "loads" else "none loaded"
        return f"{shown(self.most)} bytes over the link as {self.said}, each partial result once, and {back}"

    def complaint(self, mine, stage):
        found = dict(zip(("loads", "stores"), mine.link))
        for name, bytes in found.items():
            wanted = self.most if name == self.said else 0
            if abs(bytes - wanted) > self.slack * self.most:
                return f"requires {shown(wanted)} bytes over the link as {name}: yours are {shown(bytes)}"
        return ""


class Names(Idea):
    """A name that the kernel must use, where no counter sees the idea: calls=__ldcs,__stcs."""

    def wish(self, stage):
        return f"the use of {' and '.join(self.said.split(','))}, which no counter sees"

    def complaint(self, mine, stage):
        missing = [name for name in self.said.split(",") if not re.search(rf"\b{re.escape(name)}\b", mine.code)]
        return f"requires {' and '.join(missing)}: yours does not name it" if missing else ""


class Async(Idea):
    """The share of the bytes loaded from global memory that asynchronous copies bring."""

    def of(self, counts):
        copied = sum(number(row, "bytes") for row in counts.rows if row["what"] == "global load async")
        return copied / max(counts.total("bytes", "global load"), 1)

    def wish(self, stage):
        return f"at least {100 * self.wanted(stage):.0f} % of the bytes brought by asynchronous copies"

    def complaint(self, mine, stage):
        found, wanted = self.of(mine), self.wanted(stage)
        if found >= 0.98 * wanted:
            return ""
        rows = [row for row in mine.lines("global load") if row["what"] == "global load"]
        where = f"; {place(rows[0])} loads through registers" if rows else ""
        share = f"{100 * wanted:.0f} % of the bytes to be brought by asynchronous copies"
        return f"requires {share}: yours bring {100 * found:.0f} %{where}"


IDEAS = {
    "barriers": Barriers,
    "least_barriers": LeastBarriers,
    "shuffles": Shuffles,
    "steps": Steps,
    "read": Reads,
    "width": Width,
    "store_width": StoreWidth,
    "coalesced": Coalesced,
    "conflicts": Conflicts,
    "lanes": Lanes,
    "shared": SharedRequests,
    "atomics": AtomicRequests,
    "loads": Loads,
    "launches": Launches,
    "blocks": Blocks,
    "fills": Fills,
    "shuffle": Shuffle,
    "async": Async,
    "smem": SharedBytes,
    "calls": Names,
    "link": Link,
}


def of(exercise):
    return [IDEAS[name](exercise, said) for name, said in exercise.wants.items() if name != "threads"]


def floor(exercise):
    """What every exercise requires, so that no solution is right because it does next to nothing. threads=N says
    how many threads."""
    threads = Threads(exercise, exercise.wants.get("threads", ""))
    return [threads, Together(exercise, ""), Exchange(exercise, "")] + ([] if exercise.input else [Seen(exercise, "")])


def stage_counts(exercise):
    """The stored counts; None where the page gives figures for another input."""
    return None if exercise.input else stored(exercise)


def stored(exercise):
    return Counts.read(cpu_device.path_of(exercise.stage), exercise.stage.ladder.analyze)


def wishes(exercise):
    """What the grader requires beside right values, as phrases."""
    stage = stage_counts(exercise)
    return [*(idea.wish(stage) for idea in of(exercise)), floor(exercise)[0].wish(stored(exercise))]


def below_floor(exercise, counts):
    """What every exercise requires, and the counters of a right kernel do not show: sentences that begin with "requires"."""
    least = stored(exercise)
    return [one for one in (idea.complaint(counts, least) for idea in floor(exercise)) if one]


def complaints(exercise, counts):
    """What the counters of a right kernel do not show, as sentences that begin with "requires"."""
    stage = stage_counts(exercise)
    said = (idea.complaint(counts, stage) for idea in of(exercise))
    return [*below_floor(exercise, counts), *(one for one in said if one)]


def exchanged(exercise, counts):
    """Whether a launch has as many blocks as the stage's has threads in a block, and the reverse: "" or a sentence."""
    stage = stage_counts(exercise)
    if not counts or not stage:
        return ""

    def sizes(of):
        return {(cpu_device.product(grid), cpu_device.product(block)) for kernel, grid, block in of.launches}

    for blocks, threads in sizes(counts) - sizes(stage):
        if (threads, blocks) in sizes(stage):
            return (
                f"requires {several_threads(threads, blocks)}: yours has {several_threads(blocks, threads)}. "
                "The first argument of <<<blocks, threads, ...>>> is the number of blocks"
            )
    return ""


def unlinked(exercise, counts):
    """Whether the kernels of several ranks leave each other's memory alone: "" or a sentence."""
    if "link" not in exercise.wants or not counts or sum(counts.link) > exercise.given["rows"] * exercise.given["cols"]:
        return ""
    return f"requires {exercise.wants['link']} over the link: no rank of yours gets another rank's partial result"


def several_threads(blocks, threads):
    return f"a grid of {cpu_device.several(blocks, 'block')} of {cpu_device.several(threads, 'thread')}"


# What is shown beside the stage's after a pass: a title, and a figure of the counts.
SHOWN = {
    "bytes loaded for an element": lambda c: c.total("bytes", "global load") / c.elements,
    "bytes stored for an element": lambda c: c.total("bytes", "global store") / c.elements,
    "sectors of a load": lambda c: c.total("sectors", "global load") / max(c.total("requests", "global load"), 1),
    "sectors of a store": lambda c: c.total("sectors", "global store") / max(c.total("requests", "global store"), 1),
    "barriers of a block": lambda c: cpu_device.operations(c.rows)[0],
    "shuffles of a warp": lambda c: cpu_device.operations(c.rows)[1],
    "shared-memory wavefronts for 1000 elements": lambda c: 1000 * c.total("wavefronts", "shared") / c.elements,
}


def compared(exercise, counts):
    """Lines of a table: what was counted of a kernel, and of the stage."""
    stage = stage_counts(exercise)
    if not counts or not stage:
        return []
    rows = [(title, figure(counts), figure(stage)) for title, figure in SHOWN.items()]
    rows = [
        (title, shown(round(mine, 2)), shown(round(of_stage, 2))) for title, mine, of_stage in rows if mine or of_stage
    ]
    width = max(len(title) for title, *figures in rows)
    return [
        f"  {'':{width}}  {'yours':>9}  {'stage':>9}",
        *(f"  {title:{width}}  {a:>9}  {b:>9}" for title, a, b in rows),
    ]
