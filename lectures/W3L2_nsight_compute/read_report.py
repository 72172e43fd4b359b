#!/usr/bin/env python3
"""Asks the lesson's six questions of reports of Nsight Compute, or of the counters that the course stores as CSV.

    read_report.py FILE...     FILE.ncu-rep (needs the package ncu-report: pip install ncu-report) or FILE.csv

It needs no GPU. A counter that a file lacks is shown as a dash.
"""

import csv
import pathlib
import sys

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
LD, ST = ("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_" + op + ".ratio" for op in ("ld", "st"))
SHARED = {op: f"smsp__sass_inst_executed_op_shared_{op}.sum" for op in ("ld", "st")}
WAVEFRONTS = {op: f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")}
DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
OCCUPANCY, POSSIBLE = "sm__warps_active.avg.pct_of_peak_sustained_active", "sm__maximum_warps_per_active_cycle_pct"
LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"
LANES_ON = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
WAITS = "smsp__average_warp_latency_per_inst_issued.ratio"
REASONS = {
    "long_scoreboard": "data from global memory",
    "short_scoreboard": "data from shared memory",
    "barrier": "the other warps of the block, at a barrier",
    "lg_throttle": "room in the queue of global accesses",
    "mio_throttle": "room in the queue of shared accesses",
    "wait": "the fixed time of the instruction before",
    "math_pipe_throttle": "an arithmetic unit",
    "not_selected": "its turn",
    "no_instruction": "the next instruction to be fetched",
    "drain": "its last stores",
}


def of_report(path):
    """[(kernel, {metric: value})] of a .ncu-rep."""
    try:
        import ncu_report
    except ImportError:
        sys.exit(f"{path}: to read a report, install NVIDIA's package: pip install ncu-report")
    launches, ranges = [], ncu_report.load_report(str(path))
    for one in range(ranges.num_ranges()):
        actions = ranges.range_by_idx(one)
        for place in range(actions.num_actions()):
            action = actions.action_by_idx(place)
            metrics = {name: action.metric_by_name(name) for name in action.metric_names()}
            values = {name: metric.value() for name, metric in metrics.items() if metric.has_value()}
            launches.append((action.name(), values))
    if not launches:
        sys.exit(f"{path}: there is no kernel in it; is it a report of Nsight Compute?")
    return launches


def of_csv(path):
    """The same of a file of profiling_results/<gpu>/<ladder>/ncu/."""
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        rows = list(csv.DictReader(file))
    if not rows or not {"name", "metric", "value"} <= set(rows[0]):
        sys.exit(f"{path}: it has no counters; give a file that make profile has written into an ncu folder")
    kernel = next((row["value"] for row in rows if row["name"] == "kernel"), path.stem)
    values = {row["metric"]: float(row["value"]) for row in rows if row["metric"] and row["value"] != "missing"}
    return [(kernel, values)]


def answers(values):
    """[(question, what the counters say)] of one launch."""

    def shown(metric, unit="", digits=1):
        value = values.get(metric)
        return "-" if value is None else f"{value:.{digits}f}{unit}"

    def ratio(counts, requests):
        return f"{values[counts] / values[requests]:.1f}" if values.get(requests) and counts in values else "-"

    def bytes_of(metric):
        return f"{values[metric] / 1e6:.1f} MB" if metric in values else "-"

    cycles = {reason: values.get(STALL.format(reason)) or 0.0 for reason in REASONS}
    longest = max(cycles, key=cycles.get)
    busy = f"DRAM is busy {shown(DRAM, ' %')} of the time, the issue slots {shown(ISSUE, ' %')}"
    moved = f"{bytes_of('dram__bytes_read.sum')} read, {bytes_of('dram__bytes_write.sum')} written"
    sectors = f"{shown(LD)} sectors per load request, {shown(ST)} per store request"
    loads, stores = (ratio(WAVEFRONTS[op], SHARED[op]) for op in ("ld", "st"))
    wavefronts = f"{loads} wavefronts per load from shared memory, {stores} per store"
    lanes = f"{shown(LANES)} of 32 lanes active, {shown(LANES_ON)} not switched off"
    warps = f"{shown(OCCUPANCY, ' %')} of the places for warps taken, {shown(POSSIBLE, ' %')} possible"
    registers = f"{shown('launch__registers_per_thread', '', 0)} registers per thread"
    waits = f"{shown(WAITS)} cycles per instruction, {cycles[longest]:.1f} of them for {REASONS[longest]}"
    return [
        ("bound by memory?", f"{busy}; {moved}"),
        ("coalesced?", sectors),
        ("bank conflicts?", wavefronts if values.get(SHARED["ld"]) else "no loads from shared memory"),
        ("idle lanes?", lanes),
        ("enough in flight?", f"{warps}; {registers}"),
        ("waits for what?", waits + ("" if longest == "barrier" else f"; {cycles['barrier']:.1f} at barriers")),
    ]


def main(paths):
    if not paths or "--help" in paths:
        print(__doc__)
        return 0 if paths else 2
    for path in map(pathlib.Path, paths):
        if not path.is_file():
            sys.exit(f"{path}: there is no such file; make profile writes reports and counters")
        for kernel, values in of_csv(path) if path.suffix == ".csv" else of_report(path):
            print(f"{path.stem}: {kernel}")
            for number, (question, answer) in enumerate(answers(values), 1):
                print(f"  {number} {question:18} {answer}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
