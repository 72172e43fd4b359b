"""Runs known_answers.cu under the analysis and adds up what it counted."""

import csv
import json
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SIMTCC = HERE.parent.parent / "simtcc"
COUNTS = ("requests", "lanes", "bytes", "sectors", "wavefronts", "conflicts")


def expected():
    """The rows of known_answers.csv, counts as numbers, None where a count means nothing."""
    with open(HERE / "known_answers.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [{**row, **{name: int(row[name]) if row[name] else None for name in COUNTS}} for row in rows]


def build(program):
    subprocess.run([str(SIMTCC), "--analyze", str(HERE / "known_answers.cu"), "-o", str(program)], check=True)


def analyse(program, **environment):
    """What the analysis writes about one run of the program."""
    report = program.with_suffix(".json")
    environment = {**os.environ, "SIMT_ANALYSIS": str(report), **environment}
    subprocess.run([str(program)], check=True, env=environment, stdout=subprocess.DEVNULL)
    return json.loads(report.read_text(encoding="utf-8"))


def totals(report):
    """{kernel: {(space, kind): counts}}, a kernel's sites added up; barriers and shuffles have no space."""
    found = {}
    for kernel in report["kernels"]:
        counts_of = found.setdefault(kernel["name"], {})
        for site in kernel["sites"]:
            counts = counts_of.setdefault((site["space"], site["kind"]), dict.fromkeys(COUNTS, 0))
            for name in COUNTS:
                counts[name] += site.get(name, 0)
        for operation in kernel["operations"]:
            counts = counts_of.setdefault(("", operation["operation"]), {"requests": 0, "lanes": 0})
            counts["requests"] += operation["calls"]
            counts["lanes"] += operation["lanes"]
    return found
