"""Measures this machine's GPU and stores the results in profiling_results/<gpu>/.

Of each ladder, in a folder of its name:
  main.csv       all stages on the ladder's main input
  repeat.csv     the same once more at the end of the job: microseconds, and the difference in percent
  <sweep>.csv    the stages on the other inputs that ladder.json lists
  outputs/       what the programs print that ladder.json lists
A lecture whose ladder.json lists its stages has experiments too, and its program writes their tables beside main.csv.
header/shapes.csv is the production header on shapes outside the peers' tables, beside copies of the same bytes.
environment.txt says which GPU, driver, compilers and clocks there were. All is put in place together, after the last
program has ended, and only if every kernel above 50 us repeats within 2 percent. No setting of the GPU is changed.
LADDER/SWEEP measures and stores the CSV of one sweep alone, for example of controls. A ladder of several GPUs takes
eight, four or two, as many as programs see (CUDA_VISIBLE_DEVICES), and its results are stored in
profiling_results/<gpu>x<how many>/.
"""

import os
import time

from ..core import ladders, machine, registry, results
from ..core.ladders import Unusable, options
from . import outputs

LONG_KERNEL_US, REPEAT_LIMIT_PERCENT = 50.0, 2.0


def arguments(parser):
    parser.add_argument(
        "what",
        nargs="?",
        default="all",
        metavar="LADDER|LADDER/SWEEP|header|all",
        help="what to measure; all by default",
    )
    parser.add_argument(
        "--results", default="", metavar="DIRECTORY", help="where to store, instead of profiling_results/<gpu>"
    )


def measure(name, work, *command):
    start = time.monotonic()
    output = machine.measure(name, work, 600, *command)
    print(f"bench: {name} took {time.monotonic() - start:.1f} s", flush=True)
    return output


def run_ladder(ladder, name, work, target, *more, experiments=False, program=""):
    """(what it prints, the rows of the CSV target); with experiments, a lecture's tables are written beside it too."""
    words = ["--csv-dir", target.parent] if experiments else ["--csv", target, *more]
    if ladder.ranks > 1 and "--ranks" not in more:
        words += ["--ranks", ladder.ranks]
    if ladder.has_experiments and not experiments and not program:
        words += ["--experiment", 1]  # the stages alone
    output = measure(name, work, machine.program(ladder, program), *words)
    wanted = [
        "stage",
        "verdict",
        *ladder.main,
        "microseconds",
        "copy_microseconds",
        "datasheet_gb_per_s",
        "device",
        "runtime",
    ]
    rows = results.read(target, wanted)
    if not any(row["microseconds"] for row in rows):
        raise Unusable(f"{output}{name} timed nothing; nothing was stored")
    return output, rows


def sweep(ladder, name, work, target):
    """The ladder's CSVs of several inputs, one below the other."""
    described, lines = ladder.sweeps[name], []
    program = described.program  # its kernels are checked on small problems nowhere else
    chosen = ["--stage", ",".join(ladder.timed_by(name))] if described.without or described.stages else []
    for given in described.inputs:
        part = f"{ladder.id}_{name}_" + "x".join(map(str, given.values()))
        small = [] if program and not lines else ["--no-small"]
        run_ladder(ladder, part, work, work / f"{part}.csv", *options(given), *small, *chosen, program=program)
        header, *stages = (work / f"{part}.csv").read_text(encoding="utf-8").splitlines()
        lines += stages if lines else [header, *stages]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


def times(rows):
    """Microseconds of the copy kernel and of each stage that was timed."""
    timed = {row["stage"]: float(row["microseconds"]) for row in rows if row["microseconds"]}
    return {"copy kernel": float(rows[0]["copy_microseconds"]), **timed} if rows[0]["copy_microseconds"] else timed


def compare(ladder, first, second, target):
    """Writes repeat.csv; the kernels that did not repeat, as sentences."""
    table, complaints = [], []
    for name, before in first.items():
        if name not in second:
            raise Unusable(f"{name} was timed in the first run of {ladder.id} only; nothing was stored")
        difference = 100 * (second[name] - before) / before
        limit = REPEAT_LIMIT_PERCENT if before > LONG_KERNEL_US else None
        table.append([name, before, second[name], f"{difference:+.2f}", "" if limit is None else limit])
        if limit is not None and not abs(difference) < limit:
            complaints.append(f"{ladder.id}/{name}: {before:.2f} us, then {second[name]:.2f} us, {difference:+.2f} %")
    header = ["kernel", "first_microseconds", "second_microseconds", "difference_percent", "limit_percent"]
    results.write_csv(target, header, table)
    return complaints


def chosen(what):
    """The ladders, whether the header is measured as well, and the only sweep if one is named."""
    if what == results.HEADER:
        return [], True, ""
    if what in ("", "all"):  # those of several GPUs have a folder of their own
        return [ladder for ladder in ladders.all_ladders() if ladder.ranks == 1], True, ""
    name, _, only = what.partition("/")
    for ladder in ladders.all_ladders():
        if name == ladder.id and only in ladder.sweeps:
            return [ladder], False, only
    found = ladders.find(what)
    if isinstance(found, ladders.Stage):
        raise Unusable(f"make bench measures whole ladders; for one stage say make stage S={found.id}")
    return [found], False, ""


def targets(climbed, only=""):
    """What make builds: the ladders' programs, and those of sweeps that have their own; or what one sweep needs."""
    for ladder in climbed:
        if not only or not ladder.sweeps[only].program:
            yield f"{ladder.path}/program"
        for name, described in ladder.sweeps.items():
            if described.program and only in ("", name):
                yield f"{ladder.path}/{os.path.dirname(described.program)}/program"


def store(out, target):
    results.publish(out, target)
    print(f"bench: {sum(path.is_file() for path in out.rglob('*'))} files in {results.shown(target)}")


def run(given):
    if not machine.gpu():
        return machine.no_gpu(
            "bench", "make plots and make readme work from the stored files in profiling_results/, and need no GPU."
        )
    machine.refuse_silent()
    climbed, header, only = chosen(given.what)
    ranks = next((many for many in (8, 4) if many <= machine.gpus()), 2)
    climbed = [ladder.with_ranks(ranks) for ladder in climbed]
    lacking = [ladder.id for ladder in climbed if any(stage.is_left_out for stage in ladder.stages)]
    if lacking:
        raise Unusable(
            f"make bench measures whole ladders, and kernels of {', '.join(lacking)} are exercises and not in this tree; "
            "make grade times your own file on the GPU"
        )
    work, out = machine.workplace("bench")
    programs = registry.listed("PROGRAMS") if header else {}
    programs = {name: place for name, place in programs.items() if (ladders.ROOT / place / "Makefile").is_file()}
    machine.build(*targets(climbed, only), *(f"{place}/program" for place in programs.values()))
    if only:
        (ladder,) = climbed
        (out / ladder.id).mkdir()
        sweep(ladder, only, work, out / ladder.id / f"{only}.csv")
        return store(out, results.target(given.results, machine.gpu(), ladder.ranks))

    gpu, before, after, first, tables, facts = machine.gpu(), machine.clocks(), None, {}, [], {}
    for ladder in climbed:
        folder = out / ladder.id
        folder.mkdir()
        table, rows = run_ladder(ladder, ladder.id, work, folder / results.MAIN, experiments=ladder.has_experiments)
        after = after or machine.clocks()
        first[ladder], facts = times(rows), facts or rows[0]
        tables.append(table)
        for name in ladder.sweeps:
            sweep(ladder, name, work, folder / f"{name}.csv")
        outputs.store(ladder, out)
    for name, place in programs.items():
        (out / results.HEADER).mkdir(exist_ok=True)
        program = ladders.ROOT / "build/cuda" / place / name
        measure(name, work, program, "--csv", out / results.HEADER / f"{name}.csv")
        facts = facts or results.read(out / results.HEADER / f"{name}.csv", ["runtime"])[0]
    complaints = []
    for ladder, before_times in first.items():
        _, rows = run_ladder(ladder, f"{ladder.id} again", work, work / f"{ladder.id}_again.csv")
        complaints += compare(ladder, before_times, times(rows), out / ladder.id / results.REPEAT)
        tables.append((out / ladder.id / results.REPEAT).read_text(encoding="utf-8"))
    # One ladder measured alone says for itself where; the others were measured as the GPU's environment.txt says.
    whole = given.what in ("", "all")
    place = out if whole else out / (climbed[0].id if climbed else results.HEADER)
    runtime, datasheet = results.version(facts.get("runtime")), facts.get("datasheet_gb_per_s")
    datasheet = f"{float(datasheet):.0f} GB/s" if datasheet else ""
    text = machine.environment(gpu, runtime, before, after or machine.clocks(), datasheet)
    (place / results.ENVIRONMENT).write_text(text, encoding="utf-8")
    print("\n" + "\n".join(tables))
    if complaints:
        raise Unusable(
            f"these kernels differ by {REPEAT_LIMIT_PERCENT:g} % or more between two runs:\n  "
            + "\n  ".join(complaints)
            + f"\nNothing was stored; the measurements are in {results.shown(out)}."
        )
    target = results.target(given.results, gpu, max((ladder.ranks for ladder in climbed), default=1))
    store(out, target)
    for ladder in climbed if whole else []:
        (target / ladder.id / results.ENVIRONMENT).unlink(missing_ok=True)
