"""How a report says things: numbers, bytes, shapes, places, and the sums over a kernel. Text without a layout."""

from pathlib import Path

from .model import OPERATIONS

NOTES = {
    "Exact": "addresses, widths, requests, sectors, bytes requested and moved, distinct bytes, barriers, shuffles, "
    "conflicts of 4-byte accesses to shared memory, and the hazards of the path that ran. Use is bytes requested per "
    "byte moved: above 100 % where lanes share what they read.",
    "Model": "wavefronts of 8- and 16-byte accesses to shared memory; which lanes run together after a branch; which "
    "loads the compiler keeps: g++ compiled this, and nvcc may merge, repeat or drop one.",
    "Unknown without hardware": "time, cache hits, what DRAM moved, occupancy and stalls; the sectors that texture reads "
    "touch, since a GPU lays out a texture's array in an order of its own; arithmetic is not counted.",
}


def distance(count):
    """Bytes as people say them: 4 bytes, 32 KiB."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= scale and count % (scale // 4) == 0:
            return f"{count / scale:g} {unit}"
    return f"{count:,} byte" + ("s" if count != 1 else "")


def number(value):
    """4, 4.25, 1,024: what a reader needs of a mean."""
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:.2f}".rstrip("0").rstrip(".")


def count(value, singular, plural=None):
    return f"{number(value)} {singular if value == 1 else plural or singular + 's'}"


def shape(dim):
    """(64, 1, 1) -> 64; (8, 8, 1) -> 8 × 8."""
    sizes = list(dim)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return " × ".join(f"{size:,}" for size in sizes)


def amount(value):
    """Bytes, at most eight characters."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= 10 * scale or (unit != "kB" and value >= scale):
            return f"{value / scale:.{2 if value < 10 * scale else 1 if value < 100 * scale else 0}f} {unit}"
    return f"{value:,.0f} B"


def percent(value):
    return "" if value is None else f"{100 * value:.3g} %"


def access_name(access):
    """load global 16 B async."""
    extra = " volatile" if access.volatile else " async" if access.is_async else ""
    return f"{access.kind} {access.space} {access.size} B{extra}"


def shown(path):
    """A path as the user names it: relative to the current folder if it is below that."""
    path, here = Path(path), Path.cwd()
    return str(path.relative_to(here)) if here in path.parents else str(path)


def operation_name(operation):
    return OPERATIONS.get(operation.name, (operation.name.replace("_", " "),))[0]


def coordinates(triple, flat=True):
    """(3, 0, 0) -> 3 where there is one dimension; (3, 0, 0) and (3, 1, 0) otherwise."""
    return str(triple[0]) if triple and flat and not any(triple[1:]) else str(tuple(triple))


def where(place):
    return f"{shown(place.file)}:{place.line}" if place.file else "(line unknown)"


def who(end):
    """The access, thread, block and device of one end of a hazard."""
    parts = [end.kind] if end.kind else []
    parts += [f"thread {coordinates(end.thread, end.flat)}"] if end.thread else []
    parts += [f"block {coordinates(end.block)}"] if end.block else []
    parts += [f"device {end.device}"] if end.device is not None else []
    return ", ".join(parts)


def hazard_title(hazard):
    """race: read after write, in shared memory, kernel k, 3 times."""
    parts = [": ".join(filter(None, (hazard.what, hazard.detail))).replace("_", " ")]
    parts += [f"in {hazard.space} memory"] if hazard.space else []
    parts += [f"kernel {hazard.kernel}"] if hazard.kernel else []
    return ", ".join([*parts, f"{hazard.count:,} times" if hazard.count != 1 else "once"])


def launch_line(kernel, others=0):
    blocks = f"{shape(kernel.grid)} blocks of {shape(kernel.block)} threads"
    if kernel.grid == (1, 1, 1):
        blocks = blocks.replace("blocks", "block", 1)
    parts = [f"{count(kernel.launches, 'launch', 'launches')} of {blocks}"]
    if kernel.cluster != (1, 1, 1):
        parts.append(f"clusters of {shape(kernel.cluster)}")
    shared = kernel.static_shared + kernel.dynamic_shared
    if shared:
        dynamic = f", {kernel.dynamic_shared:,} of them dynamic" if kernel.dynamic_shared else ""
        parts.append(f"{shared:,} bytes of shared memory per block{dynamic}")
    if others:
        parts.append(f"not shown: {count(others, 'other shape')} (--launches)")
    if kernel.stopped:
        parts.append("stopped by a fault: counted up to there")
    return "; ".join(parts)


def per_request(access):
    return f"{access.per_request:.2f} ({number(round(access.ideal_per_request, 2))})"


def summary_tables(kernel):
    """The sums over a kernel, one table of cells for each kind of memory."""
    tables = {
        "global": [
            ["global", "requests", "requested", "moved", "use", "sectors each (ideal)", "distinct", "times requested"]
        ],
        "shared": [["shared", "requests", "requested", "wavefronts each (ideal)", "conflicts"]],
    }
    for total in kernel.totals():
        cells = [f"{total.kind}s", f"{total.requests:,}", amount(total.bytes)]
        if total.is_global:
            distinct = kernel.distinct.get(total.kind)
            again = [amount(distinct), f"{total.bytes / distinct:.2f}"] if distinct else ["", ""]
            cells += [amount(total.moved), percent(total.efficiency), per_request(total), *again]
        else:
            cells += [per_request(total), f"{total.excess:,}" if total.excess else "none"]
        tables[total.space].append(cells)
    return [table for table in tables.values() if len(table) > 1]


def operations_line(kernel):
    parts = []
    barriers = kernel.barriers_per_block()
    parts.append(count(round(barriers, 2), "barrier") + " per block")
    for name, (one, many) in OPERATIONS.items():
        calls = kernel.calls(name) / kernel.warps if kernel.warps else 0
        if name != "block_barrier" and calls:
            parts.append(count(round(calls, 2), one, many) + " per warp")
    requests = sum(access.requests for access in kernel.accesses)
    if requests:
        lanes = sum(access.lanes for access in kernel.accesses) / requests
        parts.append(f"{number(round(lanes, 1))} of {number(round(kernel.lanes_possible, 1))} lanes active per request")
    return "; ".join(parts)


def link_line(read, written):
    """What crosses the link between devices, or None where nothing does."""
    if not read and not written:
        return None
    return f"over the link: {read:,} bytes read from other devices, {written:,} written to them"


def each_with_unit(access):
    return f"{per_request(access)} {'sectors' if access.is_global else 'wavefronts'}"
