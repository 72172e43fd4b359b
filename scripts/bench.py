#!/usr/bin/env python3
"""Measures this machine's GPU and stores the results: make bench, or scripts/bench.py [DIRECTORY].

By default they go to profiling_results/<gpu>/:
  matrix_8192x8192.csv    the ladder on the real input
  matrix_by_columns.csv   every stage and the copy kernel from 256 to 65536 columns, always 2^26 elements
  few_rows.csv            1 to 256 rows of 4096 columns: short kernels, whose time is not that of the memory
  long_rows.csv           one row of 65536 to 4194304 columns: fewer rows than multiprocessors
  repeat.csv              the ladder twice in this job: microseconds, and the difference in percent
  environment.txt         GPU, driver, compilers, clocks as found
  header_shapes.csv       the production header on shapes outside the peers' tables, beside copies of the same bytes
and the tables of lectures/W1L2_memory_bandwidth. They are put in place together, after the last of them was measured,
and only if every kernel above 50 us repeats within 2 percent. No setting of the GPU is changed.
"""

import datetime
import pathlib
import re
import shutil
import subprocess
import sys
import time

import results
from results import LADDER, PROGRAM, ROOT, Unusable

ELEMENTS = 2**26
BY_COLUMNS = [(ELEMENTS // 2**power, 2**power) for power in range(8, 17)]
FEW_ROWS = [(rows, 4096) for rows in (1, 16, 64, 256)]
LONG_ROWS = [(1, 2**power) for power in range(16, 23, 2)]
LECTURE = "lectures/W1L2_memory_bandwidth"
SHAPES = "bench/shapes"
WORK = ROOT / "build/bench"  # kept when the job fails

LONG_KERNEL_US = 50.0
REPEAT_LIMIT_PERCENT = 2.0

CLOCKS = {"SM clock": "clocks.sm", "memory clock": "clocks.mem"}
SETTINGS = {
    "SM clock at most": "clocks.max.sm",
    "memory clock at most": "clocks.max.mem",
    "power limit": "power.limit",
    "ECC": "ecc.mode.current",
    "persistence mode": "persistence_mode",
    "GPU memory": "memory.total",
    "driver": "driver_version",
}


def measure(name, *command):
    """Runs one program to its end; its output goes to build/bench/<name>.log and is returned."""
    start = time.monotonic()
    try:
        done = subprocess.run(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
        )
    except OSError as error:
        raise Unusable(f"{name}: {command[0]} cannot be started: {error.strerror}")
    except subprocess.TimeoutExpired:
        raise Unusable(f"{name}: not done after 300 seconds; nothing was stored")
    output = done.stdout.decode(errors="replace")
    (WORK / f"{name}.log").write_text(output, encoding="utf-8")
    print(f"bench: {name} took {time.monotonic() - start:.1f} s", flush=True)
    if done.returncode != 0:
        raise Unusable(f"{output}{name} failed with exit code {done.returncode}; nothing was stored")
    return output


def run_ladder(name, target, *options):
    output = measure(name, PROGRAM, "--csv", target, *options)
    rows = results.read(target, ["stage", "verdict", "microseconds", "copy_microseconds", "device", "runtime"])
    if not any(row["microseconds"] for row in rows):
        raise Unusable(f"{output}{name} timed nothing; nothing was stored")
    return output, rows


def sweep(target, shapes, *options):
    """The ladder's CSVs of several shapes, one below the other."""
    lines = []
    for rows, columns in shapes:
        name = f"{rows} x {columns}"
        part = WORK / f"{target.stem}_{rows}x{columns}.csv"
        run_ladder(name, part, "--rows", rows, "--cols", columns, "--no-small", *options)
        header, *stages = part.read_text(encoding="utf-8").splitlines()
        lines += stages if lines else [header, *stages]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


def times(rows):
    """Microseconds of the copy kernel and of each stage that was timed."""
    return {
        "copy kernel": float(rows[0]["copy_microseconds"]),
        **{row["stage"]: float(row["microseconds"]) for row in rows if row["microseconds"]},
    }


def compare(first, second, target):
    """Writes repeat.csv; the kernels that did not repeat, as sentences."""
    table, complaints = [], []
    for name, before in first.items():
        if name not in second:
            raise Unusable(f"{name} was timed in the first run of the ladder only; nothing was stored")
        difference = 100 * (second[name] - before) / before
        limit = REPEAT_LIMIT_PERCENT if before > LONG_KERNEL_US else None
        table.append([name, before, second[name], f"{difference:+.2f}", "" if limit is None else limit])
        if limit is not None and not abs(difference) < limit:
            complaints.append(f"{name}: {before:.2f} us, then {second[name]:.2f} us, {difference:+.2f} %")
    header = ["kernel", "first_microseconds", "second_microseconds", "difference_percent", "limit_percent"]
    results.write_csv(target, header, table)
    return complaints


def last_line(command, pattern):
    """What the pattern finds in the last line of a command's output."""
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.findall(pattern, done.stdout.decode(errors="replace"))
    return found[-1] if found else ""


def environment(gpu, runtime, before, after):
    flags = ROOT / "build/cuda/flags.txt"
    compiler = re.findall(r"release [\d.]+, V[\d.]+", flags.read_text() if flags.is_file() else "")
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "GPU": gpu,
        "CUDA runtime": results.version(runtime),
        "nvcc": compiler[-1] if compiler else "",
        "host compiler": last_line(["g++", "--version"], r"g\+\+.*"),
        "commit": last_line(["git", "describe", "--always", "--dirty", "--exclude=*"], r".+"),
    }
    for key in CLOCKS:
        facts[f"{key} before"], facts[f"{key} right after"] = before[key], after[key]
    facts.update((key, results.query(field)) for key, field in SETTINGS.items())
    return "".join(f"{key}: {value}\n" for key, value in facts.items() if value)


def clocks():
    return {key: results.query(field) for key, field in CLOCKS.items()}


def bench(directory):
    shutil.rmtree(WORK, ignore_errors=True)
    out = WORK / "results"
    out.mkdir(parents=True)
    others = [folder for folder in (LECTURE, SHAPES) if (ROOT / folder / "Makefile").is_file()]
    results.build(f"{LADDER}/program", *(f"{folder}/program" for folder in others))

    before = clocks()
    table, first = run_ladder("ladder", out / results.MATRIX_CSV)
    after = clocks()
    sweep(out / results.COLUMNS_CSV, BY_COLUMNS)
    sweep(out / results.FEW_CSV, FEW_ROWS)
    # Without 01_basic, whose one thread would take minutes for the longest of these rows.
    sweep(out / results.LONG_CSV, LONG_ROWS, "--stage", ",".join(row["stage"] for row in first[1:]))
    if SHAPES in others:
        measure("shapes", ROOT / "build/cuda" / SHAPES / "shapes", "--csv", out / results.SHAPES_CSV)
    if LECTURE in others:
        measure("lecture", ROOT / "build/cuda" / LECTURE / "memory_bandwidth_test", "--csv-dir", out)
    _, second = run_ladder("ladder again", WORK / "again.csv")

    gpu = first[0]["device"]
    (out / "environment.txt").write_text(environment(gpu, first[0]["runtime"], before, after), encoding="utf-8")
    complaints = compare(times(first), times(second), out / "repeat.csv")
    print(f"\n{table}\n{(out / 'repeat.csv').read_text()}")
    if complaints:
        raise Unusable(
            f"these kernels differ by {REPEAT_LIMIT_PERCENT:g} % or more between two runs:\n  "
            + "\n  ".join(complaints)
            + f"\nNothing was stored; the measurements are in {results.shown(out)}."
        )
    target = pathlib.Path(directory).absolute() if directory else results.STORE / results.slug(gpu)
    results.publish(out, target)
    print(f"bench: {len(list(out.iterdir()))} files in {results.shown(target)}")


def main(arguments):
    if len(arguments) > 1:
        sys.exit("bench.py takes one directory or none")
    if not results.gpu_here():
        print("bench: nvidia-smi shows no GPU here, so nothing can be measured and nothing was written.")
        print("make plots and make readme work from the stored files in profiling_results/, and need no GPU.")
        return
    try:
        bench(*arguments or [""])
    except Unusable as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit("\nbench: interrupted; nothing was stored")


if __name__ == "__main__":
    main(sys.argv[1:])
