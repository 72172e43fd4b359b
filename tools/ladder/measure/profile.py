"""Reads the hardware counters of one stage, of all stages of a ladder, or of all ladders.

Nsight Compute (ncu) looks at one run of the stage's kernels on the ladder's main input and replays each launch until
every counter has been read. They go to profiling_results/<gpu>/<ladder>/ncu/<stage>.csv: name, ncu's name, unit and
value, one counter a line; and, of the stages that a profile of ladder.json names, on its input too, to
<ladder>/ncu_<profile>/<stage>.csv. A counter that this GPU or this ncu lacks stands there as missing. Of the stages in
ladder.json's details, ncu's whole report without its rooflines goes to <ladder>/ncu_details/<stage>.txt as text; of
those in its reports, one of fewer sections goes to <ladder>/reports/<stage>.ncu-rep if it has at most 1,000,000 bytes;
it is made with the stage's own program, since a report contains the machine code of all kernels of a program.
Clocks are left as found (--clock-control none); before each replay the caches are emptied (ncu's default,
--cache-control all).
"""

import shutil

from ..core import ladders, machine, results
from ..core import stage as stage_of
from ..core.ladders import Unusable, options
from . import ncu
from .counters import COUNTERS, DURATION, MISSING

SECONDS = 600  # per ladder; the job ends if it takes longer
MOST_BYTES = 1_000_000  # of a stored report


def arguments(parser):
    parser.add_argument("stage", metavar="STAGE|LADDER|all", help="whose counters: 05, vector/05, vector or all")
    parser.add_argument(
        "--results", default="", metavar="DIRECTORY", help="where to store, instead of profiling_results/<gpu>"
    )


def inputs(stage):
    """(folder of the CSV, input) of everything that the stage is profiled on: the ladder's main input comes first."""
    profiles = {name: profile for name, profile in stage.ladder.profiles.items() if stage.name in profile.stages}
    return [("ncu", stage.ladder.main), *((f"ncu_{name}", profile.input) for name, profile in profiles.items())]


def command_of(stage):
    return [machine.program(stage.ladder), "--profile", *stage.option]


def own_command(stage):
    """Builds the stage's own program; the command that launches it for a profiler."""
    target, pattern, given = stage_of.target(stage)
    machine.build(target)
    (program,) = (ladders.ROOT / "build/cuda").glob(pattern)
    return [program, "--profile", *given.split()]


def summary(what, rows):
    time = next(row for row in rows if row[1] == DURATION)
    missing = [row[1] for row in rows if row[3] == MISSING]
    said = f"{what}: {time[3]} {time[2]}".strip() + f", {len(rows) - len(missing)} counters"
    return said + (f"; missing: {', '.join(missing)}" if missing else "")


def keep(report, folder, stage):
    """Stores a report, if it is small enough to stand in the repository."""
    size = report.stat().st_size
    if size > MOST_BYTES:
        where = results.shown(report)
        print(f"{stage.id}: its report has {size:,} bytes, more than {MOST_BYTES:,}, and is not stored: {where}")
        return
    (folder / "reports").mkdir(exist_ok=True)
    shutil.copyfile(report, folder / f"reports/{stage.name}.ncu-rep")


def run(given):
    # Nsight Compute lets one kernel run at a time: one that waits for another GPU's would wait forever.
    stages = [stage for stage in ladders.stages_of(given.stage) if stage.ladder.ranks == 1]
    if not stages:
        raise Unusable(
            f"{given.stage} runs on several GPUs, whose kernels wait for each other; no profiler can run one alone"
        )
    gpu = machine.gpu()
    if not gpu:
        return machine.no_gpu("profile", ncu.STORED)
    work, out = machine.workplace("profile")
    climbed = list(dict.fromkeys(stage.ladder for stage in stages))
    ncu.Ncu(work, SECONDS, cold=True)  # before the build, since it says what is missing
    machine.build(*(f"{ladder.path}/program" for ladder in climbed))
    for ladder in climbed:
        profiler = ncu.Ncu(work, SECONDS, cold=True)
        facts = profiler.facts(gpu)
        for stage in [stage for stage in stages if stage.ladder == ladder]:
            for folder, shape in inputs(stage):
                command = command_of(stage) + ([] if folder == "ncu" else options(shape))
                launches = profiler.launches(list(COUNTERS), command, f"{stage.id}_{folder}")
                if not launches:
                    print(f"{stage.id} on {ladder.described(shape)}: skipped, as its program says")
                    continue
                rows = ncu.rows_of(COUNTERS, ncu.together(launches))
                first = ncu.about(stage, launches, f"{ladder.described(shape, ' x ')}, one run", facts)
                target = out / ladder.id / folder / f"{stage.name}.csv"
                target.parent.mkdir(parents=True, exist_ok=True)
                results.write_csv(target, ncu.HEADER, first + rows)
                print(summary(f"{stage.id} on {ladder.described(shape)}", rows), flush=True)
            if stage.name in ladder.details:
                target = out / ladder.id / f"ncu_details/{stage.name}.txt"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(profiler.details(command_of(stage), stage.id), encoding="utf-8")
            if stage.name in ladder.reports:
                keep(profiler.report(own_command(stage), stage.id, COUNTERS), out / ladder.id, stage)
        target = results.target(given.results, gpu)
        results.publish(out, target)
        shutil.rmtree(out / ladder.id, ignore_errors=True)
        print(f"profile: stored in {results.shown(target / ladder.id)}")
