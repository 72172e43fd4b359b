#!/usr/bin/env python3
"""Stands in for the program of a ladder in the tests of the tools around it.

Every number here is invented. None is a measurement, and none may ever reach profiling_results/.
FAKE_CALLS names a file that each call adds its options to. What it does wrong: FAKE_FAILS_AT=5 ends the fifth call with
an error, FAKE_SLOW=03_tiled=1.5 makes a stage slower from the second call on, FAKE_UNTIMED=1 times nothing.
"""

import json
import os
import pathlib
import sys

MICROSECONDS = {"01_basic": 4000.0, "02_reduction5": 200.0, "03_tiled": 250.0, "04_short": 40.0}
MICROSECONDS.update({"reduction0": 900.0, "reduction5": 300.0, "03_with_256_threads": 230.0})
MATRIX = {"rows": 8192, "cols": 8192}
STAGES = ["01_basic", "02_reduction5", "03_tiled", "04_short"]


def header(given, baseline="basic", optional=("weight",)):
    return [
        *("stage", "verdict", *given, *optional, "seed", "worst_error", "tolerance", "microseconds", "spread_percent"),
        *("gb_per_s", "percent_of_copy", "percent_of_datasheet", f"speedup_over_{baseline}", "copy_microseconds"),
        *("copied_bytes", "datasheet_gb_per_s", "iterations", "device", "sm", "driver", "runtime", "date"),
    ]


def ladder_csv(given=None, stages=STAGES, factor=None, timed=True, baseline="basic", optional=("weight",)):
    """What the program would write with --csv; given: the operator's parameters, factor: {stage: how much slower}."""
    given = given or MATRIX
    count = 1
    for value in given.values():
        count *= value
    lines = [header(given, baseline, optional)]
    for stage in stages:
        microseconds = MICROSECONDS[stage] * (factor or {}).get(stage, 1)
        rate = 8e-3 * count / microseconds
        told = [f"{microseconds:.2f}", "0.1", f"{rate:.1f}", f"{15000 / microseconds:.1f}", f"{rate / 50:.1f}"]
        told = told + [f"{MICROSECONDS[stages[0]] / microseconds:.2f}", "150.00", 8 * count] if timed else [""] * 8
        first = [stage, "PASS", *given.values(), *(1 for _ in optional), 1, "1e-7", "1e-5"]
        lines.append([*first, *told, "5000.0", 50, "NVIDIA Fake 9000", 90, 13000, 13000, "2026-01-31"])
    return "".join(",".join(map(str, line)) + "\n" for line in lines)


def main():
    calls = pathlib.Path(os.environ["FAKE_CALLS"])
    program = pathlib.Path(sys.argv[0]).absolute()
    with calls.open("a") as log:
        log.write(" ".join([program.name, *sys.argv[1:]]) + "\n")
    number = len(calls.read_text().splitlines())
    if os.environ.get("FAKE_FAILS_AT") == str(number):
        sys.exit("01_basic FAIL: wrong on purpose")
    factor = {}
    if "FAKE_SLOW" in os.environ and number > 1:
        stage, times = os.environ["FAKE_SLOW"].split("=")
        factor = {stage: float(times)}
    options = dict(zip(sys.argv[1:], sys.argv[2:] + [""]))
    ladder = json.loads((program.parent / "ladder.json").read_text())
    given = {name: int(options.get(f"--{name}", value)) for name, value in ladder["main"].items()}
    stages = options["--stage"].split(",") if "--stage" in options else ladder["names"]
    optional = ["weight"] if ladder["operator"] == "rms_norm" else []
    timed = "FAKE_UNTIMED" not in os.environ
    text = ladder_csv(
        given, stages, factor, timed, ladder["baseline"].partition("_")[2] or ladder["baseline"], optional
    )
    if "--csv-dir" in options:  # a lecture's, with a table of an experiment
        pathlib.Path(options["--csv-dir"], "main.csv").write_text(text)
        pathlib.Path(options["--csv-dir"], "copies.csv").write_text("a,b\n")
    else:
        pathlib.Path(options["--csv"]).write_text(text)
    print("NVIDIA Fake 9000, sm_90, 100 SMs, 5000 GB/s datasheet\nthe table")


if __name__ == "__main__":
    main()
