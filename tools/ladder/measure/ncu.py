"""Nsight Compute's command line tool: finding it, running it over a program, and reading what it counted.

Every launch of the program is counted; a program that is started with --profile makes only those of its stage.
"""

import csv
import datetime
import glob
import re
import subprocess
import time

from ..core import machine
from ..core.ladders import Unusable
from .counters import DURATION, MISSING, OPCODES

STORED = "Those of an H200 are in profiling_results/h200/*/ncu; assignment1/rms_norm/PROFILING.md reads them with you."
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
HEADER = ["name", "metric", "unit", "value"]  # of a stored file
# In a report's text, sections that only draw rooflines: for every precision, as long as all other sections together.
ROOFLINES = re.compile(r"^    Section: GPU Speed Of Light .*Roofline.*\n(?:(?!    Section: ).*\n)*", re.MULTILINE)
SECTIONS = (  # of a stored report: those that lectures/W3L2_nsight_compute reads
    "SpeedOfLight MemoryWorkloadAnalysis MemoryWorkloadAnalysis_Chart MemoryWorkloadAnalysis_Tables LaunchStats "
    "Occupancy SchedulerStats WarpStateStats"
).split()
KEPT_OPCODES = re.compile(r"(LD|ST|ATOM|RED|BAR|SHFL|VOTE|MATCH|WARPSYNC|MEMBAR|SYNCS|UBLK|UTMA|UCGABAR)")


class Locked(Unusable):
    """The driver shows the counters to the administrator only: no other run would say more."""


class Ncu:
    """Nsight Compute with a time limit for all its runs together; .missing holds the metrics that it does not know."""

    def __init__(self, work, seconds, cold):
        """cold: empty the caches before each replay, which is ncu's default. Logs go to the folder work."""
        newest_first = sorted(glob.glob("/opt/nvidia/nsight-compute/*/"), reverse=True)
        self.path = machine.find("ncu", NO_NCU, "", *newest_first)
        self.work, self.seconds, self.end, self.missing = work, seconds, time.monotonic() + seconds, set()
        self.options = ["--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
        self.options += [] if cold else ["--cache-control", "none"]
        self.caches = "emptied before each replay (--cache-control all)" if cold else "as found (--cache-control none)"

    def run(self, metrics, command, name):
        left = self.end - time.monotonic()
        if left < 3:
            raise Unusable(f"{name}: no time was left for it, {self.seconds} seconds are over")
        details = ["--print-metric-instances", "details"] if OPCODES in metrics else []
        try:
            done = machine.run(
                self.path, *self.options, "--metrics", ",".join(metrics), *details, *command, timeout=left
            )
        except subprocess.TimeoutExpired:
            raise Unusable(f"{name}: ncu was not done after {left:.0f} seconds")
        output = done.stdout.decode(errors="replace")
        (self.work / f"{name.replace('/', '_')}.log").write_text(output, encoding="utf-8")
        return done.returncode, output

    def launches(self, wanted, command, name):
        """[(kernel, {metric: (unit, value)})] of the command, in its order; none if the program says that its stage is
        skipped. A metric that this ncu or this GPU does not know ends some versions: it is left out, and the others are
        asked for once more."""
        metrics = [metric for metric in wanted if metric not in self.missing]
        while True:
            code, output = self.run(metrics, command, name)
            if "ERR_NVGPUCTRPERM" in output:
                raise Locked(LOCKED)
            found = parse(output, wanted)
            if code == 0 and found:
                return found
            if code == 0 and re.search(r"^\w+ skipped: ", output, re.MULTILINE):
                return []
            complaints = [line for line in output.splitlines() if re.match(r"==(ERROR|WARNING)==", line)]
            unknown = [metric for metric in metrics if names_it(complaints, metric)]
            unknown = unknown or (self.not_listed(metrics) if code else [])
            if not unknown or len(unknown) == len(metrics):
                said = "\n  ".join(complaints or output.strip().splitlines()[-5:])
                raise Unusable(f"{name}: ncu gave no counters (exit code {code}):\n  {said}\n{STORED}")
            self.missing.update(unknown)
            metrics = [metric for metric in metrics if metric not in unknown]

    def details(self, command, name):
        """The sections of a report on the command's launches, without rooflines, as ncu prints them. The report itself,
        which ncu's window opens, is left in the work folder."""
        report = self.work / f"{name.replace('/', '_')}.ncu-rep"
        counted = ["--set", "full", "--clock-control", "none", "--force-overwrite", "--export", report]
        done = machine.run(self.path, *counted, *command, timeout=max(self.end - time.monotonic(), 3))
        if done.returncode == 0 and report.is_file():
            printed = ["--import", report, "--page", "details", "--print-details", "all"]
            done = machine.run(self.path, *printed, timeout=60)
        text = done.stdout.decode(errors="replace")
        if done.returncode or not report.is_file():
            raise Unusable(f"{name}: ncu printed no report (exit code {done.returncode}):\n{text}")
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines() if not line.startswith("["))
        return ROOFLINES.sub("", text).lstrip("\n")

    def report(self, command, name, metrics):
        """The path of a report, for ncu's window and for the Python package ncu-report: the sections that the course
        reads, and these counters."""
        report = self.work / f"{name.replace('/', '_')}_short.ncu-rep"
        sections = [word for section in SECTIONS for word in ("--section", section)]
        counted = [*sections, "--metrics", ",".join(metric for metric in metrics if metric not in self.missing)]
        exported = ["--clock-control", "none", "--force-overwrite", "--export", report]
        done = machine.run(self.path, *counted, *exported, *command, timeout=max(self.end - time.monotonic(), 3))
        if done.returncode or not report.is_file():
            said = done.stdout.decode(errors="replace")
            raise Unusable(f"{name}: ncu exported no report (exit code {done.returncode}):\n{said}")
        return report

    def not_listed(self, metrics):
        """The metrics that this GPU lacks; asked only if ncu does not say which it does not know."""
        listed = machine.output_of(self.path, "--query-metrics", "--query-metrics-collection", "profiling")
        names = set(re.findall(r"^\s*([a-z]\w+)", listed, re.MULTILINE))
        return [metric for metric in metrics if names and "__" in metric and metric.split(".")[0] not in names]

    def facts(self, gpu):
        found = re.search(r"Version ([\d.]+)", machine.output_of(self.path, "--version"))
        return {
            "GPU": gpu,
            "driver": machine.query("driver_version"),
            "Nsight Compute": found.group(1) if found else "unknown version",
            "clocks": "as found (--clock-control none)",
            "caches": self.caches,
            "date": datetime.date.today().isoformat(),
        }


def names_it(lines, metric):
    return any(re.search(rf"(?<![\w.]){re.escape(metric)}(?!\w|\.\w)", line) for line in lines)


def is_number(text):
    try:
        return float(text) == float(text)
    except ValueError:
        return False


def parse(output, wanted):
    """The launches in ncu's raw CSV, which is among other lines: a line of names, one of units, one per launch."""
    lines = list(csv.reader(line for line in output.splitlines() if line.startswith('"')))
    if len(lines) < 3 or "Kernel Name" not in lines[0] or any(len(line) != len(lines[0]) for line in lines):
        return []
    names, units, launches = lines[0], dict(zip(lines[0], lines[1])), []
    for cells in lines[2:]:
        row = dict(zip(names, cells))
        values = {metric: (units[metric], value_of(metric, row[metric])) for metric in wanted if metric in row}
        values = {metric: cell for metric, cell in values.items() if metric == OPCODES or is_number(cell[1])}
        launches.append((kernel_name(row["Kernel Name"]), values))
    return launches if any(values for _, values in launches) else []


def value_of(metric, text):
    # "8 (0x7f80: 4; 0x7fa0: 4)": the counts of single instructions matter only where they have names
    return opcodes(text) if metric == OPCODES else text.split(" (")[0].replace(",", "")


def kernel_name(said):
    """ncu's "void tiled::kernel<(int)128>(const float *, int)" -> "kernel"."""
    found = re.match(r"(?:[\w ]+ )?([\w:]+)", re.sub(r"<unnamed>::|\(anonymous namespace\)::", "", said))
    return found.group(1).split("::")[-1] if found else said


def opcodes(text):
    """ "9 (BAR: 3; LDG: 1)" -> "BAR 3, LDG 1"; a text of another form stays as it is."""
    found = re.findall(r"\b([A-Z][A-Z0-9_.]*)\s*[:=]\s*(\d+)", text.replace(",", ""))
    return ", ".join(f"{name} {count}" for name, count in sorted(found) if KEPT_OPCODES.match(name)) if found else text


def added(old, new):
    """Two launches' values of a counter together."""
    if is_number(old) and is_number(new):
        total = float(old) + float(new)
        return str(int(total)) if total == int(total) else str(total)
    counts = {}
    for name, count in re.findall(r"(\S+) (\d+)", f"{old}, {new}".replace(",", " ")):
        counts[name] = counts.get(name, 0) + int(count)
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def together(launches):
    """{metric: (unit, value)} of all launches: sums are added up, all other values are those of the longest launch."""
    longest = max(launches, key=lambda launch: float(launch[1].get(DURATION, ("", "0"))[1]))[1]
    values = dict(longest)
    for _, others in launches:
        for metric, (unit, value) in others.items():
            if others is not longest and (metric.endswith(".sum") or metric == OPCODES or metric not in values):
                values[metric] = (unit, added(values[metric][1], value)) if metric in values else (unit, value)
    return values


def rows_of(names, values):
    """The lines of a stored file: a counter that was not read is listed as missing."""
    cells = {metric: values.get(metric, ("", MISSING)) for metric in names}
    return [[name, metric, *cells[metric]] for metric, name in names.items()]


def about(stage, launches, given, facts):
    """The first lines of a stored file: what was counted, and where."""
    kernels = ", ".join(dict.fromkeys(kernel for kernel, _ in launches))
    said = {"stage": stage.name, "kernel": kernels, "input": given}
    if len(launches) > 1:
        said["launches"] = f"{len(launches)}: sums are of all of them, all else is of the longest"
    return [[name, "", "", value] for name, value in {**said, **facts}.items()]
