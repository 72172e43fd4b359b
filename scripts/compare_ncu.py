#!/usr/bin/env python3
"""Asks a GPU what the analysis of simt/ computes: compare_ncu.py [DIRECTORY], and compare_ncu.py --table [GPU].

On a machine with a GPU: builds simt/tests/analysis/known_answers.cu and the matrix ladder with nvcc, and lets Nsight
Compute count the memory traffic of every known answer and of every stage on 64 x 8192. To DIRECTORY, by default
profiling_results/<gpu>, go known_answers_ncu.csv (a line a kernel), known_answers_ncu.txt (where it was measured) and
ncu_64x8192/<stage>.csv. It takes about a minute; a counter that this GPU or this ncu lacks stands there as missing.
--table needs no GPU: it prints the stored counts of the known answers beside known_answers.csv, which the tests hold the
analysis to.
"""

import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import profile_stage
import results
from counters import MISSING
from results import LADDER, PROGRAM, ROOT, Unusable

ANSWERS = ROOT / "simt/tests/analysis/known_answers.cu"
WORK = ROOT / "build/compare_ncu"
SHAPE = ("--rows", "64", "--cols", "8192")
BUDGET = 85  # seconds; what does not fit is named and left out

# What the hardware counts, and what patched instructions count, of the known answers. ncu's name -> a readable name.
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
INSTRUCTIONS = "smsp__inst_executed_op_shared_{}.sum"
WORDS = {"ld": "load", "st": "store", "atom": "atomic", "red": "reduction"}
HARDWARE = {
    **{REQUESTS.format(op): f"global {word} requests" for op, word in WORDS.items()},
    **{SECTORS.format(op): f"sectors of global {word}s" for op, word in WORDS.items()},
    **{WAVEFRONTS.format(op): f"wavefronts of shared {WORDS[op]}s" for op in ("ld", "st", "atom")},
    **{CONFLICTS.format(op): f"bank conflicts of shared {WORDS[op]}s" for op in ("ld", "st", "atom")},
    **{INSTRUCTIONS.format(op): f"shared {WORDS[op]} instructions" for op in ("ld", "st", "atom")},
    "smsp__inst_executed.sum": "instructions executed",
}
OPCODES = "sass__inst_executed_per_opcode"
PATCHED = {
    "smsp__sass_inst_executed_op_global_ld.sum": "global load instructions",
    "smsp__sass_inst_executed_op_global_st.sum": "global store instructions",
    "smsp__sass_inst_executed_op_shared_ld.sum": "shared load instructions, patched",
    "smsp__sass_inst_executed_op_shared_st.sum": "shared store instructions, patched",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": "wavefronts of shared loads, patched",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum": "wavefronts of shared stores, patched",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum": "sectors of global loads, patched",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_st.sum": "sectors of global stores, patched",
    "smsp__sass_data_bytes_mem_global_op_ld.sum": "bytes asked by global loads",
    "smsp__sass_data_bytes_mem_global_op_st.sum": "bytes asked by global stores",
    "memory_l1_wavefronts_shared": "wavefronts of shared memory",
    "memory_l1_wavefronts_shared_ideal": "wavefronts of shared memory without conflicts",
    "memory_l2_theoretical_sectors_global": "theoretical sectors of global memory",
    "memory_l2_theoretical_sectors_global_ideal": "theoretical sectors of global memory at best",
    OPCODES: "instructions by opcode",
}
OPERATIONS = {"block_barrier": "BAR", "shuffle": "SHFL", "vote": "VOTE"}  # __syncwarp of a whole warp is none
TOLD = re.compile(r"(LD|ST|ATOM|RED|BAR|SHFL|VOTE|MATCH|WARPSYNC|MEMBAR|SYNCS|UBLK|UTMA|UCGABAR)")  # of the opcodes


class Ncu:
    """Nsight Compute with a time limit for all its runs together."""

    def __init__(self):
        self.path = profile_stage.find_ncu()
        self.end = time.monotonic() + BUDGET
        self.missing = set()

    def run(self, metrics, command, log):
        left = self.end - time.monotonic()
        if left < 3:
            raise Unusable(f"{log}: no time was left for it, {BUDGET} seconds are over")
        call = [self.path, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
        call += ["--cache-control", "none", "--metrics", ",".join(metrics)]
        call += ["--print-metric-instances", "details"] if OPCODES in metrics else []
        try:
            done = subprocess.run(call + command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=left)
        except subprocess.TimeoutExpired:
            raise Unusable(f"{log}: ncu was not done after {left:.0f} seconds")
        output = done.stdout.decode(errors="replace")
        (WORK / f"{log}.log").write_text(output, encoding="utf-8")
        return done.returncode, output

    def counts(self, wanted, command, log):
        """{kernel: {metric: value}}, launches summed; metrics that ncu does not know are left out."""
        metrics = [metric for metric in wanted if metric not in self.missing]
        while metrics:
            code, output = self.run(metrics, command, log)
            if "ERR_NVGPUCTRPERM" in output:
                raise Unusable(profile_stage.LOCKED)
            kernels = read_launches(output)
            if code == 0 and kernels:
                return kernels
            complaints = [line for line in output.splitlines() if re.match(r"==(ERROR|WARNING)==", line)]
            unknown = [metric for metric in metrics if profile_stage.names_it(complaints, metric)]
            unknown = unknown or self.not_listed(metrics)
            if not unknown or len(unknown) == len(metrics):
                said = "\n  ".join(complaints or output.strip().splitlines()[-5:])
                raise Unusable(f"{log}: ncu gave no counters (exit code {code}):\n  {said}")
            self.missing.update(unknown)
            metrics = [metric for metric in metrics if metric not in unknown]
        return {}

    def not_listed(self, metrics):
        """Those that ncu --query-metrics does not list for this GPU; asked only where ncu does not say what it lacks."""
        query = [self.path, "--query-metrics", "--query-metrics-collection", "profiling"]
        try:
            listed = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20).stdout.decode()
        except subprocess.TimeoutExpired:
            return []
        names = set(re.findall(r"^\s*([a-z]\w+)", listed, re.MULTILINE))
        return [metric for metric in metrics if "__" in metric and metric.split(".")[0] not in names]


def short_name(kernel):
    """ncu's "void tiled::kernel<(int)128>(const float *, int)" -> "kernel"."""
    found = re.match(r"(?:[\w ]+ )?([\w:]+)", re.sub(r"<unnamed>::|\(anonymous namespace\)::", "", kernel))
    return found.group(1).split("::")[-1] if found else kernel


def opcodes(text):
    """"9 (BAR: 3; LDG: 1)" -> "BAR 3, LDG 1"; the text itself where it reads otherwise."""
    found = re.findall(r"\b([A-Z][A-Z0-9_.]*)\s*[:=]\s*(\d+)", text.replace(",", ""))
    return ", ".join(f"{name} {count}" for name, count in sorted(found) if TOLD.match(name)) if found else text


def add(old, new):
    """Two launches' values of a counter together."""
    if old is None:
        return new
    if profile_stage.is_number(old) and profile_stage.is_number(new):
        total = float(old) + float(new)
        return str(int(total)) if total == int(total) else str(total)
    counts = {}
    for name, count in re.findall(r"(\S+) (\d+)", f"{old}, {new}".replace(",", " ")):
        counts[name] = counts.get(name, 0) + int(count)
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def read_launches(output):
    """ncu's raw CSV, which stands among other lines: a line of names, one of units, one a launch."""
    lines = list(csv.reader(line for line in output.splitlines() if line.startswith('"')))
    if len(lines) < 3 or "Kernel Name" not in lines[0]:
        return {}
    names, kernels = lines[0], {}
    for cells in lines[2:]:
        if len(cells) != len(names):
            continue
        row = dict(zip(names, cells))
        counters = kernels.setdefault(short_name(row["Kernel Name"]), {})
        for metric in {*HARDWARE, *PATCHED} & row.keys():
            # "8 (0x7f80: 4; 0x7fa0: 4)": the counts of single instructions matter only where they have names
            value = opcodes(row[metric]) if metric == OPCODES else row[metric].split(" (")[0].replace(",", "")
            counters[metric] = add(counters.get(metric), value)
    return kernels


def measured(row, counters):
    """{count: what ncu counted} for a row of known_answers.csv; None where it has no counter for it."""

    def total(template, ops):
        values = [counters[template.format(op)] for op in ops]
        return sum(map(int, values)) if MISSING not in values else None

    if not row["space"]:  # a barrier or a shuffle: known by its opcode
        found = re.findall(r"([A-Z]+)[A-Z0-9_.]* (\d+)", counters[OPCODES])
        wanted = OPERATIONS.get(row["kind"])
        return {"requests": sum(int(count) for name, count in found if name == wanted) if wanted and found else None}
    ops = {"load": ["ld"], "store": ["st"], "atomic": ["atom"]}[row["kind"]]
    if row["space"] == "shared":
        counts = {"requests": INSTRUCTIONS, "wavefronts": WAVEFRONTS, "conflicts": CONFLICTS}
        return {count: total(template, ops) for count, template in counts.items()}
    ops = ["atom", "red"] if ops == ["atom"] else ops
    return {"requests": total(REQUESTS, ops), "sectors": total(SECTORS, ops)}


def beside(folder):
    """(kernel, kind, count, known, measured) for every count of known_answers.csv that ncu has a counter for."""
    answers = {row["kernel"]: row for row in results.read(folder / "known_answers_ncu.csv", ["kernel", OPCODES])}
    for row in results.read(ANSWERS.with_suffix(".csv"), ["kernel", "space", "kind", "requests"]):
        if row["kernel"] in answers:
            what = f"{row['space']} {row['kind']}".strip()
            for count, value in measured(row, answers[row["kernel"]]).items():
                if value is not None:
                    yield row["kernel"], what, count, int(row[count]), value


def print_table(gpu):
    folder = results.stored(gpu)
    if not folder or not (folder / "known_answers_ncu.csv").is_file():
        raise Unusable("no known_answers_ncu.csv is stored; compare_ncu.py writes it on a machine with a GPU")
    print(f"{'kernel':38} {'what':14} {'count':10} {'known':>8} {folder.name:>8}")
    rows = list(beside(folder))
    for kernel, what, count, known, there in rows:
        print(f"{kernel:38} {what:14} {count:10} {known:8} {there:8}{'' if known == there else '  differs'}")
    print(f"{sum(known == there for *_, known, there in rows)} of {len(rows)} counts are the same")
    return 0


def find_nvcc():
    beside = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin/nvcc"
    for candidate in (os.environ.get("NVCC"), shutil.which("nvcc"), str(beside)):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise Unusable("no nvcc on PATH, in $CUDA_HOME/bin or in /usr/local/cuda/bin; install NVIDIA's CUDA toolkit")


def build_all():
    """The program of known answers, and the ladder, at the same time."""
    program = WORK / "known_answers"
    command = [find_nvcc(), "-O3", "-std=c++17", "-lineinfo", "-arch=native", str(ANSWERS), "-o", str(program)]
    answers = subprocess.Popen(command)
    try:
        results.build(f"{LADDER}/program")
    finally:
        failed = answers.wait()
    if failed:
        raise Unusable(f"nvcc cannot build {results.shown(ANSWERS)}, see above")
    return program


def ask(ncu, command, runs, notes):
    """What ncu counts in these runs, (metrics, name of the log), {kernel: {metric: value}}."""
    kernels = {}
    for wanted, name in runs:
        try:
            for kernel, counters in ncu.counts(wanted, command, name).items():
                kernels.setdefault(kernel, {}).update(counters)
        except Unusable as error:
            if str(error) == profile_stage.LOCKED:
                raise
            notes.append(str(error))
    return kernels


def names_of_answers():
    """The kernels of known_answers.csv, in its order."""
    return list(dict.fromkeys(row["kernel"] for row in results.read(ANSWERS.with_suffix(".csv"), ["kernel"])))


def measure_answers(ncu, program, out, facts, notes):
    runs = ((HARDWARE, "known_answers"), (PATCHED, "known_answers-patched"))
    kernels = ask(ncu, [str(program)], runs, notes)
    if not kernels:
        return 0
    metrics = [*HARDWARE, *PATCHED]
    rows = [[name, *(counters.get(metric) or MISSING for metric in metrics)] for name, counters in kernels.items()]
    results.write_csv(out / "known_answers_ncu.csv", ["kernel", *metrics], rows)
    lines = [f"{name}: {value}" for name, value in facts.items()]
    (out / "known_answers_ncu.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    absent = [name for name in names_of_answers() if name not in kernels]
    if absent:
        notes.append(f"known answers that ncu did not see: {', '.join(absent)}")
    return len(kernels)


def measure_stage(ncu, stage, out, facts, notes):
    command = [str(PROGRAM), "--profile", "--stage", stage, *SHAPE]
    kernels = ask(ncu, command, [(HARDWARE, stage)], notes)
    if not kernels:
        return False
    counters = {}
    for one in kernels.values():
        for metric, value in one.items():
            counters[metric] = add(counters.get(metric), value)
    about = {"stage": stage, "kernel": ", ".join(kernels), "input": "64 x 8192 float32, weight, one launch", **facts}
    rows = [[name, "", "", value] for name, value in about.items()]
    for metric, name in HARDWARE.items():
        rows.append([name, metric, "", counters.get(metric) or MISSING])
    results.write_csv(out / f"{stage}.csv", profile_stage.HEADER, rows)
    return True


def measure(folder):
    gpu = results.gpu_here()
    if not gpu:
        print("compare_ncu: nvidia-smi shows no GPU here, so there is nothing to measure; see --table")
        return 0
    shutil.rmtree(WORK, ignore_errors=True)
    out, stages_out = WORK / "out", WORK / "out/ncu_64x8192"
    stages_out.mkdir(parents=True)
    start, notes = time.monotonic(), []
    ncu = Ncu()
    program = build_all()
    print(f"built in {time.monotonic() - start:.0f} s", flush=True)
    facts = profile_stage.facts(ncu.path, gpu)
    facts = {**facts, "caches": "as found (--cache-control none)", "input": "one warp a kernel, see known_answers.cu"}
    answers = measure_answers(ncu, program, out, facts, notes)
    print(f"{answers} known answers, {time.monotonic() - start:.0f} s", flush=True)
    stages = profile_stage.find_stages("all")
    del facts["input"]
    done = [stage for stage in stages if measure_stage(ncu, stage, stages_out, facts, notes)]
    print(f"{len(done)} of {len(stages)} stages, {time.monotonic() - start:.0f} s")
    if ncu.missing:
        print(f"missing here: {', '.join(sorted(ncu.missing))}")
    for note in notes:
        print(f"left out: {note}")
    target = pathlib.Path(folder).absolute() if folder else results.STORE / results.slug(gpu)
    if done:
        results.publish(stages_out, target / "ncu_64x8192")
    shutil.rmtree(stages_out)
    if answers:
        results.publish(out, target)
    print(f"compare_ncu: stored in {results.shown(target)}; logs are in {results.shown(WORK)}")
    return 0 if answers and len(done) == len(stages) else 1


def main(arguments):
    table = arguments[:1] == ["--table"]
    arguments = arguments[1:] if table else arguments
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print("usage: compare_ncu.py [DIRECTORY], or compare_ncu.py --table [GPU]", file=sys.stderr)
        return 2
    try:
        return (print_table if table else measure)(arguments[0] if arguments else "")
    except Unusable as error:
        print(f"compare_ncu: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ncompare_ncu: interrupted; nothing was stored", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
