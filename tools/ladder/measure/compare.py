"""Asks a GPU what the analysis of simt/ computes, or prints what was stored of it.

On a machine with a GPU: builds simt/tests/analysis/known_answers.cu and the ladders with nvcc, and lets Nsight Compute
count the memory traffic of every known answer and of every stage on the input of make analyze. To
profiling_results/<gpu>/ go known_answers_ncu.csv (a line a kernel), known_answers_ncu.txt (where it was measured) and
<ladder>/ncu_small/<stage>.csv. It takes three seconds per stage; a counter that this GPU or this ncu lacks stands there as
missing. --table needs no GPU: it prints the stored counts of the known answers beside known_answers.csv, which the
tests hold the analysis to.
"""

import re
import subprocess
import time

from ..core import ladders, machine, results
from ..core.ladders import Unusable, options
from . import ncu
from .counters import CONFLICTS, HARDWARE, MISSING, OPCODES, PATCHED, REQUESTS, SECTORS, SHARED, WAVEFRONTS

ANSWERS = "simt/tests/analysis/known_answers"
ANSWERS_CSV = "known_answers_ncu.csv"
SECONDS = 900  # for all runs of ncu, 3 a stage; what does not fit is named and left out
OPERATIONS = {"block_barrier": "BAR", "shuffle": "SHFL", "vote": "VOTE"}  # __syncwarp of a whole warp is none


def arguments(parser):
    parser.add_argument("--table", action="store_true", help="print the stored counts beside the known ones")
    parser.add_argument("--gpu", default="", help="of which GPU --table is; by default the H200")
    parser.add_argument(
        "--results", default="", metavar="DIRECTORY", help="where to store, instead of profiling_results/<gpu>"
    )


def known(columns=("kernel",)):
    return results.read(ladders.ROOT / f"{ANSWERS}.csv", columns)


def counted(row, counters):
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
        templates = {"requests": SHARED, "wavefronts": WAVEFRONTS, "conflicts": CONFLICTS}
        return {count: total(template, ops) for count, template in templates.items()}
    ops = ["atom", "red"] if ops == ["atom"] else ops
    return {"requests": total(REQUESTS, ops), "sectors": total(SECTORS, ops)}


def beside(folder):
    """(kernel, kind, count, known, measured) for every count of known_answers.csv that ncu has a counter for."""
    answers = {row["kernel"]: row for row in results.read(folder / ANSWERS_CSV, ["kernel", OPCODES])}
    for row in known(["kernel", "space", "kind", "requests"]):
        if row["kernel"] in answers:
            what = f"{row['space']} {row['kind']}".strip()
            for count, value in counted(row, answers[row["kernel"]]).items():
                if value is not None:
                    yield row["kernel"], what, count, int(row[count]), value


def print_table(gpu):
    folder = results.stored(gpu)
    if not folder or not (folder / ANSWERS_CSV).is_file():
        raise Unusable(f"no {ANSWERS_CSV} is stored; python3 -m ladder compare writes it on a machine with a GPU")
    print(f"{'kernel':38} {'what':14} {'count':10} {'known':>8} {folder.name:>8}")
    rows = list(beside(folder))
    for kernel, what, count, known, there in rows:
        print(f"{kernel:38} {what:14} {count:10} {known:8} {there:8}{'' if known == there else '  differs'}")
    print(f"{sum(known == there for *_, known, there in rows)} of {len(rows)} counts are the same")


def build(work, climbed):
    """The program of known answers, and the ladders' at the same time."""
    program = work / "known_answers"
    command = [
        machine.find_nvcc(),
        "-O3",
        "-std=c++17",
        "-lineinfo",
        "-arch=native",
        f"{ANSWERS}.cu",
        "-o",
        str(program),
    ]
    answers = subprocess.Popen(command, cwd=ladders.ROOT)
    try:
        machine.build(*(f"{ladder.path}/program" for ladder in climbed))
    finally:
        failed = answers.wait()
    if failed:
        raise Unusable(f"nvcc cannot build {ANSWERS}.cu, see above")
    return program


def count_answers(profiler, program, out, facts, notes):
    """Stores what ncu counts of the known answers; how many of them."""
    kernels = {}
    for wanted, name in ((HARDWARE, "known_answers"), (PATCHED, "known_answers_patched")):
        try:
            for kernel, values in profiler.launches(list(wanted), [program], name):
                kernels.setdefault(kernel, []).append((kernel, values))
        except ncu.Locked:
            raise
        except Unusable as error:
            notes.append(str(error))
    if kernels:
        metrics = [*HARDWARE, *PATCHED]
        values = {kernel: ncu.together(launches) for kernel, launches in kernels.items()}
        table = [
            [kernel, *(of[metric][1] if metric in of else MISSING for metric in metrics)]
            for kernel, of in values.items()
        ]
        results.write_csv(out / ANSWERS_CSV, ["kernel", *metrics], table)
        said = {**facts, "input": "one warp a kernel, see known_answers.cu"}
        (out / "known_answers_ncu.txt").write_text("".join(f"{name}: {value}\n" for name, value in said.items()))
        absent = [name for name in dict.fromkeys(row["kernel"] for row in known()) if name not in kernels]
        notes += [f"known answers that ncu did not see: {', '.join(absent)}"] if absent else []
    return len(kernels)


def count_stage(profiler, stage, out, facts, notes):
    given = stage.ladder.analyze
    command = [machine.program(stage.ladder), "--profile", *stage.option, *options(given)]
    try:
        launches = profiler.launches(list(HARDWARE), command, stage.id)
    except ncu.Locked:
        raise
    except Unusable as error:
        notes.append(str(error))
        return False
    if not launches:
        notes.append(f"{stage.id}: skipped, as its program says")
        return False
    target = out / stage.ladder.id / f"ncu_small/{stage.name}.csv"
    target.parent.mkdir(parents=True, exist_ok=True)
    first = ncu.about(stage, launches, f"{stage.ladder.described(given, ' x ')}, one run", facts)
    results.write_csv(target, ncu.HEADER, first + ncu.rows_of(HARDWARE, ncu.together(launches)))
    return True


def run(given):
    if given.table:
        return print_table(given.gpu)
    gpu = machine.gpu()
    if not gpu:
        return machine.no_gpu("compare", "python3 -m ladder compare --table prints what is stored, and needs no GPU.")
    work, out = machine.workplace("compare")
    stages, notes = ladders.stages_of("all"), []
    start = time.monotonic()
    ncu.Ncu(work, SECONDS, cold=False)  # before the build, since it says what is missing
    program = build(work, dict.fromkeys(stage.ladder for stage in stages))
    profiler = ncu.Ncu(work, SECONDS, cold=False)
    facts = profiler.facts(gpu)
    answers = count_answers(profiler, program, out, facts, notes)
    print(f"{answers} known answers, {time.monotonic() - start:.0f} s", flush=True)
    done = [stage for stage in stages if count_stage(profiler, stage, out, facts, notes)]
    print(f"{len(done)} of {len(stages)} stages, {time.monotonic() - start:.0f} s")
    if profiler.missing:
        print(f"missing here: {', '.join(sorted(profiler.missing))}")
    for note in notes:
        print(f"left out: {note}")
    target = results.target(given.results, gpu)
    results.publish(out, target)
    print(f"compare: stored in {results.shown(target)}; logs are in {results.shown(work)}")
    return 0 if answers and len(done) == len(stages) else 1
