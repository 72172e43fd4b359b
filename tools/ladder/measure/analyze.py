"""Counts what a stage asks of memory, line by line, and looks for races; needs no GPU.

One stage, or a ladder's or lecture's own program, is built for the CPU device, run once and reported. With all, or
LADDER/all, simt/analyze looks at one run of each stage on the ladder's input to analyze; <ladder>/<stage>.csv and
environment.txt go to profiling_results/cpu_device, and make readme puts them into the pages.
"""

import concurrent.futures
import os
import pathlib
import shutil

from ..core import ladders, machine, results, stage
from ..core.ladders import Unusable, options


def arguments(parser):
    parser.add_argument("stage", metavar="STAGE|LADDER|all", help="05, vector/05, vector/all or all")
    parser.add_argument(
        "--results", default="", metavar="DIRECTORY", help="where all are stored, not in profiling_results"
    )


def make(*words):
    if machine.make("--no-print-directory", *words):
        raise Unusable("the build failed, see above")


def count(of, work, out):
    """Writes the stage's CSV and says so; what the program says is shown only if something is wrong."""
    ladder, target = of.ladder, out / of.ladder.id / f"{of.name}.csv"
    program = ladders.ROOT / "build/analyze" / ladder.path / ladder.program
    words = ["--program", program, "--root", ladders.ROOT, "--csv", target, "--", *of.option, "--profile"]
    machine.measure(of.id, work, 600, ladders.ROOT / "simt/analyze", *words, *options(ladder.analyze))
    if results.read(target):
        return f"analyze: {of.id}"
    target.unlink()
    return f"analyze: {of.id} has no kernel, and no file"


def compute(ladder, work, out):
    """Writes the tables of the ladder's experiments that need no GPU, without what changes from day to day."""
    program = ladders.ROOT / "build/cpu" / ladder.path / ladder.program
    machine.measure(f"{ladder.id}'s experiments", work, 600, program, "--no-small", "--csv-dir", work / ladder.id)
    for name in ladder.computed:
        rows = results.read(work / ladder.id / f"{name}.csv")
        kept = [column for column in rows[0] if column not in results.OF_THE_RUN or column == "gpu"]
        results.write_csv(out / ladder.id / f"{name}.csv", kept, [[row[column] for column in kept] for row in rows])
    print(f"analyze: {ladder.id}: {', '.join(ladder.computed)}", flush=True)


def compiler():
    """Which g++ compiled; 12, 13 and 14 keep the same loads."""
    return machine.output_of(*(os.environ.get("CXX") or "g++").split(), "-dumpversion")


def run(given):
    asked, slash, all_of = given.stage.rpartition("/")
    if all_of != "all":
        return stage.start(given.stage, "analyze")
    stages = [one for one in ladders.stages_of(asked or "all") if not one.is_left_out]
    work, out = machine.workplace(f"analyze_all/{os.getpid()}")  # two of these may run at the same time
    of_stages = list(dict.fromkeys(one.ladder for one in stages))
    for ladder in of_stages:
        if not ladder.analyze:
            raise Unusable(f"{ladder.path}/ladder.json has no input to analyze")
        (out / ladder.id).mkdir()
    computing = [ladder for ladder in of_stages if ladder.computed]
    for target, those in (("program", computing), ("analyzed", of_stages)):
        make(f"-j{machine.cores()}", "BACKEND=cpu", "libs", *(f"{ladder.path}/{target}" for ladder in those))
    for ladder in computing:
        compute(ladder, work, out)
    with concurrent.futures.ThreadPoolExecutor(machine.cores()) as pool:
        for done in pool.map(lambda one: count(one, work, out), stages):
            print(done, flush=True)
    (out / results.ENVIRONMENT).write_text(f"g++: {compiler()}\n", encoding="utf-8")
    target = pathlib.Path(given.results).absolute() if given.results else results.store() / results.CPU_DEVICE
    results.publish(out, target)
    shutil.rmtree(work)
    print(f"analyze: stored in {results.shown(target)}; make readme puts them into the pages")
