"""Grades exercises: right values in every order of the threads, no hazard, and the idea in the counters.

With S=05 one exercise: my/05_warp_shuffle.cuh is built for the CPU device as a stage of its ladder and goes through the
checks that the stage has passed; simt/analyze counts what it asks of memory and looks for hazards. On a machine with a
GPU its time stands beside the stage's own. Without S= the table of all exercises: which are done, tried and open.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, field

from ..core import machine, results, stage
from ..core.command_line import NOT_YET
from ..core.ladders import Unusable, options
from . import exercises, ideas, programs, rules, sandbox, symbols
from .exercises import MARK, ROOT
from .workplace import Workplace

WIDTH = 110  # of lines, where the terminal is not narrower
MOST_HAZARDS = 2
DEVICES = 3  # of the CPU device, for exercises on several; edge cases with more ranks are left out
ENDLESS = "Does a loop of yours never end? A block cannot wait for another one, which may not begin before this one has ended."
UNSENT = "Or does a rank wait for what another one never sends, or take what has arrived for missing?"
FAULT = re.compile(r"cudaError\w+ \([^)]*\) from|: kernel \S+, block \(")  # a kernel that the device stopped
ADVICE = {  # what is not said by the sentence of a hazard
    "barrier": "All threads of the block must reach __syncthreads(): move it out of the if, and let no thread return before",
    "a warp's operation that not all lanes of its mask reach": "All lanes that the mask names must call it: move it out "
    "of the if, and let no thread return before",
    "race in one line": "If there is a barrier between two steps: do more threads work in a step than there is work for? One then "
    "reads what another one writes",
    "timeout": ENDLESS,
}


def arguments(parser):
    parser.add_argument("exercise", nargs="?", default="", help="05, vector/07, W2L1/5; none: the table")


@dataclass
class Report:
    """What is wrong with a file, in the order in which to look at it; nothing if it passes."""

    rules: list = field(default_factory=list)
    build: list = field(default_factory=list)
    values: list = field(default_factory=list)
    hazards: list = field(default_factory=list)
    ideas: list = field(default_factory=list)
    warnings: list = field(default_factory=list)  # the compiler's, of a file that is wrong
    is_right: bool = False  # whether all values were right, also where a hazard's sentence stands for wrong ones
    counts: object = None  # what was counted, an ideas.Counts

    @property
    def passed(self):
        return not any((self.rules, self.build, self.values, self.hazards, self.ideas))

    @property
    def lines(self):
        """The sentences of the first kind that has any; wrong values and hazards go together."""
        for part in (self.rules, self.build, self.values + self.hazards, self.ideas):
            if part:
                return part
        return []


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def head_of(exercise):
    """What the skeleton's first comment says."""
    task = [" ".join(paragraph.split()) for paragraph in exercise.task.split("\n\n")]
    last = f"make grade S={exercise.asked} checks it, make hint S={exercise.asked} helps."
    title = f"{exercise.stage.name}: {exercise.title}"
    counted = ladder_words(exercise)
    return [
        f"Exercise {title}.",
        *task,
        f"The grader requires (it counts on {counted}):",
        *[f"- {one}" for one in wanted(exercise)],
        last,
    ]


def wanted(exercise):
    """All that the grader requires, as phrases."""
    return [
        "right values in all checks that the stage has passed, in every order of the threads",
        "no race and no access outside of memory",
        *ideas.wishes(exercise),
    ]


def ladder_words(exercise):
    """The input that is counted, in words: n = 32,768 or rows = 64, cols = 8,192."""
    return ", ".join(f"{name} = {value:,}" for name, value in exercise.given.items())


def skeleton(exercise):
    return exercise.skeleton(head_of(exercise))


def inputs(exercise, seed):
    return [str(word) for word in [*options(exercise.given), "--seed", seed]]


def verdict(exercise, file, csv, code, output):
    """What the program says of the values: "" if they are right."""
    rows = results.read(csv) if csv.is_file() else []
    if rows and rows[0]["verdict"] == "PASS" and code == 0:
        return ""
    if code == 124:
        return f"the program did not end within {programs.SECONDS} seconds: does a loop of yours never end?"
    output = programs.shown_paths(output, file)
    host = re.search(r"line (\d+): (host code accessed device memory) at", output)
    if host:
        return f"line {host.group(1)}: {host.group(2)}; only kernels may compute with what lies there"
    said = re.search(rf"{exercise.stage.name} (?:FAIL|SKIP\w*): (.*)", output, re.S)
    text = said.group(1) if said else "\n".join(output.strip().splitlines()[-3:]) or f"it ended with exit code {code}"
    text = " ".join(text.split())
    if programs.HANGS in text:
        line = re.search(r"line \d+", output.partition(f"{exercise.stage.name} FAIL")[0])
        of_ranks = f" {UNSENT}" if exercise.stage.ladder.engine else ""
        return f"{line.group() + ': ' if line else ''}{text}. {ENDLESS}{of_ranks}"
    fault = re.search(r"^simt: cudaError\w+: (kernel .*)", output, re.M)
    if fault:
        stopped = r"cudaError(?!Invalid|LaunchTimeout)\w+ \([^)]*\) from the kernel's (run|launch)[^;]*"
        text = re.sub(stopped, lambda found: fault.group(1), text)
    refused = re.sub(
        r"cudaErrorInvalid(?:Value|Configuration) \(([^)]*)\) from the kernel's launch",
        r"CUDA refuses your launch (\1)",
        text,
    )
    return (
        f"{refused}; the number of blocks is rounded up, and without elements there is no launch"
        if "has 0 blocks" in refused
        else refused
    )


def devices(exercise, count):
    """What the programs' environment says of the devices: a kernel that waits in vain for a peer ends soon."""
    return {"SIMT_DEVICES": str(count), "SIMT_TIMEOUT": "5"} if exercise.stage.ladder.engine else {}


def check_values(work, seed, order=None, run=None):
    """The harness's own checks on all edge cases: in both orders of the threads, or in the one given."""
    csv = work.path / f"values{order or ''}.csv"
    csv.unlink(missing_ok=True)
    command = [work.built("judge"), *inputs(work.exercise, seed), "--csv", csv]
    run = run or programs.Programs().run
    where = {
        "LADDER_RUNNER": runner(work, "runner"),
        **devices(work.exercise, DEVICES),
        **({"SIMT_ORDER": order} if order else {}),
    }
    code, output = run(command, **where)
    said = verdict(work.exercise, work.file, csv, code, output)
    return f"{said} (threads in the shuffled order SIMT_ORDER={order})" if said and order else said


def runner(work, kind):
    """The command that the judge starts to have the kernels run, a word per line."""
    return "\n".join(sandbox.command([work.built(kind)], programs.SECONDS, read=work.inside))


def count(work, seed, run, name, *more, **environment):
    """(exit code, output, the files that were written) of a run on the exercise's input whose kernels are counted."""
    files = {form: work.path / f"{name}.{form}" for form in ("json", "csv")}
    forms = [word for form, path in files.items() for word in (f"--{form}", path)]
    files["values"] = work.path / f"{name}_values.csv"
    for path in files.values():
        path.unlink(missing_ok=True)
    program = ["--program", work.built("judge"), "--root", ROOT, "--", "--analyze", *inputs(work.exercise, seed)]
    several = devices(work.exercise, work.exercise.given.get("ranks", 1))
    where = {"LADDER_RUNNER": runner(work, "counts"), **several, **environment}
    code, output = run([ROOT / "simt/analyze", *forms, *program, "--csv", files["values"], *more], **where)
    return code, output, files


def threads_elsewhere(work, seed, run):
    """(multiprocessors, threads of the largest launch) on a larger device: a grid that fills it, too, is not written down."""
    many = ideas.MULTIPROCESSORS + 1 + seed % 4
    csv = count(work, seed, run, "elsewhere", "--no-small", SIMT_MULTIPROCESSORS=str(many))[2]["csv"]
    return many, ideas.Counts.read(csv, work.exercise.given).threads if csv.is_file() else 0


def analyze(work, seed, run=None):
    """(the hazards as sentences, the counts, what is wrong with the values) of one run on the exercise's input, after the
    smallest edge cases."""
    run = run or programs.Programs().run
    code, output, files = count(work, seed, run, "analysis", *([] if work.exercise.edges else ["--no-small"]))
    values = files["values"]
    if code == 124:
        many = f"Or does every thread do the work of all? An analysis has {programs.SECONDS} seconds."
        return [f"the kernel does not end while it is analyzed. {ENDLESS} {many}"], None, ""
    if not files["json"].is_file():
        output = programs.shown_paths(output, work.file)
        return [f"the program for the counters did not end in good order: {output.strip()[-300:]}"], None, ""
    dump = json.loads(files["json"].read_text(encoding="utf-8"))
    hazards = [hazard_text(work, hazard) for hazard in dump["hazards"]]
    if not dump["kernels"]:
        stopped = "host code accessed device memory" in output or "from the kernel's launch" in " ".join(output.split())
        return hazards or ([] if stopped else ["your launcher launches no kernel"]), None, ""
    text = rules.without_comments(exercises.text_of(work.file), strings=False)
    shared = max(kernel["static_shared"] + kernel["dynamic_shared"] for kernel in dump["kernels"])
    busiest = sum(kernel["busiest_thread_bytes"] for kernel in dump["kernels"])
    counts = ideas.Counts.read(files["csv"], work.exercise.given, text, shared, busiest)
    if "link" in work.exercise.wants:
        counts.link = tuple(
            sum(access.get(name, 0) for kernel in dump["kernels"] for access in kernel["accesses"])
            for name in ("read_from_peers", "written_to_peers")
        )
    if "fills" in work.exercise.wants:
        counts.elsewhere = threads_elsewhere(work, seed, run)
    rows = results.read(values, ["verdict"]) if values.is_file() else []
    is_right = bool(rows) and rows[0]["verdict"] == "PASS"
    return hazards, counts, "" if is_right else verdict(work.exercise, work.file, values, 1, output)


def hazard_text(work, hazard):
    """A hazard as a sentence with the student's lines, and what to do where the sentence does not say it."""
    ends = [end for end in (hazard["first"], hazard["second"]) if end]
    lines = list(dict.fromkeys(f"line {end['line']}" for end in ends if end["file"] == str(work.file.resolve())))
    begin = f"{' and '.join(lines)}: " if lines else ""
    sentence = programs.shown_paths(" ".join(hazard["sentence"].split()), work.file.resolve())
    what = hazard["what"].replace("_", " ")
    if what == "mask" and "its mask does not name" not in sentence:
        what, sentence = "a warp's operation that not all lanes of its mask reach", sentence.replace("deadlock: ", "")
    advice = ADVICE.get(
        "race in one line" if what == "race" and len(lines) == 1 and "of a block" in sentence else what, ""
    )
    return f"{begin}{what}: {sentence}{'. ' + advice if advice else ''}"


def compiler_errors(work, output):
    """The first errors, at the student's lines."""
    name = results.shown(work.file)
    kinds = re.compile(r"\berror\b|undefined reference|multiple definition")
    lines = [line.strip() for line in output.splitlines() if kinds.search(line)]
    found = []
    for line in lines:
        said = re.search(r":(\d+):(?:\d+:)? (?:fatal )?error: (.*)", line)
        found.append(f"line {said.group(1)}: {said.group(2)}" if said and name in line else line)
    return list(dict.fromkeys(found))[:5] or output.strip().splitlines()[-5:]


def compiler_warnings(work, output):
    """What the compiler says of values that are not there yet, at the student's lines; its other warnings are no help here."""
    found = re.findall(rf"{re.escape(results.shown(work.file))}:(\d+):\d+: warning: (.*uninitialized.*)", output)
    return list(dict.fromkeys(f"line {line}: {said}" for line, said in found))


def narrow_indices(work, output):
    """Indices of 32 bits that the compiler warns of, where an input may have more elements than these count: products
    of 64 bits that lose half of them, and in a vector the usual index of an element, which the hardware computes in 32."""
    lines = exercises.text_of(work.file).splitlines()
    is_vector = len(work.exercise.given) == 1
    found = []
    for number, said in re.findall(
        rf"{re.escape(results.shown(work.file))}:(\d+):\d+: warning: (conversion .*)", output
    ):
        said, line = re.sub("[‘’]", "'", said), lines[int(number) - 1]
        narrowed = re.search(r"from '(u?int64_t|long|size_t)\b.* to '(u?int32_t|int|unsigned)\b", said)
        of_grid = "to 'int' from 'unsigned int'" in said and re.search(r"blockIdx\.\w\s*\*|\*\s*blockIdx\.", line)
        if (narrowed and (is_vector or "*" in line)) or (of_grid and is_vector):
            found.append(
                f"line {number}: an index of 32 bits, and this exercise allows inputs of 2,147,483,648 elements and more; "
                "compute it with 64 bits, for example int64_t{blockIdx.x} * blockDim.x + threadIdx.x"
            )
    return list(dict.fromkeys(found))


def missing(text):
    """What the marked comments of a skeleton still say."""
    lines = enumerate(text.splitlines(), 1)
    return [f"line {number}: {line.partition(MARK)[2].strip(': ')}" for number, line in lines if MARK in line]


def judge(work, text, said, waiting=None):
    """The Report of a file that is built. said: what the compiler said of it."""
    report = Report()
    seed = int(digest(text)[:8], 16)  # other inputs for every file: nobody can know what will be asked
    if waiting:
        waiting.now = "running the kernel on small and on large inputs, in three orders of its threads, and counting"
    started = programs.Programs()
    try:
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            runs = [pool.submit(check_values, work, seed, order, started.run) for order in (None, str(seed % 1000))]
            analysis = pool.submit(analyze, work, seed, started.run)
            values = [run.result() for run in runs]
            hazards, report.counts, counted = analysis.result()
    finally:
        started.stop()
    if not any(values) and not hazards and counted:
        values.append(f"while the kernels are counted: {counted}")
    report.is_right = not any(values)
    hung = [one for one in values if ENDLESS in one]
    report.values = (hung or [one for one in values if one])[:1] + narrow_indices(work, said)
    # A launch that found what an earlier one had left behind goes wrong in ways that are no faults of their own.
    consequences = hung or any("leaves something behind" in one for one in values)
    report.hazards = [] if consequences else few(list(dict.fromkeys(hazards)))
    if report.hazards and any(FAULT.search(one) for one in report.values):
        report.values = []  # the hazard's own sentence says it better
    exchanged = ideas.exchanged(work.exercise, report.counts)
    if report.values or report.hazards:
        report.values += [one for one in (exchanged, ideas.unlinked(work.exercise, report.counts)) if one]
        report.warnings = compiler_warnings(work, said)
    else:
        report.ideas = [exchanged] if exchanged else ideas.complaints(work.exercise, report.counts)
    return report


def few(hazards):
    """The first ones: one fault mostly shows in several pairs of lines."""
    more = len(hazards) - MOST_HAZARDS
    if more < 1:
        return hazards
    return [
        *hazards[:MOST_HAZARDS],
        f"and {more} more of the kind, which the command below lists; look at the first one first",
    ]


def grade(exercise, file, name="", waiting=None):
    """The Report of a file. name: the folder below build/grade, if it is not the exercise's own."""
    unreadable = exercises.wrong_encoding(file)
    if unreadable:
        return Report(build=[unreadable])
    text = exercises.text_of(file)
    broken = rules.broken(exercise, text, skeleton(exercise))
    if broken:
        return Report(rules=broken)
    if waiting:
        waiting.now = "waiting for another grader of this exercise"
    with Workplace.of(exercise, file, name) as work:
        if waiting:
            waiting.now = "building"
        code, output = work.compile(waiting)
        if code:
            return Report(build=compiler_errors(work, output))
        foreign = [*rules.foreign(work), *symbols.refused(work)]
        if foreign:
            return Report(rules=foreign)
        code, linked = work.link(waiting)
        if code:
            return Report(build=compiler_errors(work, linked))
        return judge(work, text, work.said_of_file(output), waiting)


# --- What the student sees ---------------------------------------------------------------------------------


def width():
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    return max(40, min(columns, WIDTH))


def wrapped(text, mark="  - "):
    return textwrap.fill(
        text,
        width(),
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_on_hyphens=False,
        break_long_words=False,
    )


def coloured(text, colour):
    """On a terminal; NO_COLOR=1 leaves it out."""
    codes = {"green": "1;32", "red": "1;31"}
    return f"\033[{codes[colour]}m{text}\033[0m" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text


def kind_of(report):
    kinds = {
        "it breaks a rule": report.rules,
        "it cannot be built": report.build,
        "the values are wrong": report.values,
        "there are hazards": report.hazards,
        "the values are right, but the counters do not show the idea": report.ideas,
    }
    return next(kind for kind, found in kinds.items() if found)


def remind(text, is_skeleton):
    """What the comments that begin with YOUR CODE say: to do, or left over."""
    left = missing(text)
    if left and is_skeleton:
        print("To do, as the comments say:")
        for line in left:
            print(wrapped(line))
    elif left:
        lines = ", ".join(line.partition(":")[0] for line in left)
        print(wrapped(f"A reminder: a comment {MARK} still stands in {lines}. Delete it when that is done.", ""))


def not_done():
    """The first exercise of the course that is not done, or None."""
    known = exercises.progress()
    return next((one for one in exercises.course() if state(one, known)[0] != "done"), None)


def following():
    """The line that leads on: the next exercise of the course that is not done."""
    one = not_done()
    if not one:
        return "All exercises are done."
    job = "grade" if one.file.is_file() else "exercise"
    return f"Next: make {job} S={one.asked}, {one.title}."


def print_report(exercise, report, seconds):
    name = results.shown(exercise.file)
    text = exercises.text_of(exercise.file)
    if report.passed:
        said = "Right values in every order, no hazard, and the counters show the idea."
        print(
            wrapped(f"{name}: passed. {said} ({seconds:.0f} s)", "").replace("passed.", coloured("passed.", "green"), 1)
        )
        for line in ideas.compared(exercise, report.counts):
            print(line)
        return remind(text, False)
    begin = wrapped(f"{name}: not yet: {kind_of(report)}. ({seconds:.0f} s)", "")
    print(begin.replace("not yet:", coloured("not yet:", "red"), 1))
    for line in report.lines:
        print(wrapped(f"{exercise.stage.name} {line}" if report.lines is report.ideas else line))
    for line in report.warnings:
        print(wrapped(f"the compiler warns: {line}"))
    remind(text, text == skeleton(exercise))
    own = f"make try S={exercise.asked} {example(exercise)}"
    print(wrapped(f"A hint: make hint S={exercise.asked}. Your own input, with printf: {own}", ""))
    print(f"Your kernel line by line: {Workplace(exercise, exercise.file).command}")


def example(exercise):
    """A small input of the exercise's operator, for ARGS."""
    return f'ARGS="{" ".join(map(str, options(exercise.stage.ladder.small)))}"'


def built_for_gpu(one):
    """The stage's own program, or the ladder's."""
    target, pattern, given = stage.target(one)
    if machine.make("BACKEND=cuda", target, quiet=True)[0]:
        raise Unusable(f"nvcc does not build {one.id}")
    return next((ROOT / "build/cuda").glob(pattern))


def timed(program, work, *given):
    """Microseconds on the ladder's main input."""
    csv = work.path / "time.csv"
    csv.unlink(missing_ok=True)
    code, output = programs.Programs().run([program, *given, "--csv", csv])
    if code:
        raise Unusable(f"{results.shown(program)} fails there: {output.strip()[-400:]}")
    return float(results.read(csv)[0]["microseconds"])


def time_on_gpu(exercise):
    """Prints the time beside the stage's own, where there are a GPU and nvcc; what goes wrong there fails nothing."""
    if not machine.gpu():
        return
    try:
        machine.find_nvcc()
        work = Workplace(exercise, exercise.file)
        code, output = work.make("cuda", "program")
        if code:
            raise Unusable(f"nvcc does not build it:\n{output[-800:]}")
        mine = timed(work.built("cuda"), work)
        if exercise.stage.is_left_out:
            return print(f"On this {machine.gpu()}: yours {mine:.2f} µs.")
        theirs = timed(built_for_gpu(exercise.stage), work, *stage.target(exercise.stage)[2].split())
        print(f"On this {machine.gpu()}: yours {mine:.2f} µs, the stage's {theirs:.2f} µs.")
    except (Unusable, OSError, ValueError, KeyError, StopIteration) as error:
        print(f"No time on the GPU: {error}")


def grade_and_remember(exercise):
    if not exercise.file.is_file():
        raise Unusable(f"there is no {results.shown(exercise.file)} yet: make exercise S={exercise.asked} writes it")
    if programs.is_first_build():
        print("The first time, the CPU device and the harness are built: two minutes on two cores.", flush=True)
    if said := sandbox.said_once():
        print(wrapped(said, ""), flush=True)
    begun = time.monotonic()
    text = exercises.text_of(exercise.file)
    with programs.Waiting() as waiting:
        report = grade(exercise, exercise.file, waiting=waiting)
    print_report(exercise, report, time.monotonic() - begun)
    said = "" if report.passed else report.lines[0]
    with exercises.changed_progress() as known:
        known["grades"][exercise.id] = [digest(text), said]
    if report.passed:
        time_on_gpu(exercise)
        print(following())
    return report.passed


def state(exercise, known):
    """(done, tried or open; what is to be said of it)"""
    if not exercise.file.is_file():
        return "open", ""
    text = exercises.text_of(exercise.file)
    graded, said = known["grades"].get(exercise.id, ["", ""])
    if graded != digest(text):
        return "tried", "not graded since it was changed" if graded else "not graded yet"
    return ("tried", said) if said else ("done", "")


def print_table():
    known = exercises.progress()
    rows = [(exercise, *state(exercise, known)) for exercise in exercises.course()]
    for exercise, done, said in rows:
        line = f"  {done:<6} {exercises.named(exercise)}"
        room = min(60, max(20, width() - len(line) - 2)) if sys.stdout.isatty() else 60
        said = textwrap.shorten(said, room, placeholder=" …")
        print(
            line.replace(done, coloured(done, "green"), 1) if done == "done" else line,
            end=f": {said}\n" if said else "\n",
        )
    counts = {name: sum(done == name for exercise, done, said in rows) for name in ("done", "tried", "open")}
    print(f"{counts['done']} of {len(rows)} done, {counts['tried']} tried, {counts['open']} open", end="")
    print(f". {following()}")


def run(given):
    if not given.exercise:
        return print_table()
    return 0 if grade_and_remember(exercises.find(given.exercise)) else NOT_YET


def watch(given):
    """Grades the file each time that it is saved, until Ctrl-C."""
    exercise, seen = exercises.find(given.exercise), None
    while True:
        changed = exercise.file.stat().st_mtime_ns if exercise.file.is_file() else None
        if changed != seen or changed is None:
            seen = changed
            graded_now(exercise)
        time.sleep(0.5)


def graded_now(exercise):
    print(f"--- {time.strftime('%H:%M:%S')}, {results.shown(exercise.file)}", flush=True)
    passed = grade_and_remember(exercise)
    print(f"Watching {results.shown(exercise.file)}: save it, and it is graded. Ctrl-C ends this.", flush=True)
    return passed


def begin(given):
    """Writes the exercise, the first one that is not done, and grades it at every save; after a pass the next one."""
    exercise = exercises.find(given.exercise) if given.exercise else not_done()
    while exercise:
        if not exercise.file.is_file():
            write(exercise)
        print(f"Open {results.shown(exercise.file)} in your editor: its first comment is the task. {page_of(exercise)}")
        print(
            f"It is graded at every save. A hint: make hint S={exercise.asked}, in another terminal. Ctrl-C ends this."
        )
        sys.stdout.flush()
        seen = passed = None
        while not passed:
            changed = exercise.file.stat().st_mtime_ns
            if seen not in (None, changed):
                passed = graded_now(exercise)
            seen = changed
            time.sleep(0.5)
        exercise = not_done()
    print("All exercises are done.")


def page_of(exercise):
    return f"The page that leads to it: {results.shown(exercise.stage.page)}."


def try_out(given):
    """Runs the student's file on one input, with what its kernels print."""
    exercise = exercises.find(given.exercise)
    if not exercise.file.is_file():
        raise Unusable(f"there is no {results.shown(exercise.file)} yet: make exercise S={exercise.asked} writes it")
    with programs.Waiting() as waiting, Workplace.of(exercise, exercise.file) as work:
        waiting.now = "building"
        code, output = work.make("cpu", "program", waiting=waiting)
    if code:
        for line in compiler_errors(work, output):
            print(wrapped(line))
        return NOT_YET
    words = os.environ.get("ARGS", "").split() or [str(word) for word in options(exercise.stage.ladder.small)]
    command = [str(work.built("cpu")), "--no-small", *words]
    print(f"{results.shown(command[0])} {' '.join(command[1:])}", flush=True)
    code = subprocess.run(command, cwd=ROOT).returncode
    return NOT_YET if code == 1 else code


# --- The small jobs ------------------------------------------------------------------------------------------


def write_skeleton(given):
    exercise = exercises.find(given.exercise)
    if exercise.file.exists():
        file = results.shown(exercise.file)
        raise Unusable(f"{file} is there already, and stays as it is; move it away to begin anew")
    write(exercise)
    print(f"make grade S={exercise.asked} checks it.")


def write(exercise):
    exercises.folder_of(exercise.file)
    text = skeleton(exercise)
    exercise.file.write_text(text, encoding="utf-8")
    print(f"{results.shown(exercise.file)}: {exercise.title}. It compiles, and is not right yet:")
    for line in missing(text):
        print(wrapped(line))


def hint(given):
    exercise = exercises.find(given.exercise)
    with exercises.changed_progress() as known:
        shown = max(0, min(known["hints"].get(exercise.id, 0), len(exercise.hints) - 1))
        known["hints"][exercise.id] = shown + 1
    print(f"Hint {shown + 1} of {len(exercise.hints)}:")
    for paragraph in exercise.hints[shown].split("\n\n"):
        print(wrapped(" ".join(paragraph.split()), "  "))


def solution(given):
    one = exercises.find(given.exercise).stage
    if one.is_left_out:
        raise Unusable(f"this tree has no solutions; make hint S={one.asked} helps, and your instructor has them")
    print(one.source.read_text(encoding="utf-8"))
    print(f"// {results.shown(one.source)}; {results.shown(one.page)} explains it.")
