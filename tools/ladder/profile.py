"""Reads the hardware counters of one stage, of all stages of a ladder, or of all ladders.

Nsight Compute (ncu) looks at one run of the stage's kernels on the ladder's main input and replays each launch until
every counter has been read. They go to profiling_results/<gpu>/<ladder>/ncu/<stage>.csv: name, ncu's name, unit and
value, one counter a line; a counter that this GPU or this ncu lacks stands there as missing. Clocks are left as found
(--clock-control none); before each replay the caches are emptied (ncu's default, --cache-control all).
"""

import shutil

from . import ladders, machine, ncu, results
from .counters import COUNTERS, DURATION, MISSING

SECONDS = 600  # a ladder; what does not fit ends the job


def arguments(parser):
    parser.add_argument("stage", metavar="STAGE|LADDER|all", help="whose counters: 05, vector/05, vector or all")
    parser.add_argument(
        "--results", default="", metavar="DIRECTORY", help="where to store, instead of profiling_results/<gpu>"
    )


def summary(stage, rows):
    time = next(row for row in rows if row[1] == DURATION)
    missing = [row[1] for row in rows if row[3] == MISSING]
    said = f"{stage.id}: {time[3]} {time[2]}".strip() + f", {len(rows) - len(missing)} counters"
    return said + (f"; missing: {', '.join(missing)}" if missing else "")


def run(given):
    stages = ladders.stages_of(given.stage)
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
        (out / ladder.id / "ncu").mkdir(parents=True)
        for stage in [stage for stage in stages if stage.ladder == ladder]:
            command = [machine.program(ladder), "--profile", *stage.option]
            launches = profiler.launches(list(COUNTERS), command, stage.id)
            rows = ncu.rows_of(COUNTERS, ncu.together(launches))
            first = ncu.about(stage, launches, f"{ladder.described(ladder.main, ' x ')}, one run", facts)
            results.write_csv(out / ladder.id / f"ncu/{stage.name}.csv", ncu.HEADER, first + rows)
            print(summary(stage, rows), flush=True)
        target = results.target(given.results, gpu)
        results.publish(out, target)
        shutil.rmtree(out / ladder.id)
        print(f"profile: stored in {results.shown(target / ladder.id / 'ncu')}")
