#!/usr/bin/env python3
"""Counts what every stage of the ladder asks of memory: make analyze S=all, or analyze_stages.py [DIRECTORY].

It needs no GPU: simt/analyze looks at one launch of each stage on 64 x 8192, on the CPU device. To DIRECTORY, by
default profiling_results/cpu_device, go <stage>.csv and environment.txt; make readme puts them into the write-ups.
"""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

import results
import tables
from results import LADDER, ROOT, Unusable

ROWS, COLS = 64, 8192
PROGRAM = ROOT / "build/analyze" / LADDER / "rms_norm_matrix_test"
WORK = ROOT / "build/analyze/stages"
OWN = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "BACKEND", "BACKEND_SAID", "ARGS", "S")  # of a make that has started this


def run(*command):
    environment = {name: value for name, value in os.environ.items() if name not in OWN}
    done = subprocess.run(
        [str(word) for word in command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.returncode, done.stdout.decode(errors="replace")


def build():
    code, output = run("make", "-C", LADDER, "BACKEND=cpu", "analyzed")
    if code:
        raise Unusable(f"the build failed:\n{output}")


def analyze(stage):
    """Writes the stage's CSV; what it says is told only if something is wrong."""
    options = ["--stage", stage, "--rows", ROWS, "--cols", COLS, "--profile"]
    target = WORK / f"{stage}.csv"
    code, output = run("simt/analyze", "--program", PROGRAM, "--root", ROOT, "--csv", target, "--", *options)
    if code:
        raise Unusable(f"{output}{stage}: simt/analyze ended with exit code {code}; nothing was stored")
    if len(results.read(target)) == 0:
        raise Unusable(f"{stage}: no kernel ran; nothing was stored")
    return stage


def compiler():
    """Another g++ may keep another load."""
    return run(*(os.environ.get("CXX") or "g++").split(), "-dumpversion")[1].strip()


def main(arguments):
    if len(arguments) > 1:
        sys.exit("usage: analyze_stages.py [DIRECTORY]")
    target = pathlib.Path(arguments[0]).absolute() if arguments else results.STORE / "cpu_device"
    try:
        build()
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir(parents=True)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for stage in pool.map(analyze, tables.stages_of()):
                print(f"analyze: {stage}", flush=True)
        facts = f"input: {ROWS} x {COLS} float32, weight, one launch\ng++: {compiler()}\n"
        (WORK / "environment.txt").write_text(facts, encoding="utf-8")
        results.publish(WORK, target)
        print(f"analyze: stored in {results.shown(target)}; make readme puts them into the pages")
    except Unusable as error:
        sys.exit(f"analyze: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
