"""The runtime library that programs are linked with, built where it is out of date."""

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from . import SIMT, TOOLKIT
from .failure import Failure
from .jobs import jobs
from .messages import explain


def linked_with(command, gxx):
    """What a program is linked with after its own objects."""
    link = command.build["link"]
    if command.build["kernels_apart"]:  # hooks that the program's own code calls, wherever it stands
        library = str(TOOLKIT / "lib64" / command.build["library"]) if TOOLKIT else runtime_library(command, gxx)
        link = ["-Wl,--whole-archive", library, "-Wl,--no-whole-archive", *link]
    elif TOOLKIT:  # as with a CUDA toolkit: CMake looks for these two words
        return [f"-L{TOOLKIT / 'lib64'}", "-lcudart_static", *link]
    else:
        link = [runtime_library(command, gxx), *link]
    return [*link, *([] if TOOLKIT else ["-lboost_context"]), "-lbacktrace", "-lpthread"]


def runtime_library(command, gxx):
    """The path of a checkout's library for a command, built where it is out of date; one simtcc at a time."""
    build = Path(os.environ.get("SIMT_BUILD_DIR") or SIMT.parent / "build/simt").resolve()
    library = build / command.build["library"]
    if command.dry:
        return str(library)
    if not shutil.which("make"):
        raise Failure("make, which builds the runtime library, is not installed: apt-get install make")
    place = os.path.relpath(build, SIMT)  # the checkout may lie in a folder with blanks, which make cannot name
    if re.search(r"\s", place):
        raise Failure(f"SIMT_BUILD_DIR={build}: make needs a path without blanks")
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    make = ["make", "-s", "-C", str(SIMT), f"BUILD={place}", f"CXX={shlex.join(gxx)}", f"{place}/{library.name}"]
    try:
        build.mkdir(parents=True, exist_ok=True)
        lock = open(build / "lock", "w")
    except OSError as error:  # others' files, which need not be written if they are up to date
        if subprocess.run([*make, "-q"], env=environment, capture_output=True).returncode == 0:
            return str(library)
        raise Failure(f"{build}: {error.strerror}; set SIMT_BUILD_DIR to a folder for the runtime library")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, said = watch(
            [*make, f"-j{jobs()}"], environment, " for analyses" if command.build["kernels_apart"] else ""
        )
    if code:
        explain(said)
        raise Failure(f"cannot build the runtime library in {build}")
    return str(library)


def watch(command, environment, purpose):
    """(exit code, output) of make. Its lines are shown while it runs on a terminal, else if it fails."""
    is_shown = sys.stderr.isatty()
    said = []
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout:
            if not said:
                sentence = f"simtcc: building the CPU device{purpose}, which takes a minute or two; later runs need not"
                print(sentence, file=sys.stderr, flush=True)
            said.append(line)
            if is_shown:
                sys.stderr.write(line)
                sys.stderr.flush()
    if process.returncode and not is_shown:
        sys.stderr.writelines(said)
    return process.returncode, "".join(said)
