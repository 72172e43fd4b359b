"""Turns the program counters of a dump into places in the source, with binutils' addr2line."""

import re
import shutil
import subprocess
from collections import namedtuple
from pathlib import Path

Place = namedtuple("Place", "file line")  # the file's real path, or None and 0 where nothing is known
UNKNOWN = Place(None, 0)

SIMT = Path(__file__).resolve().parent.parent
NOT_THE_STUDENTS = re.compile(
    "|".join(
        [*(re.escape(f"{SIMT}/{name}/") for name in ("include", "runtime", "analysis")), "/usr/include/", "/usr/lib/"]
    )
)
# Mangled names in the scopes of the device's and of C++'s headers: g++ does not always tell their file rightly.
DEVICE_FUNCTION = re.compile(r"_Z+N?[KVrRO]*(?:4simt|4cuda|18cooperative_groups|S[tabs]|9__gnu_cxx)")


class SymbolsFailed(Exception):
    """Why no line can be named, for the reader."""


def counters_in(value):
    """Every {"object": ..., "offset": ...} of the dump, wherever it stands."""
    if isinstance(value, list):
        for item in value:
            yield from counters_in(item)
    elif isinstance(value, dict):
        if "object" in value and "offset" in value:
            yield value["object"], value["offset"]
        for item in value.values():
            yield from counters_in(item)


def frames_of(output, count):
    """addr2line's output as one list of places for each address, the innermost inlined call first.

    An address stands on a line of its own; after it come two lines for each call: the function, and file:line."""
    found, function = [], None
    for line in output.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line) and function is None:
            found.append([])
        elif function is None:
            function = line
        else:
            file, number = line.split(" (discriminator")[0].rsplit(":", 1)
            known = file != "??" and number.isdigit() and number != "0"
            is_device = DEVICE_FUNCTION.match(function)
            found[-1].append(Place(file, int(number)) if known and not is_device else UNKNOWN)
            function = None
    if len(found) != count:
        raise SymbolsFailed(f"addr2line answered for {len(found)} addresses of {count}")
    return found


def students_place(frames):
    """The innermost place in a file of the student's own: headers of the device and of C++ are walked out of."""
    for place in frames:
        if place.file:
            path = str(Path(place.file).resolve())
            if not NOT_THE_STUDENTS.match(path):
                return Place(path, place.line)
    return UNKNOWN


def addr2line(program, addresses):
    if not shutil.which("addr2line"):
        raise SymbolsFailed("addr2line, which names source lines, is missing: apt-get install binutils")
    done = subprocess.run(
        ["addr2line", "-a", "-i", "-f", "-e", program],
        input="".join(f"{address:#x}\n" for address in addresses),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    if done.returncode:
        raise SymbolsFailed(f"addr2line cannot read {program}: {done.stderr.strip()}")
    return frames_of(done.stdout, len(addresses))


def resolve(dump, look_up=addr2line):
    """{(object, offset): Place} for a whole dump. Counters are return addresses: the call stands one byte before."""
    offsets = {}
    for program, offset in counters_in(dump):
        offsets.setdefault(program, set()).add(offset)
    places = {}
    for program, wanted in offsets.items():
        wanted = sorted(wanted)
        for offset, frames in zip(wanted, look_up(program, [max(offset - 1, 0) for offset in wanted])):
            places[program, offset] = students_place(frames)
    return places
