"""The programs that a grade builds and starts: progress while they take long, and an end for all of them when one hangs."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time

from ..core import machine, results
from ..core.ladders import ROOT
from . import sandbox

SECONDS = 30  # of computing, for one run of a program, and for a kernel without progress; right ones take two or three
HANGS = "cudaErrorLaunchTimeout"
PATIENCE = 10  # seconds of silence


class Waiting:
    """Says what a job is at, once it has taken some seconds: on a terminal in one line, else in a line now and then."""

    def __init__(self, stream=None, patience=PATIENCE):
        self.stream, self.patience = stream or sys.stdout, patience
        self.now, self.begun, self.shown = "", time.monotonic(), False
        self.ended = threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.ended.set()
        self.thread.join()
        if self.shown and self.stream.isatty():
            self.say("\r\033[K")

    def say(self, text):
        self.stream.write(text)
        self.stream.flush()

    def watch(self):
        is_terminal = self.stream.isatty()
        while not self.ended.wait(1 if is_terminal and self.shown else self.patience):
            line = f"{self.now}, {time.monotonic() - self.begun:.0f} s"
            self.say(f"\r\033[K{line[:100]}" if is_terminal else f"{line}\n")
            self.shown = True


class Programs:
    """Runs programs in several threads. When one of them hangs, none is waited for any longer."""

    def __init__(self):
        self.running, self.hung, self.lock = [], False, threading.Lock()

    def run(self, command, **environment):
        """(exit code, output); 124 if it does not end or another one hangs."""
        with self.lock:
            if self.hung:
                return 124, ""
            process = subprocess.Popen(
                ["sh", "-c", f'ulimit -t {SECONDS}; exec "$@"', "sh", *map(str, command)],
                cwd=ROOT,
                env=sandbox.environment(**{"SIMT_TIMEOUT": str(SECONDS), **environment}),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that what it starts ends with it
            )
            self.running.append(process)
        try:
            output = process.communicate(timeout=5 * SECONDS)[0].decode(
                errors="replace"
            )  # if it waits, or shares cores
        except subprocess.TimeoutExpired:
            self.stop(process)
            output = process.communicate()[0].decode(errors="replace")
        with self.lock:
            self.running.remove(process)
        out_of_time = process.returncode == -signal.SIGXCPU or "SIGXCPU" in output
        if HANGS in output or out_of_time:
            self.stop()
        return (124 if out_of_time or process.returncode == -signal.SIGKILL else process.returncode), output

    def stop(self, *processes):
        """Ends these, or all of them; none is started any more."""
        with self.lock:
            self.hung = True
            for process in processes or self.running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def is_first_build():
    """Whether the CPU device and the harness are still to be built, which takes minutes."""
    return not (ROOT / "build/cpu/libcommon.a").is_file()


def make(waiting, *words, before=()):
    """(exit code, what make said); what it compiles is what is waited for. before: the start of the command."""
    given = sandbox.environment() if before and sandbox.is_used() else os.environ
    environment = {name: value for name, value in given.items() if name not in machine.OF_MAKE}
    of_first = ", the first time the CPU device and the harness as well" if is_first_build() else ""
    process = subprocess.Popen(
        [*before, "make", *map(str, words)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    lines, files = [], 0
    for line in process.stdout:
        lines.append(line)
        compiled = re.match(r"\s+(?:compile|link)\s+(\S+)", line)
        if compiled:
            files += 1
            waiting.now = f"building: {files} files{of_first}: {os.path.basename(compiled.group(1))}"
    return process.wait(), "".join(lines)


def shown_paths(text, file):
    """A program's output with the student's file as `line N` and every other file by its path from the root."""
    name = re.escape(results.shown(file))
    text = re.sub(rf"[\w./-]*{name}:(\d+)", r"line \1", text)
    text = text.replace(f"{ROOT}/", "")
    return re.sub(r"(?:\.\./)+", "", text)
