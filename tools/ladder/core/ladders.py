"""The ladders of the tree and their stages: their names, their folders, and which one S=05 means.

A ladder is a folder below assignment*/ or lectures/ with a ladder.json in it, whose keys are the fields of Ladder.
Its identity is the folder's name, of a lecture the week and number: matrix, W2L1. That of a stage is the ladder's and
its own name: matrix/05_warp_shuffle, W2L1/reduction5.
"""

import difflib
import functools
import json
import pathlib
import re
from dataclasses import MISSING, dataclass, field, fields, replace

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEFAULT = "matrix"  # the ladder of S=05
# In the tree that students get: the stages whose kernels are left out, and only their skeletons are there, a line each.
LEFT_OUT = "exercises/left_out.txt"


class Unusable(Exception):
    """Why a job cannot go on, as a sentence for the user: what is wrong and what to do."""


class BadCommand(Unusable):
    """What the command line names is not there: exit code 2. choices: what it may name, a list that is shown before."""

    def __init__(self, sentence, choices=""):
        super().__init__(sentence)
        self.choices = choices


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
    def asked(self):
        """What S= says of it at its shortest: 05, vector/07, W2L1/5."""
        number = str(self.number) if self.source.suffix == ".cu" else f"{self.number:02}"
        return number if self.ladder.id == DEFAULT else f"{self.ladder.id}/{number}"

    @property
    def is_left_out(self):
        return self.id in left_out(ROOT)

    @property
    def namespace(self):
        """In C++, within the ladder's: 05_warp_shuffle -> warp_shuffle."""
        return re.sub(r"^\d+_", "", self.name)


@dataclass(frozen=True)
class Sweep:
    """Other inputs that make bench times."""

    title: str
    inputs: list  # [{"rows": 1, "cols": 4096}, ...]
    without: list = field(default_factory=list)  # stages that are left out
    stages: list = field(default_factory=list)  # or the only ones
    # "controls/rms_norm_controls": another program below the ladder's folder, whose kernels are no stages but controls
    # that separate two changes
    program: str = ""
    type: str = ""  # of its elements, if it is not the ladder's
    plot: bool = True  # else it is only read in tables


@dataclass(frozen=True)
class Profile:
    """Another input that make profile counts some stages on."""

    input: dict
    stages: list


@dataclass(frozen=True, eq=False)
class Ladder:
    """Two of one folder are equal."""

    folder: pathlib.Path
    title: str  # what the ladder climbs, in a line
    operator: str  # its file: "rms_norm" is common/operators/rms_norm.h, and RmsNorm in C++
    program: str  # the program over all stages
    main: dict  # the input that is timed, by the operator's parameters: {"rows": 8192, "cols": 8192}
    engine: str = ""  # the library that its programs are built with, which mk/<engine>.mk finds
    question: str = ""  # what it asks, if it is one of the ladders that the first page lists
    baseline: str = ""  # the stage that speed-ups are relative to
    cpu_device: dict = field(default_factory=dict)  # the main input without a GPU, where main would take minutes there
    analyze: dict = field(default_factory=dict)  # the smaller input that make analyze counts on
    # A small input that no vector and no tile divides, for tools that take their time: {"m": 3, "n": 3, "k": 1056}
    ragged: dict = field(default_factory=dict)
    # True if the counts of main are not those of analyze times the elements, as where stores do not grow with k: then
    # only what scripts/gpu_check.sh counts on the smaller input is compared with them
    unscalable: bool = False
    bandwidth: bool = True  # False where a stage's bytes say nothing of its speed: no plot of them
    sweeps: dict = field(default_factory=dict)  # {name: Sweep}
    profiles: dict = field(default_factory=dict)  # {name: Profile}
    # {"FAST": "05_warp_shuffle"}: what a document calls the stages; --stage and S= take these names, too
    labels: dict = field(default_factory=dict)
    details: list = field(default_factory=list)  # stages of which make profile stores ncu's whole report as text, too
    reports: list = field(default_factory=list)  # those of which it stores a report for ncu's window, if it is small
    outputs: dict = field(
        default_factory=dict
    )  # {name: "./program and its arguments"}: make bench stores what it prints
    type: str = ""  # of its elements, for captions: float32
    # What an input has as many of as its parameters' product, for captions: multiplication
    element: str = "element"
    unit: dict = field(default_factory=dict)  # what a block works on, and what counts it, for tables: {"row": "rows"}
    # Of ladder.json's "stages": names, only where the stages are neither folders (NN_name/kernel.cuh) nor files
    # (nameN.cu); then the ladder's program has experiments, and make bench has it write their tables with --csv-dir
    named_stages: list = field(default_factory=list)
    computed: list = field(default_factory=list)  # experiments without times: make analyze S=all stores them, too
    experiments: bool = False  # the program has experiments although its stages are folders or files

    def __eq__(self, other):
        return isinstance(other, Ladder) and self.folder == other.folder

    def __hash__(self):
        return hash(self.folder)

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
    def small(self):
        """Its ragged input, or 3 × 1025."""
        return self.ragged or {name: 1025 if name == list(self.main)[-1] else 3 for name in self.main}

    @property
    def ranks(self):
        """The GPUs that its main input lies on."""
        return self.main.get("ranks", 1)

    def with_ranks(self, ranks):
        """Itself; if it is one of several GPUs, with all inputs on that many of them."""
        if self.ranks == 1:
            return self
        sweeps = {
            name: replace(sweep, inputs=[{**given, "ranks": ranks} for given in sweep.inputs])
            for name, sweep in self.sweeps.items()
        }
        return replace(self, main={**self.main, "ranks": ranks}, sweeps=sweeps)

    @property
    def has_experiments(self):
        return bool(self.named_stages or self.experiments)

    def described(self, given, times=" × "):
        """An input in words: "8192 × 8192 float32", of one parameter "n = 1000 float32"."""
        values = [str(given[name]) for name in self.main]
        said = times.join(values) if len(values) > 1 else f"{next(iter(self.main))} = {values[0]}"
        return f"{said} {self.type}".strip()

    @functools.cached_property
    def stages(self):
        """In the order of their numbers."""
        names = self.named_stages
        if not names:
            names = [path.parent.name for path in self.folder.glob("[0-9]*_*/kernel.cuh")]
            names += [path.stem for path in self.folder.glob("*[0-9].cu")]
        return sorted((Stage(self, name) for name in names), key=lambda stage: stage.number)

    def timed_by(self, sweep):
        """The names of the stages that a sweep times."""
        chosen = self.sweeps[sweep]
        return chosen.stages or [stage.name for stage in self.stages if stage.name not in chosen.without]

    @property
    def mutants(self):
        """The names of its known-wrong kernels."""
        return sorted(path.stem for path in self.folder.glob("mutants/*.cuh") if path.stem != "parts")

    def stage(self, asked):
        """The stage of that name, label or number, with or without leading zeros; None if there is none."""
        for label, name in self.labels.items():
            asked = name if asked.lower() == label.lower() else asked
        for stage in self.stages:
            if asked in (stage.name, stage.namespace) or (asked.isdigit() and int(asked) == stage.number):
                return stage
        return None


def made(kind, given, where, folder=None):
    """A Ladder, Sweep or Profile of what ladder.json says of it."""
    if not isinstance(given, dict):
        raise Unusable(f"{where} must hold one object, {{...}}")
    keys = {("stages" if one.name == "named_stages" else one.name): one for one in fields(kind) if one.name != "folder"}
    unknown = sorted(set(given) - set(keys))
    if unknown:
        raise Unusable(f"{where} has the unknown key {', '.join(unknown)}; it may have {', '.join(sorted(keys))}")
    for key, one in keys.items():
        if not given.get(key) and one.default is MISSING and one.default_factory is MISSING:
            raise Unusable(f"{where} lacks {key}; CONTRIBUTING.md says what stands there")
    values = {keys[key].name: value for key, value in given.items() if value is not None}
    return kind(**values, **({"folder": folder} if folder else {}))


def read(path):
    """The ladder of a ladder.json."""
    where = path.relative_to(ROOT)
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unusable(f"{where} cannot be read: {error}")
    ladder = made(Ladder, description, where, path.parent)
    for kind, of_name in ((Sweep, ladder.sweeps), (Profile, ladder.profiles)):
        of_name.update((name, made(kind, given, f"{where}: {name}")) for name, given in of_name.items())
    if not (ROOT / f"common/operators/{ladder.operator}.h").is_file():
        raise Unusable(f"{where}: operator {ladder.operator}: there is no common/operators/{ladder.operator}.h")
    named = [name for one in (*ladder.profiles.values(), *ladder.sweeps.values()) for name in one.stages]
    named += [*ladder.details, *ladder.reports, *ladder.labels.values()]
    for name in named if ladder.stages else []:
        if name not in [stage.name for stage in ladder.stages]:
            raise Unusable(
                f"{where}: profiles, sweeps, details, reports or labels name {name}, and the ladder has no such stage"
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


@functools.cache
def left_out(root):
    """The ids of the stages whose kernels this tree has not."""
    path = root / LEFT_OUT
    return frozenset(path.read_text(encoding="utf-8").split("\n")) if path.is_file() else frozenset()


def options(given):
    """An input on the program's command line: {"rows": 3} -> --rows 3."""
    return [word for name, value in given.items() for word in (f"--{name}", value)]


def listing(ladders):
    return listing_of(stage for ladder in ladders for stage in ladder.stages).lstrip("\n") + "\n"


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
    if not asked:
        raise BadCommand("a stage must be named, for example S=05 or S=vector/05; the list has all", listing(ladders))
    names = {
        name: stage.id
        for ladder in ladders
        for stage in ladder.stages
        for name in (stage.name, stage.namespace, stage.id)
    }
    near = list(dict.fromkeys(names[name] for name in difflib.get_close_matches(asked, names, 3)))
    if near:
        raise BadCommand(f"there is no stage '{asked}'; did you mean {' or '.join(near)}?")
    raise BadCommand(f"there is no stage '{asked}'; the list has all", listing(ladders))


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
