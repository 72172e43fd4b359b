"""The numbers of a report: the raw dump of a program, summed per source line."""

from collections import namedtuple
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

Place = namedtuple("Place", "file line")  # the file's real path, or None and 0 where nothing is known
UNKNOWN = Place(None, 0)

SECTOR = 32  # bytes
OPERATIONS = {  # the dump's name -> one of them, several of them
    "block_barrier": ("block barrier", "block barriers"),
    "warp_sync": ("warp barrier", "warp barriers"),
    "shuffle": ("shuffle", "shuffles"),
    "vote": ("vote", "votes"),
    "warp_reduce": ("warp reduction", "warp reductions"),
    "cluster_arrive": ("cluster arrival", "cluster arrivals"),
    "cluster_wait": ("cluster barrier", "cluster barriers"),
    "grid_barrier": ("grid barrier", "grid barriers"),
    "fence": ("fence", "fences"),
    "texture_read": ("texture read", "texture reads"),
    "other": ("other operation", "other operations"),
}


def ratio(a, b):
    return a / b if b else 0.0


class Sources:
    """Lines of source files, read once."""

    def __init__(self):
        self.files = {}

    def lines(self, file):
        if file not in self.files:
            try:
                self.files[file] = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError:
                self.files[file] = []
        return self.files[file]

    def text(self, place):
        lines = self.lines(place.file) if place.file else []
        return lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""


@dataclass
class Access:
    """The requests of one source line of one kind: loads of 4 bytes from global memory, say."""

    place: Place
    space: str  # global or shared
    kind: str  # load, store or atomic
    size: int  # bytes per lane
    volatile: bool
    is_async: bool
    requests: int = 0
    lanes: int = 0  # active ones, summed over the requests
    bytes: int = 0  # requested
    transfers: int = 0  # 32-byte sectors of global memory, wavefronts of shared memory
    ideal: int = 0  # the least that the same lanes could have needed
    read_from_peers: int = 0  # bytes over the link, with several devices
    written_to_peers: int = 0
    worst: dict = None  # the request with the most transfers

    @property
    def per_request(self):
        return ratio(self.transfers, self.requests)

    @property
    def ideal_per_request(self):
        return ratio(self.ideal, self.requests)

    @property
    def lanes_per_request(self):
        return ratio(self.lanes, self.requests)

    @property
    def is_global(self):
        return self.space == "global"

    @property
    def moved(self):
        return SECTOR * self.transfers if self.is_global else None

    @property
    def efficiency(self):
        """Global memory: bytes requested for each byte moved; above 1 where lanes share what they read."""
        return ratio(self.bytes, self.moved) if self.is_global else None

    @property
    def excess(self):
        return max(self.transfers - self.ideal, 0)

    def add(self, site):
        transfers, ideal = ("sectors", "ideal_sectors") if self.is_global else ("wavefronts", "ideal_wavefronts")
        self.requests += site["requests"]
        self.lanes += site["lanes"]
        self.bytes += site["bytes"]
        self.transfers += site[transfers]
        self.ideal += site[ideal]
        self.read_from_peers += site.get("read_from_peers", 0)
        self.written_to_peers += site.get("written_to_peers", 0)
        worst = site.get("worst")
        if worst and (not self.worst or worst[transfers] > self.worst[transfers]):
            self.worst = worst

    def __iadd__(self, other):
        for name in ("requests", "lanes", "bytes", "transfers", "ideal", "read_from_peers", "written_to_peers"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


@dataclass
class Operation:
    """Barriers, shuffles and the like of one source line."""

    place: Place
    name: str  # the dump's
    calls: int = 0  # of warps
    lanes: int = 0


@dataclass
class Kernel:
    """All launches of one kernel in one shape."""

    name: str
    launches: int
    grid: tuple
    block: tuple
    cluster: tuple
    static_shared: int
    dynamic_shared: int
    distinct: dict  # load, store, atomic -> distinct bytes of global memory touched
    busiest_thread_bytes: int  # of global memory, moved by the thread that moves most, summed over the launches
    accesses: list = field(default_factory=list)
    operations: list = field(default_factory=list)
    ran: dict = field(default_factory=dict)  # Place -> [times a warp ran it, lanes]
    stopped: bool = False  # a fault ended one of the launches

    @property
    def blocks(self):
        return prod(self.grid) * self.launches

    @property
    def threads(self):
        return self.blocks * prod(self.block)

    @property
    def warps(self):
        return self.blocks * -(-prod(self.block) // 32)

    @property
    def lanes_possible(self):
        """Lanes of a warp on average: 32, or fewer if a block is not a whole number of warps."""
        return ratio(self.threads, self.warps)

    def total(self, space, kind):
        """The sum over the lines, or None where there are no such requests. Widths and lines are mixed."""
        chosen = [access for access in self.accesses if (access.space, access.kind) == (space, kind)]
        if not chosen:
            return None
        total = Access(UNKNOWN, space, kind, 0, False, False)
        for access in chosen:
            total += access
        return total

    def totals(self):
        every = [self.total(space, kind) for space in ("global", "shared") for kind in ("load", "store", "atomic")]
        return [total for total in every if total]

    def calls(self, name):
        return sum(operation.calls for operation in self.operations if operation.name == name)

    def barriers_per_block(self):
        """Block barriers that a thread passes; in a correct kernel, every thread of a block passes the same number."""
        return ratio(sum(each.lanes for each in self.operations if each.name == "block_barrier"), self.threads)

    def weight(self):
        """Which shape of a kernel is the main one: that with the most requests."""
        return sum(access.requests for access in self.accesses)

    def files(self):
        places = [each.place for each in [*self.accesses, *self.operations]] + list(self.ran)
        return list(dict.fromkeys(place.file for place in sorted(filter(lambda p: p.file, places))))


@dataclass
class End:
    """One of the two accesses of a hazard."""

    place: Place
    kind: str
    thread: tuple
    block: tuple
    device: int = None  # where there are several
    flat: bool = True  # blocks of one dimension: the thread is a number


@dataclass
class Hazard:
    what: str
    detail: str
    space: str
    kernel: str
    count: int
    variable: str
    address: str
    sentence: str
    first: End
    second: End


@dataclass
class Analysis:
    program: str
    kernels: list
    hazards: list
    unread: list  # errors outside kernels: those that no call asked for, and host memory as an argument
    error: str
    sources: Sources

    def was_seen(self, kernel):
        """False where the kernel's file was built without the hooks: nothing is known of it."""
        faulty = {hazard.kernel for hazard in self.hazards}
        return bool(kernel.ran or kernel.accesses or kernel.operations or kernel.name in faulty)

    def seen(self):
        return [kernel for kernel in self.kernels if self.was_seen(kernel)]

    def shapes(self, every=False):
        """(kernel, number of shapes left out): each shape, or of each kernel the one with the most requests."""
        if every:
            return [(kernel, 0) for kernel in self.seen()]
        found = {}
        for kernel in self.seen():
            found.setdefault(kernel.name, []).append(kernel)
        return [(max(shapes, key=Kernel.weight), len(shapes) - 1) for shapes in found.values()]

    def names(self):
        return list(dict.fromkeys(kernel.name for kernel in self.kernels))

    def unseen(self):
        """The names of kernels that ran without hooks."""
        return list(dict.fromkeys(kernel.name for kernel in self.kernels if not self.was_seen(kernel)))

    def only(self, text):
        """Keep the kernels whose name contains the text."""
        self.kernels = [kernel for kernel in self.kernels if text in kernel.name]
        self.hazards = [hazard for hazard in self.hazards if text in (hazard.kernel or "")]
        return self


def in_listing_order(item):
    """A key: by file and line, what has none at the end."""
    return item.place.file is None, item.place.file, item.place.line


def place_of(raw):
    return Place(raw["file"], raw["line"])


def read_kernel(raw):
    kernel = Kernel(
        raw["name"],
        raw["launches"],
        *(tuple(raw[name]) for name in ("grid", "block", "cluster")),
        raw["static_shared"],
        raw["dynamic_shared"],
        {kind: raw["global"].get(f"distinct_{kind}_bytes", 0) for kind in ("load", "store", "atomic")},
        raw["global"].get("busiest_thread_bytes", 0),
    )
    accesses, operations = {}, {}
    for site in raw["sites"]:
        key = (place_of(site), site["space"], site["kind"], site["size"], site["volatile"], site["async"])
        accesses.setdefault(key, Access(*key)).add(site)
    for site in raw["operations"]:
        key = (place_of(site), site["operation"])
        operation = operations.setdefault(key, Operation(*key))
        operation.calls += site["calls"]
        operation.lanes += site["lanes"]
    for site in raw["blocks_run"]:
        place = place_of(site)
        if place.file:
            ran = kernel.ran.setdefault(place, [0, 0])
            ran[0] += site["times"]
            ran[1] += site["lanes"]
    kernel.accesses, kernel.operations = (
        sorted(each.values(), key=in_listing_order) for each in (accesses, operations)
    )
    return kernel


def read_end(raw):
    if not raw:
        return None
    return End(
        place_of(raw),
        raw.get("kind", ""),
        tuple(raw.get("thread") or ()),
        tuple(raw.get("block") or ()),
        raw.get("device"),
    )


def reach(hazard):
    """How far apart the two accesses are: in one warp, in one block, in two blocks, on two devices."""
    one, other = hazard.first, hazard.second
    if not other or not one.thread or not other.thread:
        return 0
    if one.device != other.device:
        return 3
    return 2 if one.block != other.block else 0 if "one instruction" in hazard.detail else 1


def one_for_each_pair_of_lines(hazards):
    """Merges the instructions of a line, which the analysis distinguishes and a reader does not."""
    known, kept = {}, []
    for hazard in hazards:
        lines = frozenset(end.place for end in (hazard.first, hazard.second) if end)
        key = (hazard.what, hazard.space, hazard.kernel, lines)
        if key in known and all(place.file for place in lines):
            same = known[key]
            sum_of_both = same.count + hazard.count
            if reach(hazard) > reach(same):  # what concerns other blocks says more than what one warp does
                vars(same).update(vars(hazard))
            same.count = sum_of_both
        else:
            known[key] = hazard
            kept.append(hazard)
    return kept


def read(dump):
    """A program's raw results as an Analysis."""
    hazards = [
        Hazard(
            *(raw.get(name) or "" for name in ("what", "detail", "space", "kernel")),
            raw.get("count", 1),
            *(raw.get(name) or "" for name in ("variable", "address", "sentence")),
            read_end(raw.get("first")),
            read_end(raw.get("second")),
        )
        for raw in dump["hazards"]
    ]
    kernels = [read_kernel(raw) for raw in dump["kernels"]]
    for hazard in hazards:
        if hazard.second and not hazard.second.thread and hazard.second.place == hazard.first.place:
            hazard.second = None  # others wait at the same line, which the sentence says
    many = {kernel.name for kernel in kernels if any(size > 1 for size in kernel.block[1:])}
    for hazard in hazards:
        for end in filter(None, (hazard.first, hazard.second)):
            end.flat = hazard.kernel not in many
    faulty = {hazard.kernel for hazard in hazards if hazard.what not in ("race", "uninitialized", "stale")}
    for kernel in kernels:
        kernel.stopped = kernel.name in faulty
    hazards = one_for_each_pair_of_lines(hazards)
    return Analysis(dump["program"], kernels, hazards, dump.get("unread") or [], dump.get("error"), Sources())
