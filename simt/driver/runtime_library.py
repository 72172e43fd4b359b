"""The runtime library that programs are linked with, built where it is out of date."""

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from . import SIMT
from .failure import Failure
from .messages import explain


def runtime_library(command, gxx):
    """The path of the library for a command, built where it is out of date; one simtcc at a time."""
    build = Path(os.environ.get("SIMT_BUILD_DIR") or SIMT.parent / "build/simt").resolve()
    library = build / command.build["library"]
    if command.dry:
        return str(library)
    try:
        build.mkdir(parents=True, exist_ok=True)
        lock = open(build / "lock", "w")
    except OSError as error:
        raise Failure(f"{build}: {error.strerror}; set SIMT_BUILD_DIR to a folder for the runtime library")
    if not shutil.which("make"):
        raise Failure("make, which builds the runtime library, is not installed: apt-get install make")
    place = os.path.relpath(build, SIMT)  # the checkout may lie in a folder with blanks, which make cannot name
    if re.search(r"\s", place):
        raise Failure(f"SIMT_BUILD_DIR={build}: make needs a path without blanks")
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make = [
            "make",
            "-s",
            "-C",
            str(SIMT),
            f"-j{os.cpu_count()}",
            f"BUILD={place}",
            f"CXX={shlex.join(gxx)}",
            f"{place}/{library.name}",
        ]
        code, said = watch(make, environment)
    if code:
        explain(said)
        raise Failure(f"cannot build the runtime library in {build}")
    return str(library)


def watch(command, environment):
    """(exit code, output) of a command. Its lines are shown while it runs on a terminal, else if it fails."""
    is_shown = sys.stderr.isatty()
    said = []
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout:
            said.append(line)
            if is_shown:
                sys.stderr.write(line)
                sys.stderr.flush()
    if process.returncode and not is_shown:
        sys.stderr.writelines(said)
    return process.returncode, "".join(said)
