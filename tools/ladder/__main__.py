"""The command line: python3 -m ladder JOB ..., with tools/ on PYTHONPATH; make starts it for every job.

Exit code 0 all right, 1 the job cannot go on or its answer is no, 2 a bad command line, 3 a grade or a guess is not right yet.
"""

import argparse
import importlib
import sys

from .core import command_line, ladders, machine, registry, results, stage
from .grader import exercises, workplace

OF_EXERCISES = {  # a function of grader/grade.py, and what it does
    "exercise": ("write_skeleton", "Writes the skeleton of an exercise to my/, never over a file that is there."),
    "start": (
        "begin",
        "Writes the first exercise that is not done to my/ and grades it at every save, and then the next one.",
    ),
    "watch": ("watch", "Grades an exercise each time that its file is saved."),
    "try": ("try_out", "Runs the file of an exercise on the input in ARGS, with what its kernels print."),
    "hint": ("hint", "Prints the next hint of an exercise."),
    "solution": ("solution", "Prints the stage that an exercise was cut from."),
}
OF_MAKE = ("list", "where", "analyze-options", "build", "own-folder")


def list_stages(given):
    for ladder in ladders.all_ladders():
        if given.folders:
            print(ladder.path)
            continue
        for one in ladder.stages:
            target, program, options = stage.target(one)
            print(
                one.id,
                *(
                    [target, program, " ".join(map(str, ladders.options(ladder.small))), options]
                    if given.programs
                    else []
                ),
                sep="\t",
            )


def where(given):
    """For scripts: where this machine's results are stored."""
    if not machine.gpu():
        raise ladders.Unusable("nvidia-smi shows no GPU here")
    print(results.shown(results.target("", machine.gpu())))


def own_folder(given):
    """For simt/analyze and make debug: where make builds a file of my/. Exit code 2 if it is of no exercise."""
    found = exercises.of_file(given.file)
    if not found:
        raise ladders.BadCommand(f"{given.file} is the file of no exercise")
    with workplace.Workplace.of(found, found.file) as work:
        print(results.shown(work.path))


def analyze_options(given):
    """For mk/stage.mk: the input of make analyze as options of a ladder's program."""
    found = ladders.find(given.ladder)
    print(*ladders.options(found.analyze))


def parser_for(words):
    """The parser of all jobs; if the words name one of them, no other one's module is imported."""
    parser = argparse.ArgumentParser(prog="ladder", description="The jobs of the course. make help lists them, too.")
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True)

    def add(name, about, run):
        form = argparse.RawDescriptionHelpFormatter
        job = jobs.add_parser(name, help=about.partition("\n")[0], description=about, formatter_class=form)
        job.set_defaults(run=run)
        return job

    there = {**registry.listed("JOBS"), **dict.fromkeys(OF_EXERCISES, "ladder.grader.grade")}
    asked = words[0] if words else ""
    for name in [asked] if asked in there else [] if asked in OF_MAKE else there:
        module = importlib.import_module(there[name])
        if name in OF_EXERCISES:
            function, about = OF_EXERCISES[name]
            job = add(name, about, getattr(module, function))
            job.add_argument("exercise", nargs="?", default="", help="05, vector/07 or W2L1/5")
        else:
            module.arguments(add(name, module.__doc__, module.run))
    listed = add("list", "Prints every stage as LADDER/STAGE.", list_stages)
    listed.add_argument("--folders", action="store_true", help="the folders of the ladders instead")
    about = "with what make builds, the program below build/, and the options of a small input and of the stage"
    listed.add_argument("--programs", action="store_true", help=about)
    add("where", "Prints the folder of this machine's results.", where)
    asked = add("analyze-options", "Prints the options of a ladder's program for make analyze.", analyze_options)
    asked.add_argument("ladder")
    own = add("own-folder", "Prints the folder in which make builds a file of my/.", own_folder)
    own.add_argument("file")
    built = add("build", "Builds the program of a stage: what make NAME does.", lambda given: stage.build(given.name))
    built.add_argument("name")
    return parser


def main(words=None):
    """The exit code."""
    words = sys.argv[1:] if words is None else words
    return command_line.exit_code(parser_for(words), words, "what had been stored is as it was")


if __name__ == "__main__":
    sys.exit(main())
