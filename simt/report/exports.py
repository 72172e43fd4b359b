"""The report for programs: JSON with everything, CSV with one row per line and access."""

import csv
import io
import json
import os
from dataclasses import asdict

from .model import Access
from .remarks import remark

COLUMNS = (
    "kernel launches grid block cluster file line source what bytes_per_lane requests lanes bytes "
    "sectors ideal_sectors wavefronts ideal_wavefronts distinct_bytes"
).split()


def named(file, root):
    """A file's path below the folder `root`, or all of it where it lies elsewhere; ? where no line is known."""
    if not file or not root:
        return file or "?"
    relative = os.path.relpath(file, os.path.realpath(root))
    return file if relative.startswith("..") else relative


def shape(dim):
    return "x".join(map(str, dim))


def transfers(access):
    names = ("sectors", "ideal_sectors") if access.is_global else ("wavefronts", "ideal_wavefronts")
    return dict(zip(names, (access.transfers, access.ideal)))


def access_cells(access):
    extra = " volatile" if access.volatile else " async" if access.is_async else ""
    cells = {"what": f"{access.space} {access.kind}{extra}", "bytes_per_lane": access.size or ""}
    cells.update(requests=access.requests, lanes=access.lanes, bytes=access.bytes, **transfers(access))
    return cells


def rows(analysis, root=None):
    """For each kernel its sums (no line), then one row per line and access or operation; cells by column."""
    for kernel in analysis.seen():
        same = {"kernel": kernel.name, "launches": kernel.launches}
        same.update({name: shape(getattr(kernel, name)) for name in ("grid", "block", "cluster")})
        for total in kernel.totals():
            distinct = kernel.distinct.get(total.kind, "") if total.is_global else ""
            yield {**same, **access_cells(total), "distinct_bytes": distinct}
        for each in [*kernel.accesses, *kernel.operations]:
            where = {
                "file": named(each.place.file, root),
                "line": each.place.line or "",
                "source": analysis.sources.text(each.place),
            }
            if isinstance(each, Access):
                yield {**same, **where, **access_cells(each)}
            else:
                yield {**same, **where, "what": each.name, "requests": each.calls, "lanes": each.lanes}


def as_csv(analysis, root=None):
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(analysis, root))
    return out.getvalue()


def line_json(access, kernel, sources):
    data = {"file": access.place.file, "line": access.place.line, "source": sources.text(access.place)}
    data.update({name: getattr(access, name) for name in ("space", "kind", "size", "volatile")})
    data["async"] = access.is_async
    data.update({name: getattr(access, name) for name in ("requests", "lanes", "bytes")})
    data.update(transfers(access))
    if access.is_global:
        data["bytes_moved"] = access.moved
    if access.read_from_peers or access.written_to_peers:
        data.update(read_from_peers=access.read_from_peers, written_to_peers=access.written_to_peers)
    data.update(remark=remark(access, kernel), worst=access.worst)
    return data


def kernel_json(kernel, sources):
    data = {name: getattr(kernel, name) for name in ("name", "launches", "stopped", "grid", "block", "cluster")}
    data.update({name: getattr(kernel, name) for name in ("static_shared", "dynamic_shared", "threads", "warps")})
    data["barriers_per_block"] = kernel.barriers_per_block()
    data["distinct_bytes"] = kernel.distinct
    data["busiest_thread_bytes"] = kernel.busiest_thread_bytes
    data["totals"] = {
        f"{total.space}_{total.kind}": {
            **{name: getattr(total, name) for name in ("requests", "lanes", "bytes")},
            **transfers(total),
        }
        for total in kernel.totals()
    }
    data["accesses"] = [line_json(access, kernel, sources) for access in kernel.accesses]
    data["operations"] = [
        {
            "file": each.place.file,
            "line": each.place.line,
            "operation": each.name,
            "calls": each.calls,
            "lanes": each.lanes,
        }
        for each in kernel.operations
    ]
    data["ran"] = [
        {"file": place.file, "line": place.line, "times": times, "lanes": lanes}
        for place, (times, lanes) in sorted(kernel.ran.items())
    ]
    return data


def end_json(end, sources):
    if not end:
        return None
    data = asdict(end)
    del data["place"], data["flat"]
    if end.device is None:
        del data["device"]
    return {"file": end.place.file, "line": end.place.line, "source": sources.text(end.place), **data}


def hazard_json(hazard, sources):
    ends = {"first": end_json(hazard.first, sources), "second": end_json(hazard.second, sources)}
    return {**{name: value for name, value in vars(hazard).items() if name not in ends}, **ends}


def as_json(analysis):
    data = {
        "version": 1,
        "program": analysis.program,
        "kernels": [kernel_json(kernel, analysis.sources) for kernel in analysis.kernels],
        "hazards": [hazard_json(hazard, analysis.sources) for hazard in analysis.hazards],
        "unread": analysis.unread,
        "error": analysis.error,
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
