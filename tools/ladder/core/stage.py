"""Builds and runs the stage, the ladder or the folder that S= names."""

import difflib
import os
import re
import subprocess

from ..grader import exercises, workplace
from . import ladders
from .ladders import Stage, Unusable, options


def arguments(parser):
    parser.add_argument(
        "stage", metavar="STAGE|LADDER", help="05, 05_warp_shuffle, vector/05, W2L1/5, vector or a folder"
    )
    parser.add_argument(
        "--job", choices=["stage", "analyze"], default="stage", help="run it, or count its accesses to memory"
    )


def make(folder, *words):
    """The exit code of make in that folder. Variables that a make above has set stay set, but for those of the words."""
    said = {word.partition("=")[0] for word in words}
    environment = {name: value for name, value in os.environ.items() if name not in said}
    return subprocess.run(["make", "-C", str(folder), *words], cwd=ladders.ROOT, env=environment).returncode


def start(asked, job):
    """The exit code of the job: 2 if make fails, since nothing was run."""
    backend = ["BACKEND=cpu"] if job == "analyze" else []
    target = "run" if job == "stage" else "analyze"
    own = exercises.of_file(asked)
    if own:
        with workplace.Workplace.of(own, own.file) as work:
            return make(work.path, target, *backend)
    folder = (ladders.ROOT / asked).resolve()
    if asked and (folder / "Makefile").is_file() and ladders.ROOT in folder.parents:
        return make(folder, target, *backend)  # mutants, a benchmark, a folder of one's own
    found = ladders.find(asked)
    if isinstance(found, Stage) and found.is_left_out:
        raise Unusable(
            f"{found.id} is an exercise, and its kernel is not in this tree; make exercise S={found.asked} writes the "
            f"skeleton to my/, and make {job} S=my/... takes your file"
        )
    if not isinstance(found, Stage) or found.folder != found.ladder.folder:
        return make(found.folder, target, *backend)
    if found.source.suffix == ".cu":
        return make(found.folder, f"{target}-{found.name}", *backend)
    given = os.environ.get("ARGS", "")
    if job == "analyze" and not given and found.ladder.analyze:  # mk/stage.mk leaves them out where there are others
        given = " ".join(map(str, options(found.ladder.analyze)))
    # As a word, since an ARGS on the command line of a make above comes before the environment.
    return make(found.folder, target, *backend, f"ARGS=--stage {found.name} {given}".strip())


def target(of):
    """(what make builds in the root, a pattern of the program below build/<backend>, its options) of a stage."""
    path = of.ladder.path
    if of.folder != of.ladder.folder:
        return f"{path}/{of.name}/program", f"{path}/{of.name}/*_test", ""
    if of.source.suffix == ".cu":
        return f"{path}/programs", f"{path}/{of.name}", ""
    return f"{path}/program", f"{path}/{of.ladder.program}", " ".join(of.option)


def run(given):
    return start(given.stage, given.job)


def build(name):
    """make NAME: the program of a stage; 2 if NAME is no stage."""
    try:
        found = ladders.find(name)
    except Unusable as error:
        makefile = (ladders.ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
        targets = " ".join(re.findall(r"^\.PHONY:(.*)", makefile, re.M)).split()
        near = difflib.get_close_matches(name, targets, 1)
        if near:
            raise ladders.BadCommand(
                f"make knows no target '{name}'; did you mean {near[0]}? make help lists the targets"
            )
        raise ladders.BadCommand(f"make knows no target '{name}', and {error}", getattr(error, "choices", ""))
    if isinstance(found, Stage) and found.source.suffix == ".cu":
        return make(found.folder, found.name)
    return make(found.folder)
