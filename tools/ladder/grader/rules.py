"""The rules for the text of a student's file: what no exercise needs, and what would only look like a solution.

A kernel that is graded must be the student's own, and it must be kernels that compute. So the file includes what its
skeleton includes, moves nothing between host and device (on the CPU device the host cannot touch the device's memory,
as on a GPU), and leaves the line that describes the stage as it is. What a text can hide, the object cannot: symbols.py.
"""

import pathlib
import re
import shlex

from ..core import results
from ..core.ladders import ROOT

# What every exercise may include.
HEADERS = {
    *("cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_pipeline.h", "cooperative_groups.h", "cuda_runtime_api.h"),
    *(
        "cooperative_groups/reduce.h",
        "cstdint",
        "cstdio",
        "cstddef",
        "algorithm",
        "cmath",
        "limits",
        "type_traits",
        "utility",
    ),
}
# (what stands in the code, why it may not)
FORBIDDEN = [
    (
        r"\bcuda(Memcpy|Memset|Malloc|Host|MemPrefetch)\w*|\b__managed__\b",
        "moves or sets memory from the host; the launcher gets all memory that it needs, and only kernels may fill it",
    ),
    (
        r"\bcuda(LaunchHostFunc|StreamAddCallback|Graph|Import|Ipc)\w*",
        "makes the host do something; only kernels may compute",
    ),
    (
        r"\bcuda(Device|Stream|Event)Synchronize\b",
        "waits for the kernel; leave it out: the launcher returns at once, and the grader waits itself",
    ),
    (
        r"\bcuda(Profiler|DeviceReset)\w*|\bsimt\b|\b__SIMT__\b|\bSIMT_\w+|\b__SANITIZE\w*",
        "would change how the grader looks at your kernels",
    ),
    (r"\basm\b|\b__asm\w*", "writes machine code; the exercise is about CUDA C++"),
    (
        r"\b__attribute\w*|\b_Pragma\b|\[\[(?!\s*(maybe_unused|nodiscard|fallthrough|likely|unlikely|noreturn)\s*\]\])",
        "would change how the file is compiled",
    ),
    (r"\bR\"|%:|<:|\?\?=|##", "is a form of text that the grader does not read; write it plainly"),
    (
        r"\bsetenv\b|\bnccl(All|Reduce|Broadcast|Send|Recv|Group|Comm|Mem)\w*",
        "is the host's preparation, which the skeleton's headers have made; only kernels may compute",
    ),
    (r"\b(thrust|cub|cublas\w*)\s*::", "calls a library that does the exercise's work"),
]
DIRECTIVES = set("include define undef if ifdef ifndef elif else endif pragma error warning".split())
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', re.S)
STAGE = re.compile(r"inline const Stage<.*?\};", re.S)


def spliced(text):
    """Lines that end in a backslash joined with the next one, as the compiler joins them; every other line where it was."""
    lines, begin, joined = [], "", 0
    physical = text.split("\n")
    for number, line in enumerate(physical, 1):
        goes_on = re.search(r"\\[ \t]*$", line)
        if goes_on and number < len(physical):
            begin, joined = begin + line[: goes_on.start()], joined + 1
            continue
        lines += [begin + line, *[""] * joined]
        begin, joined = "", 0
    return "\n".join(lines)


def without_comments(text, strings=True):
    """The code alone, every line where it was; without strings, too, if asked."""

    def blank(match):
        word = match.group()
        if word[0] in "\"'" and strings:
            return word
        return '""' if word[0] == '"' else re.sub(r"[^\n]+", " ", word)

    return TOKEN.sub(blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def same(text):
    """The text of a declaration, however it is broken into lines and described, and whatever launch<...> is given."""
    text = re.sub(r'(stage\{\s*"[^"]*",\s*)"[^"]*"', r'\1""', text)
    return re.sub(r"\blaunch<[^<>]*>", "launch", re.sub(r"\s+", "", text))


def included(text):
    """(what stands after #include, the line) of each."""
    found = re.finditer(r"^[ \t]*#[ \t]*include[ \t]*(.*?)[ \t]*$", text, re.M)
    return [(match.group(1), line_of(text, match.start())) for match in found]


def broken(exercise, text, skeleton):
    """What is against the rules, as sentences that begin with a line."""
    joined = spliced(text)
    code, bare = without_comments(joined), without_comments(joined, strings=False)
    found = [*headers(exercise, code, without_comments(skeleton)), *directives(bare)]
    for pattern, why in FORBIDDEN:
        for match in re.finditer(pattern, bare):
            if not re.search(pattern, without_comments(skeleton, strings=False)):
                word = " ".join(match.group().rstrip("({< ").split())
                found.append(f"line {line_of(bare, match.start())}: {word} {why}")
    (wanted,) = STAGE.findall(without_comments(skeleton))
    given = STAGE.findall(code)
    if [same(one) for one in given] != [same(wanted)]:
        why = "must stay as it was, since it says which inputs the stage accepts"
        found.append(f"the declaration of the stage {why}: {' '.join(wanted.split())}")
    namespace = re.search(r"^namespace [\w:]+ \{", skeleton, re.M).group()
    if namespace not in code:
        found.append(f'"{namespace}" must stay, since the grader looks for the stage there')
    return found


def headers(exercise, code, skeleton):
    allowed = {name for name, line in included(skeleton)} | {f"<{name}>" for name in HEADERS}
    source = str(exercise.stage.source.relative_to(ROOT))
    for name, line in included(code):
        if name in allowed:
            continue
        path = name.strip('"<>')
        if path and (source.endswith(path.lstrip("./")) or path.endswith((".cu", "kernel.cuh"))):
            yield f"line {line}: includes {name}: that is a solution, and yours must be your own"
        else:
            yield f"line {line}: includes {name}, which the skeleton does not: write here what you need of it"


def directives(bare):
    for match in re.finditer(r"^[ \t]*#[ \t]*(\w*)(.*)$", bare, re.M):
        name, rest = match.groups()
        if (name and name not in DIRECTIVES) or (name == "pragma" and not re.match(r"\s+(unroll|once)\b", rest)):
            yield f"line {line_of(bare, match.start())}: #{name}{rest.rstrip()} would change how the file is compiled"


def foreign(work):
    """What the compiler has read beside what the skeleton includes, the CPU device's headers and the system's."""
    judge = set(read_by(work, work.built("judge").parent / "judge.cu.o.d"))
    system = {path.parent for path in judge if ROOT not in path.parents} | {pathlib.Path("/usr")}
    known = {*judge, work.file.resolve(), work.path / "student/student.cu"}
    for listed in work.objects:
        for path in read_by(work, listed.with_name("student.cu.o.d")):
            if path in known or ROOT / "simt" in path.parents or system & set(path.parents):
                continue
            yield f"the compiler read {results.shown(path)} for your file, and yours must be your own"
            known.add(path)


def read_by(work, listed):
    """The files that a list of make's names."""
    first = listed.read_text(encoding="utf-8").replace("\\\n", " ").partition("\n")[0]
    return [(work.path / word).resolve() for word in shlex.split(first.partition(":")[2])]
