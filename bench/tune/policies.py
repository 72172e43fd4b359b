"""What the policies of both headers have in common: where they stand, what they say of their measurement, and how a table is
written. Each header describes itself in a module, rms_norm/policy.py and q4_gemm/policy.py, with

    JOB, LEAF         the command, and the folder of the program that measures
    CSV, POLICIES     where its results and its policies are
    CALL              how a program calls the header with a policy, of the policy's name
    read(path)        the rows of a CSV that were timed
    policy(rows, path)    the text of the policy's file, made from them
"""

import math

from ladder.core import results
from ladder.core.ladders import Unusable

ANY_SIZE = math.inf


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


def limit(sizes, size):
    """Up to where a measured size counts: half way to the next, as factors go."""
    larger = [other for other in sizes if other > size]
    return int(math.sqrt(size * min(larger))) if larger else ANY_SIZE


def number(limit):
    return "kAnySize" if limit == ANY_SIZE else str(limit)


def names(gpu, policies):
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


def wrapped(words, indent="  ", width=120):
    """Words as comment lines, as long as clang-format lets them be."""
    lines = [f"{indent}//"]
    for word in " ".join(words).split():
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append(f"{indent}//")
        lines[-1] += f" {word}"
    return lines


def table(kind, name, rows):
    """The lines of an array, of rows of (values, comment)."""
    entries = [f"      {{{values}}}," for values, _ in rows]
    width = max(map(len, entries))
    said = [f"{entry:{width}}  // {comment}" for entry, (_, comment) in zip(entries, rows)]
    return [f"  static constexpr {kind} {name}[] = {{", *said, "  };"]


def file(title, include, namespace, structs):
    """The whole file. structs: (what stands before it, "name" or "name : base", lines)."""
    text = "".join(f"\n{before}struct {name} {{\n{chr(10).join(lines)}\n}};\n" for before, name, lines in structs)
    return f"""\
// {title}
#pragma once

#include "{include}"

namespace {namespace} {{
{text}
}}  // namespace {namespace}
"""
