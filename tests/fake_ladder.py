#!/usr/bin/env python3
"""Stands in for rms_norm_matrix_test where the tools around it are tested.

Every number here is invented. None is a measurement, and none may ever reach profiling_results/.
FAKE_CALLS names a file that each call adds its options to. What it does wrong: FAKE_FAILS_AT=5 ends the fifth call with
an error, FAKE_SLOW=03_tiled=1.5 makes a stage slower from the second call on, FAKE_UNTIMED=1 times nothing.
"""

import os
import pathlib
import sys

STAGES = {"01_basic": 4000.0, "02_reduction5": 200.0, "03_tiled": 250.0, "04_short": 40.0}  # microseconds
HEADER = (
    "stage,verdict,rows,cols,weight,microseconds,gb_per_s,percent_of_copy,percent_of_datasheet,speedup_over_basic,"
    "copy_microseconds,iterations,device,sm,driver,runtime,date"
)


def ladder_csv(rows=8192, cols=8192, factor=None, timed=True):
    """What the program would write with --csv; factor: {stage: how much slower}."""
    lines = [HEADER]
    for stage, microseconds in STAGES.items():
        microseconds *= (factor or {}).get(stage, 1)
        rate = 8e-3 * rows * cols / microseconds
        told = [f"{microseconds:.2f}", f"{rate:.1f}", f"{15000 / microseconds:.1f}", f"{rate / 50:.1f}"]
        told = told + [f"{4000 / microseconds:.2f}", "150.00"] if timed else [""] * 6
        words = [stage, "PASS", rows, cols, 1, *told, 50, "NVIDIA Fake 9000", 90, 13000, 13000, "2026-01-31"]
        lines.append(",".join(str(word) for word in words))
    return "\n".join(lines) + "\n"


def main():
    calls = pathlib.Path(os.environ["FAKE_CALLS"])
    with calls.open("a") as log:
        log.write(" ".join(sys.argv[1:]) + "\n")
    number = len(calls.read_text().splitlines())
    if os.environ.get("FAKE_FAILS_AT") == str(number):
        sys.exit("01_basic FAIL: wrong on purpose")
    factor = {}
    if "FAKE_SLOW" in os.environ and number > 1:
        stage, times = os.environ["FAKE_SLOW"].split("=")
        factor = {stage: float(times)}
    given = dict(zip(sys.argv[1:], sys.argv[2:] + [""]))
    rows, cols = int(given.get("--rows", 8192)), int(given.get("--cols", 8192))
    pathlib.Path(given["--csv"]).write_text(ladder_csv(rows, cols, factor, "FAKE_UNTIMED" not in os.environ))
    print("the table")


if __name__ == "__main__":
    main()
