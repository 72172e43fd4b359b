#!/usr/bin/env python3
"""Reads the hardware counters of one stage, or of all: make profile S=03, or profile_stage.py STAGE|all [DIRECTORY].

Nsight Compute (ncu) looks at one launch of the stage's kernel on the real input, 8192 x 8192, and replays it until
every counter has been read. They go to DIRECTORY/ncu/<stage>.csv, by default profiling_results/<gpu>/ncu/: name, ncu's
name, unit and value, one counter a line; a counter that this GPU or this ncu lacks stands there as missing. Clocks are
left as found (--clock-control none); before each replay the caches are emptied (ncu's default, --cache-control all).
"""

import csv
import datetime
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

import results
from counters import COUNTERS, DURATION, MISSING
from results import LADDER, PROGRAM, ROOT, Unusable

WORK = ROOT / "build/profile"
HEADER = ["name", "metric", "unit", "value"]
STORED = "Those of an H200 are in profiling_results/h200/ncu; assignment1/rms_norm/PROFILING.md reads them with you."

NO_NCU = f"""Nsight Compute's command line tool, ncu, is not on PATH, beside nvcc or in /opt/nvidia/nsight-compute.
It is part of NVIDIA's CUDA toolkit; in NVIDIA's apt repository its package is cuda-nsight-compute-13-0.
{STORED}"""

LOCKED = f"""the driver does not let this user read the counters (ERR_NVGPUCTRPERM).
They tell something about every program that uses the GPU, so by default only the administrator may read them.
One of these helps:
  - run it as root:  sudo make profile S=...
  - in a container, let its administrator start it with --cap-add=SYS_ADMIN
  - open the counters to every user of this machine, as its administrator, until further notice: write
        options nvidia NVreg_RestrictProfilingToAdminUsers=0
    to /etc/modprobe.d/nvidia-profiling.conf, run update-initramfs -u (Debian, Ubuntu), and restart
  - where none of this is yours to do, read the stored files. {STORED}"""


def find_stages(asked):
    """The names of the stages asked for; exit code 2 where the ladder has no such stage."""
    stages = sorted(path.parent.name for path in (ROOT / LADDER).glob("[0-9]*_*/kernel.cuh"))
    if asked == "all":
        return stages
    find = [str(ROOT / "scripts/find_stage.sh"), asked]
    found = subprocess.run(find, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().strip()
    if found in [f"{LADDER}/{stage}" for stage in stages]:
        return [pathlib.PurePath(found).name]
    given = f"S={asked} is no stage of {LADDER}" if asked else "make profile needs a stage"
    print(f"{given}; say S=all or S= one of: {', '.join(stages)}", file=sys.stderr)
    sys.exit(2)


def find_ncu():
    beside_nvcc = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin/ncu"
    newest_last = sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"))
    for candidate in (shutil.which("ncu"), beside_nvcc, *reversed(newest_last)):
        if candidate and os.access(candidate, os.X_OK):
            return str(candidate)
    raise Unusable(NO_NCU)


def run_ncu(ncu, stage, metrics):
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
    command += ["--kernel-name", "regex:rms_norm_kernel", "--launch-count", "1", "--metrics", ",".join(metrics)]
    command += [str(PROGRAM), "--profile", "--stage", stage]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
    except subprocess.TimeoutExpired:
        raise Unusable(f"{stage}: ncu was not done after 240 seconds; nothing was stored")
    output = done.stdout.decode(errors="replace")
    (WORK / f"{stage}.log").write_text(output, encoding="utf-8")
    return done.returncode, output


def parse(output):
    """(kernel, {metric: (unit, value)}) of the one launch in ncu's raw CSV, which stands among other lines."""
    lines = [line for line in output.splitlines() if line.startswith('"')]
    if len(lines) != 3:  # names, units, one launch
        return None
    names, units, values = csv.reader(lines)
    if not len(names) == len(units) == len(values) or "Kernel Name" not in names:
        return None
    cells = dict(zip(names, zip(units, (value.replace(",", "") for value in values))))
    kernel = values[names.index("Kernel Name")].split("(")[0].split(" ")[-1].split("::")[-1]
    return kernel, cells


def names_it(lines, metric):
    return any(re.search(rf"(?<![\w.]){re.escape(metric)}(?!\w|\.\w)", line) for line in lines)


def is_number(text):
    try:
        return float(text) == float(text)
    except ValueError:
        return False


def profile(ncu, stage):
    """The lines of one stage's CSV: (kernel, counters as name, metric, unit, value)."""
    metrics = list(COUNTERS)
    while True:
        code, output = run_ncu(ncu, stage, metrics)
        if "ERR_NVGPUCTRPERM" in output:
            raise Unusable(LOCKED)
        complaints = [line for line in output.splitlines() if re.match(r"==(ERROR|WARNING)==", line)]
        parsed = parse(output)
        if parsed and code == 0:
            break
        # A counter that is unknown here ends some versions of ncu: once more without it.
        unknown = [metric for metric in metrics if names_it(complaints, metric)]
        if not unknown or len(unknown) == len(metrics):
            why = "\n  ".join(complaints or output.strip().splitlines()[-5:])
            log = results.shown(WORK / f"{stage}.log")
            raise Unusable(f"{stage}: ncu gave no counters (exit code {code}, see {log}):\n  {why}\n{STORED}")
        metrics = [metric for metric in metrics if metric not in unknown]
    kernel, cells = parsed
    rows = []
    for metric, name in COUNTERS.items():
        unit, value = cells.get(metric, ("", ""))
        rows.append([name, metric, unit, value] if is_number(value) else [name, metric, "", MISSING])
    if all(row[3] == MISSING for row in rows):
        log = results.shown(WORK / f"{stage}.log")
        raise Unusable(f"{stage}: ncu knows none of the counters here, see {log}\n{STORED}")
    return kernel, rows


def facts(ncu, gpu):
    said = subprocess.run([ncu, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
    found = re.search(r"Version ([\d.]+)", said)
    return {
        "input": "8192 x 8192 float32, weight, one launch",
        "GPU": gpu,
        "driver": results.query("driver_version"),
        "Nsight Compute": found.group(1) if found else "unknown version",
        "clocks": "as found (--clock-control none)",
        "caches": "emptied before each replay (--cache-control all)",
        "date": datetime.date.today().isoformat(),
    }


def summary(stage, rows):
    time = next(row for row in rows if row[1] == DURATION)
    missing = [row[1] for row in rows if row[3] == MISSING]
    said = f"{stage}: {time[3]} {time[2]}".strip() + f", {len(rows) - len(missing)} counters"
    return said + (f"; missing: {', '.join(missing)}" if missing else "")


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.exit("usage: profile_stage.py STAGE|all [DIRECTORY]")
    stages = find_stages(arguments[0])
    gpu = results.gpu_here()
    if not gpu:
        print(f"profile: nvidia-smi shows no GPU here, so there are no counters to read. {STORED}")
        return
    try:
        ncu = find_ncu()
        shutil.rmtree(WORK, ignore_errors=True)
        out = WORK / "ncu"
        out.mkdir(parents=True)
        results.build(f"{LADDER}/program")
        same = facts(ncu, gpu)
        for stage in stages:
            kernel, rows = profile(ncu, stage)
            about = [[name, "", "", value] for name, value in {"stage": stage, "kernel": kernel, **same}.items()]
            results.write_csv(out / f"{stage}.csv", HEADER, about + rows)
            print(summary(stage, rows), flush=True)
        folder = pathlib.Path(arguments[1]).absolute() if arguments[1:] and arguments[1] else None
        target = (folder or results.STORE / results.slug(gpu)) / "ncu"
        results.publish(out, target)
        print(f"profile: stored in {results.shown(target)}")
    except Unusable as error:
        sys.exit(f"profile: {error}")
    except KeyboardInterrupt:
        sys.exit("\nprofile: interrupted; nothing was stored")


if __name__ == "__main__":
    main(sys.argv[1:])
