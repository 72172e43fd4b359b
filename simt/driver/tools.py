"""g++ and the other programs that simtcc runs: where they are, and what they are told beside their arguments."""

import contextlib
import hashlib
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from . import SIMT
from .failure import Failure
from .messages import explain

CHECKER = [SIMT / "checked_g++", SIMT / "checked_g++.py", SIMT / "execution_space.py"]


def ccache():
    """ccache where it is installed and has a place for what it keeps: it saves g++ from compiling the same text twice."""
    place = os.environ.get("CCACHE_DIR") or os.path.expanduser("~")
    return ["ccache"] if shutil.which("ccache") and os.access(place, os.W_OK) else []


def file_state(path):
    try:
        state = os.stat(path)
        return f"{os.path.realpath(path)} {state.st_size} {state.st_mtime_ns}"
    except OSError:
        return str(path)


def processor():
    """What -march=native means here: what ccache keeps must not be used on another kind of processor."""
    try:
        told = re.findall(
            r"^(?:flags|Features|CPU implementer|CPU part)\s*: .*", Path("/proc/cpuinfo").read_text(), re.MULTILINE
        )
    except OSError:
        told = []
    # An Arm processor may have cores of two kinds.
    return hashlib.sha256("\n".join(sorted(set(told))).encode()).hexdigest()[:16] if told else platform.node()


class Tools:
    """Runs the tools for a command, with a folder for what is temporary."""

    def __init__(self, command, folder):
        self.command = command
        self.folder = folder
        self.gxx = self.find_gxx()
        self.machine = self.ask_gxx("-dumpmachine").split("-")[0]  # that it compiles for

    def ask_gxx(self, option):
        return subprocess.run([*self.gxx, option], capture_output=True, text=True).stdout.strip()

    def find_gxx(self):
        chosen = self.command.compiler or os.environ.get("CXX")
        if chosen and os.path.isdir(chosen):
            chosen = os.path.join(chosen, "g++")
        candidates = [[chosen]] if chosen and os.path.isfile(chosen) else [shlex.split(chosen)] if chosen else None
        found = None
        for gxx in candidates or [["g++"], ["g++-15"], ["g++-14"], ["g++-13"], ["g++-12"]]:
            try:
                answer = subprocess.run([*gxx, "-dumpfullversion"], capture_output=True, text=True)
            except OSError:
                continue
            version = answer.stdout.strip()
            if answer.returncode == 0 and version.split(".")[0].isdigit() and int(version.split(".")[0]) >= 12:
                return gxx
            found = found or f"{shlex.join(gxx)} is {'version ' + version if version else 'not g++'}"
        raise Failure(
            f"{found or (chosen or 'g++') + ' is not installed'}; the CPU device needs g++ 12 or newer: "
            "apt-get install g++"
        )

    def run(self, arguments, edit_errors=None):
        """Run a tool to its end; what it writes on stderr is passed on, through edit_errors where that is given."""
        if self.command.verbose:
            print("#$", shlex.join(arguments), file=sys.stderr)
        if self.command.dry:
            return
        sys.stdout.flush()
        # The folder counts, whatever ccache is set to: an object of another one would name its files.
        own = {"CCACHE_NAMESPACE": self.namespace(), "CCACHE_HASHDIR": "true"}
        environment = {**own, **os.environ, "TMPDIR": self.folder}
        environment["SIMT_GXX"], environment["SIMT_PYTHON"] = shlex.join(self.gxx), sys.executable
        errors = subprocess.PIPE if edit_errors else None
        # A group of its own: when simtcc is stopped, the whole group of compilers is.
        with subprocess.Popen(arguments, stderr=errors, env=environment, start_new_session=True) as process:
            try:
                written = (process.communicate()[1] or b"").decode("utf-8", "surrogateescape")
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                raise
        if edit_errors:
            sys.stderr.buffer.write(edit_errors(written).encode("utf-8", "surrogateescape"))
            sys.stderr.flush()
        if process.returncode:
            explain(written)
            raise Failure("")

    def namespace(self):
        """What ccache must tell apart: the processor, and what stands behind checked_g++.py."""
        parts = [processor(), *map(file_state, [shutil.which(self.gxx[0]) or self.gxx[0], *CHECKER])]
        return hashlib.sha256("\n".join([*parts, *self.gxx]).encode()).hexdigest()[:16]

    def run_gxx(self, arguments, edit_errors=str, cached=False, checked=False):
        color = ["-fdiagnostics-color=always"] if sys.stderr.isatty() else []
        gxx = [str(CHECKER[0])] if checked else self.gxx
        self.run([*(ccache() if cached else []), *gxx, *color, *arguments], edit_errors)
