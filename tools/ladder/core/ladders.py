"""The ladders of the tree and their stages: their names, their folders, and which one S=05 means.

A ladder is a folder below assignment*/ or lectures/ with a ladder.json in it:
    title      what the ladder climbs, in a line
    operator   the file of its operator: "rms_norm" is common/operators/rms_norm.h, and RmsNorm in C++
    program    the program over all stages
    baseline   the stage that speed-ups are relative to
    main       the input that is timed, by the operator's parameters: {"rows": 8192, "cols": 8192}
    cpu_device the main input without a GPU, where main would take minutes there
    analyze    the smaller input that make analyze counts on
    unscalable  true if the counts of main are not those of analyze times the elements, as where stores do not grow with
               k: then only what scripts/gpu_check.sh counts on the smaller input is compared with them
    sweeps     other inputs that make bench times: {name: {"title": ..., "inputs": [{"rows": 1, "cols": 4096}, ...],
               "without": [stages that are left out]}}, or "stages": [the only ones]; with "program":
               "controls/rms_norm_controls" those of another
               program below the ladder's folder, whose kernels are no stages: controls that separate two changes;
               with "type" that of its elements, if it is not the ladder's; with "plot": false only read in tables
    profiles   other inputs that make profile counts some stages on: {name: {"input": {...}, "stages": [names]}}
    details    stages of which make profile stores Nsight Compute's whole report as text, too: [names]
    reports    stages of which make profile stores a report for ncu's window and for Python, if it is small: [names]
    outputs    programs of which make bench stores what they print: {name: "./program and its arguments"}
    type       of its elements, for captions: float32
    element    what an input has as many of as its parameters' product, for captions: multiplication; by default element
    unit       what a block works on, and the parameter that counts it, for tables: {"row": "rows"}
    stages     names, only where the stages are neither folders (NN_name/kernel.cuh) nor files (nameN.cu): then the
               ladder's program has experiments, and make bench has it write their tables with --csv-dir
    computed   experiments that need no GPU, as they compute no time: make analyze S=all stores their tables, too: [names]
    experiments  true if the ladder's program has experiments although its stages are folders or files
Its identity is the folder's name, of a lecture the week and number: matrix, W2L1. That of a stage is the ladder's and
its own name: matrix/05_warp_shuffle, W2L1/reduction5.
"""

import functools
import json
import pathlib
import re
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEFAULT = "matrix"  # the ladder of S=05
KEYS = {
    *("title", "operator", "program", "baseline", "main", "analyze", "sweeps", "profiles", "details", "outputs"),
    *("type", "unit", "stages", "cpu_device", "reports", "experiments", "computed", "element", "unscalable"),
}


class Unusable(Exception):
    """Why a job cannot go on, as a sentence for the user: what is wrong and what to do."""


class BadCommand(Unusable):
    """What the command line names is not there: exit code 2."""


@dataclass(frozen=True)
class Stage:
    ladder: "Ladder"
    name: str

    @property
    def id(self):
        return f"{self.ladder.id}/{self.name}"

    @property
    def folder(self):
        """Its own folder, or the ladder's where the stage is a file."""
        own = self.ladder.folder / self.name
        return own if own.is_dir() else self.ladder.folder

    @property
    def source(self):
        """The file with the kernel."""
        file = self.ladder.folder / f"{self.name}.cu"
        return file if file.is_file() else self.folder / "kernel.cuh"

    @property
    def option(self):
        """What the ladder's program takes to run this stage alone: a program of one stage has no such option."""
        return ["--stage", self.name] if len(self.ladder.stages) > 1 else []

    @property
    def page(self):
        return self.folder / "README.md"

    @property
    def number(self):
        return int(re.search(r"\d+", self.name).group())

    @property
    def namespace(self):
        """In C++, within the ladder's: 05_warp_shuffle -> warp_shuffle."""
        return re.sub(r"^\d+_", "", self.name)


@dataclass(frozen=True)
class Ladder:
    folder: pathlib.Path
    description: dict = field(compare=False)

    def __getattr__(self, key):
        if key in KEYS - {"stages"}:
            return self.description.get(key, {} if key in ("sweeps", "profiles", "outputs") else None)
        raise AttributeError(key)

    @property
    def path(self):
        """From the root: assignment1/rms_norm/matrix."""
        return self.folder.relative_to(ROOT)

    @property
    def id(self):
        lecture = re.match(r"W\d+L\d+", self.folder.name)
        return lecture.group() if lecture else self.folder.name

    @property
    def namespace(self):
        """In C++, within ladder: matrix, or of W2L1_reduction reduction."""
        return re.sub(r"^W\d+L\d+_", "", self.folder.name)

    @property
    def has_experiments(self):
        return bool(self.description.get("stages") or self.experiments)

    def described(self, given, times=" × "):
        """An input in words: "8192 × 8192 float32", of one parameter "n = 1000 float32"."""
        values = [str(given[name]) for name in self.main]
        said = times.join(values) if len(values) > 1 else f"{next(iter(self.main))} = {values[0]}"
        return f"{said} {self.type or ''}".strip()

    @functools.cached_property
    def stages(self):
        """In the order of their numbers."""
        names = self.description.get("stages")
        if not names:
            names = [path.parent.name for path in self.folder.glob("[0-9]*_*/kernel.cuh")]
            names += [path.stem for path in self.folder.glob("*[0-9].cu")]
        return sorted((Stage(self, name) for name in names), key=lambda stage: stage.number)

    def timed_by(self, sweep):
        """The names of the stages that a sweep times."""
        described = self.sweeps[sweep]
        left_out = described.get("without", [])
        return described.get("stages") or [stage.name for stage in self.stages if stage.name not in left_out]

    @property
    def mutants(self):
        """The names of its known-wrong kernels."""
        return sorted(path.stem for path in self.folder.glob("mutants/*.cuh") if path.stem != "parts")

    def stage(self, asked):
        """The stage of that name or number, with or without leading zeros; None if there is none."""
        for stage in self.stages:
            if asked in (stage.name, stage.namespace) or (asked.isdigit() and int(asked) == stage.number):
                return stage
        return None


def read(path):
    """The ladder of a ladder.json."""
    where = path.relative_to(ROOT)
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unusable(f"{where} cannot be read: {error}")
    if not isinstance(description, dict):
        raise Unusable(f"{where} must hold one object, {{...}}")
    for key in ("title", "operator", "program", "main"):
        if not description.get(key):
            raise Unusable(f"{where} lacks {key}; CONTRIBUTING.md says what stands there")
    unknown = sorted(set(description) - KEYS)
    if unknown:
        raise Unusable(f"{where} has the unknown key {', '.join(unknown)}; it may have {', '.join(sorted(KEYS))}")
    ladder = Ladder(path.parent, description)
    if not (ROOT / f"common/operators/{ladder.operator}.h").is_file():
        raise Unusable(f"{where}: operator {ladder.operator}: there is no common/operators/{ladder.operator}.h")
    named = [name for profile in ladder.profiles.values() for name in profile["stages"]]
    named += [name for described in ladder.sweeps.values() for name in described.get("stages", [])]
    named += (ladder.details or []) + (ladder.reports or [])
    for name in named if ladder.stages else []:
        if name not in [stage.name for stage in ladder.stages]:
            raise Unusable(
                f"{where}: profiles, sweeps, details or reports name {name}, and the ladder has no such stage"
            )
    if ladder.baseline and ladder.stages and not ladder.stage(ladder.baseline):
        raise Unusable(f"{where}: baseline {ladder.baseline}: the ladder has no such stage")
    return ladder


def all_ladders():
    """The default first, the others by their place in the tree."""
    paths = sorted([*ROOT.glob("assignment*/**/ladder.json"), *ROOT.glob("lectures/**/ladder.json")])
    ladders = sorted(map(read, paths), key=lambda ladder: ladder.id != DEFAULT)
    for place, ladder in enumerate(ladders):
        for other in ladders[:place]:
            if other.id == ladder.id:
                raise Unusable(f"{ladder.path} and {other.path} would both be the ladder {ladder.id}; rename one")
    return ladders


def options(given):
    """An input on the program's command line: {"rows": 3} -> --rows 3."""
    return [word for name, value in given.items() for word in (f"--{name}", value)]


def listing(ladders):
    return listing_of(stage for ladder in ladders for stage in ladder.stages)


def find(asked):
    """The Stage, or the Ladder, that S= names; BadCommand with the choices if it names none.

    5, 05, 05_warp_shuffle and warp_shuffle are stages of the matrix ladder, or of the only ladder that has such a name;
    vector/05 and W2L1/5 are those of others; vector and W2L1 are ladders; a folder is what lies in it.
    """
    ladders = all_ladders()
    asked = asked.strip().rstrip("/")
    path = (ROOT / asked).resolve() if asked else None
    for ladder in ladders:
        if asked and (asked in (ladder.id, ladder.folder.name) or path == ladder.folder):
            return ladder
        for stage in ladder.stages:
            if path in (ladder.folder / stage.name, ladder.folder / f"{stage.name}.cu"):
                return stage
    name, slash, rest = asked.partition("/")
    if slash:
        found = [ladder.stage(rest) for ladder in ladders if name in (ladder.id, ladder.folder.name)]
    else:
        found = [ladder.stage(asked) for ladder in ladders if asked]
        if found and found[0] or asked.isdigit():
            found = found[:1]
    found = [stage for stage in found if stage]
    if len(found) == 1:
        return found[0]
    if found:
        raise BadCommand(f"S={asked} is a stage of several ladders; say one of:{listing_of(found)}")
    said = f"there is no stage '{asked}'" if asked else "a stage must be named, for example S=05 or S=vector/05"
    raise BadCommand(f"{said}; the stages are:{listing(ladders)}")


def stages_of(asked):
    """The stages that S= names for a job that counts: one, those of a ladder, or with S=all those of every ladder that
    has an input to analyze."""
    if asked == "all":
        counted = [ladder for ladder in all_ladders() if ladder.analyze]
        return [stage for ladder in counted for stage in ladder.stages]
    found = find(asked)
    return [found] if isinstance(found, Stage) else found.stages


def listing_of(stages):
    return "".join(f"\n  {stage.id}" for stage in stages)
