"""How many compilers may run at once: one for each core, as long as each can have its memory. Without the limit,
compilers of a small machine end in the kernel's out-of-memory killer."""

import os
import re
from pathlib import Path

COMPILER = 500 * 10**6  # bytes that g++ takes for the largest files of the course


def jobs():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, free_memory() // COMPILER))


def free_memory():
    """Bytes that can still be had, within the control groups of this process, too."""
    free = number(Path("/proc/meminfo"), r"MemAvailable:\s+(\d+)") * 1024 or float("inf")
    for line in text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            root, names, of_all = Path("/sys/fs/cgroup"), ("memory.max", "memory.current"), ""
        elif "memory" in controllers.split(","):
            root, names = Path("/sys/fs/cgroup/memory"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
            of_all = "total_"
        else:
            continue
        folder = root / group.lstrip("/")
        for place in [root] + [place for place in (folder, *folder.parents) if root in place.parents]:
            limit, used = (number(place / name, r"\s*(\d+)") for name in names)
            cached = (
                number(place / "memory.stat", rf"(?m)^{of_all}{kind}_file (\d+)") for kind in ("inactive", "active")
            )
            if limit:
                free = min(free, max(0, limit - used + sum(cached)))  # the kernel gives up what it caches of files
    return free


def text(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def number(path, pattern):
    found = re.search(pattern, text(path))
    return int(found[1]) if found else 0


if __name__ == "__main__":
    print(int(jobs()))
