"""The command line: python3 -m ladder JOB ..., with tools/ on PYTHONPATH; make starts it for every job.

Exit code 0 all right, 1 the job cannot go on or its answer is no, 2 a bad command line.
"""

import argparse
import sys

from . import (
    analyze,
    bench,
    chain,
    command_line,
    compare,
    grade,
    ladders,
    machine,
    peers,
    plots,
    profile,
    quiz,
    readme,
    results,
    site,
    stage,
    terms,
    tune_job,
)

JOBS = {
    "bench": bench,
    "profile": profile,
    "analyze": analyze,
    "compare": compare,
    "tune": tune_job,
    "peers": peers,
    "chain": chain,
    "readme": readme,
    "plot": plots,
    "site": site,
    "terms": terms,
    "stage": stage,
    "grade": grade,
    "quiz": quiz,
}


def list_stages(given):
    for ladder in ladders.all_ladders():
        if given.folders:
            print(ladder.path)
            continue
        small = bench.options({name: 1025 if name == list(ladder.main)[-1] else 3 for name in ladder.main})
        for one in ladder.stages:
            target, program, options = stage.target(one)
            print(one.id, *([target, program, " ".join(map(str, small)), options] if given.programs else []), sep="\t")


def where(given):
    """For scripts: where this machine's results are stored."""
    if not machine.gpu():
        raise ladders.Unusable("nvidia-smi shows no GPU here")
    print(results.shown(results.target("", machine.gpu())))


def analyze_options(given):
    """For mk/stage.mk: the input of make analyze as options of a ladder's program."""
    found = ladders.find(given.ladder)
    print(*bench.options(found.analyze or {}))


def parser_of_all():
    parser = argparse.ArgumentParser(prog="ladder", description="The jobs of the course. make help lists them, too.")
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True)

    def add(name, about, run):
        form = argparse.RawDescriptionHelpFormatter
        job = jobs.add_parser(name, help=about.partition("\n")[0], description=about, formatter_class=form)
        job.set_defaults(run=run)
        return job

    for name, module in JOBS.items():
        module.arguments(add(name, module.__doc__, module.run))
    listed = add("list", "Prints every stage as LADDER/STAGE.", list_stages)
    listed.add_argument("--folders", action="store_true", help="the folders of the ladders instead")
    about = "with what make builds, the program below build/, and the options of a small input and of the stage"
    listed.add_argument("--programs", action="store_true", help=about)
    add("where", "Prints the folder of this machine's results.", where)
    asked = add("analyze-options", "Prints the options of a ladder's program for make analyze.", analyze_options)
    asked.add_argument("ladder")
    for name, about, run in (
        (
            "exercise",
            "Writes the skeleton of an exercise to my/, never over a file that is there.",
            grade.write_skeleton,
        ),
        ("watch", "Grades an exercise each time that its file is saved.", grade.watch),
        ("hint", "Prints the next hint of an exercise.", grade.hint),
        ("solution", "Prints the stage that an exercise was cut from.", grade.solution),
    ):
        add(name, about, run).add_argument("exercise", nargs="?", default="", help="05, vector/07 or W2L1/5")
    built = add("build", "Builds the program of a stage: what make NAME does.", lambda given: stage.build(given.name))
    built.add_argument("name")
    return parser


def main(words=None):
    """The exit code."""
    return command_line.exit_code(parser_of_all(), words, "what had been stored is as it was")


if __name__ == "__main__":
    sys.exit(main())
