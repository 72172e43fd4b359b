"""What a student's object has and what it asks for, as nm lists it: kernels and a launcher need little.

A text can hide a call in many ways, and the linker's symbols cannot. The object may define what is in its own namespace,
and may ask for what kernels, launchers and the headers that they may include ask for.
"""

import functools
import os
import re
import subprocess

from ..core.ladders import ROOT, Unusable

# Of the C++ library and of the compiler; the CPU device's are read from its headers.
ALLOWED = re.compile(
    r"_GLOBAL_OFFSET_TABLE_|operator (new|delete)(\[\])?\(|__cxa_\w+|_Unwind_Resume|__gxx_personality_v0|__dso_handle|"
    r"__stack_chk_fail|(vtable|typeinfo|typeinfo name|guard variable|VTT) for |DW\.ref\.|"
    r"std::(__throw_\w+|terminate|exception|bad_\w+|\w+_(error|argument)|out_of_range|__cxx11::basic_string<char|_Rb_tree_\w+|"
    r"_Hash_bytes|__detail::\w+|nothrow|__exception_ptr::\w+)\b|"
    r"__ubsan_\w+|__tls_get_addr|_?_?mem(cpy|set|move|cmp)(_chk)?$|__assert_fail|"
    r"(__)?(printf|vprintf|puts|putchar|snprintf|strlen)(_chk)?$|stderr$|stdout$|clock_gettime$|"
    r"a?(sin|cos|tan)h?(pi)?f?$|(exp|exp2|exp10|expm1|log|log2|log10|log1p|sqrt|rsqrt|cbrt|rcbrt|pow|fmod|floor|ceil|round|trunc|"
    r"rint|nearbyint|fabs|fma|fmax|fmin|hypot|erf|erfc|erfcx|tgamma|lgamma|ldexp|frexp|scalbn|ilogb|logb|nextafter|copysign|"
    r"remainder|lrint|llrint|lround|llround|atan2|sincos|fdim|modf)f?$|"
    r"(threadIdx|blockIdx|blockDim|gridDim|warpSize)$"
)
# Calls of CUDA's that a launcher may make: none moves memory, none waits, none reports anything to the grader.
OF_CUDA = re.compile(
    r"cuda(GetDevice|DeviceGetAttribute|GetDeviceProperties\w*|GetErrorName|GetErrorString|GetLastError|PeekAtLastError|"
    r"FuncSetAttribute|FuncGetAttributes|LaunchKernel\w*|LaunchCooperativeKernel|Occupancy\w+|FuncSetCacheConfig)\b"
)
# What the headers of ladders with several devices call, and a student's text may not name.
OF_ENGINE = re.compile(
    r"cuda(Malloc|Free|Memcpy|SetDevice|DeviceSynchronize)\b|setenv$|"
    r"nccl(GroupStart|GroupEnd|CommInitAll|DevCommCreate|MemAlloc|CommWindowRegister|GetErrorString)$"
)
OF_COUNTING = re.compile(r"__(tsan|sanitizer_cov)_\w+$")  # in the object that is counted, and in no other


@functools.cache
def of_the_device():
    """The names that the CPU device's headers mention, which are all that a file may ask of it."""
    found = set()
    for path in (ROOT / "simt").glob("**/include/**/*"):
        if path.is_file():
            found.update(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace")))
    return found


def listed(file):
    """(kind, name, the file that it stands in) of the symbols of an object that others see or must provide."""
    done = subprocess.run(["nm", "-C", "-l", str(file)], capture_output=True, text=True)
    if done.returncode:
        raise Unusable(f"nm cannot read the student's object: {done.stderr.strip()}")
    lines = done.stdout.splitlines()
    found = (re.match(r"[0-9a-f ]{16} ([A-Zuwvi]) ([^\t]*)(?:\t(.*):\d+)?", line) for line in lines)
    return list(dict.fromkeys(match.groups("") for match in found if match))


def base(name):
    """block_barrier of simt::block_barrier(simt::Vote, int), also with what the template returns in front."""
    plain, depth = "", 0
    for letter in name:
        depth += (letter == "<") - (letter == ">")
        plain += letter if not depth and letter != ">" else ""
    return plain.partition("(")[0].split(" ")[-1]


def is_allowed(name, space, has_engine=False):
    named = base(name)
    if named.startswith("simt::"):
        return all(part in of_the_device() for part in named.split("::")[1:])
    if has_engine and OF_ENGINE.match(name):
        return True
    return bool(OF_CUDA.match(name) or ALLOWED.match(name)) or named.startswith(("ladder::call", f"{space}::"))


def sentence(kind, name, space, is_counted, has_engine=False, is_own=True):
    """What is wrong with a symbol; "" if nothing is. is_own: whether the student's file has it, and no header."""
    short = name if len(name) < 80 else f"{name[:76]} ..."
    if kind in "Uw":
        hooks = is_counted and OF_COUNTING.match(name)
        if not hooks and not is_allowed(name, space, has_engine):
            return f"the file calls {short}, which has nothing to do with a kernel"
        return ""
    named = base(name)
    defines = kind in "TBDRCG" or (kind in "WVu" and is_own and named != "simt::shared")
    if defines and not named.startswith((f"{space}::", "ladder::judged::launch")):
        return f"the file defines {short} outside its namespace {space}"
    return ""


def refused(work):
    """Sentences about symbols that no kernel needs."""
    engine, own = bool(work.exercise.stage.ladder.engine), {str(file) for file in work.students}
    found = [
        sentence(kind, name, work.space, file == work.objects[-1], engine, os.path.realpath(place) in own)
        for file in work.objects
        for kind, name, place in listed(file)
    ]
    return [one for one in dict.fromkeys(found) if one]
