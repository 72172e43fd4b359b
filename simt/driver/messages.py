"""g++'s messages: in the words of the student's text, and with a sentence where the device lacks something."""

import re

from .absent import ABSENT_NAMES, NAMESPACES, REMOVED_NAMES, refuse_header, refuse_toolkit
from .failure import Failure


def messages_of(errors):
    """g++'s messages, each with its context before it and its notes after it."""
    context = r"\S[^\n]*: (?:In|At) [^\n]*\n|In file included from [^\n]*\n| +from [^\n]*\n"
    return re.split(rf"^(?=(?:{context})*[^\s|][^\n]*?(?:error|warning): )", errors, flags=re.MULTILINE)


def without_what_c_allows(errors):
    kept = "".join(message for message in messages_of(errors) if "[-fpermissive]" not in message)
    return kept if re.search("error: |warning: ", kept) else ""


def in_the_students_words(errors):
    """g++'s messages without the names of rewritten declarations, and without those that follow from an earlier one."""
    kept, has_error = [], False
    for message in messages_of(errors):
        if "-Wvla" in message and "simt_T_" in message:
            message = message.replace("warning: ", "error: ", 1)
        is_error = "error: " in message
        if not (is_error and has_error and re.search("simt_[BST]_|simt::shared", message)):
            kept.append(message)
        has_error = has_error or is_error
    return re.sub(r"simt_T_(\w+)", r"\1", "".join(kept))


def explain(errors):
    """Add a sentence to g++'s message where the device, not the program, lacks something."""
    errors = re.sub(r"\x1b\[[\d;]*[mK]", "", errors)
    kernels = re.search(
        r"^([^\s:]+):\d+:\d+: error: (?:['‘]__(?:global|device|shared|constant)__['’]|[^\n]*['‘]<['’][^\n]*\n[^\n]*<<<)",
        errors,
        re.MULTILINE,
    )
    if kernels:
        raise Failure(f"{kernels[1]} has code for the device: name it .cu, or compile it with -x cu")
    absent = re.search(r"fatal error: ([^\s:]+): No such file or directory", errors)
    if absent and absent[1] == "boost/context/detail/fcontext.hpp" or "-lboost_context" in errors:
        raise Failure(
            "Boost.Context, with which the CPU device runs threads, is missing: apt-get install libboost-context-dev"
        )
    if absent and absent[1] == "backtrace.h" or "-lbacktrace" in errors:
        raise Failure(
            "libbacktrace, with which the CPU device names source lines, is missing: it is part of g++'s package "
            "libgcc-dev on Debian and Ubuntu"
        )
    if absent and absent[1].startswith("helper_"):
        raise Failure(f"{absent[1]} belongs to NVIDIA's cuda-samples, not to CUDA; add -I with its folder Common")
    if absent:
        refuse_header(absent[1])
    for name in re.findall(
        r"error: [^\n]*?['‘]([\w:]+)['’][^\n]* (?:declared|name a type|a member of|incomplete)", errors
    ):
        if REMOVED_NAMES.fullmatch(name):
            raise Failure(
                f"CUDA has no {name} since compute capability 7.0: write {name}_sync(0xffffffff, ...), whose first argument "
                "names the lanes that take part"
            )
        for pattern, sentence in ABSENT_NAMES:
            if re.fullmatch(pattern, name):
                raise Failure(f"the CPU device does not have {sentence} ({name})")
    owners = "|".join(NAMESPACES)
    for pattern in (
        rf"error: ['‘](?P<name>\w+)['’] (?:is not a member of|in namespace|has not been declared in) ['‘](?P<owner>{owners})['’]",
        rf"error: ['‘](?P<owner>{owners})::(?P<name>\w+)['’] has not been declared",
        rf"error: expected template-name[^\n]*\n[^\n]*\b(?P<owner>{owners})::(?P<name>\w+)<",
    ):
        if absent := re.search(pattern, errors):
            owner, name = absent["owner"], absent["name"]
            raise Failure(f"the CPU device's {NAMESPACES[owner]} has no {owner}::{name}")
    refuse_toolkit(re.findall(r"^(?:In file included from| +from)? *(/[^:\n]+):\d+", errors, re.MULTILINE))
