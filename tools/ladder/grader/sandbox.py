"""Where a student's file is compiled and its kernels run: in bubblewrap, where it is installed and user namespaces are
allowed, and with limits everywhere.

Inside there is no network and no home; the tree is read-only, and what is written elsewhere is gone afterwards. On one's
own laptop nothing is asked for: without bubblewrap the limits are all. SANDBOX=require, for instructors, refuses to grade
without it, and SANDBOX=off leaves it out.
"""

import functools
import os
import shutil
import subprocess
import sys

from ..core.ladders import ROOT, BadCommand, Unusable

GIGABYTE = 2**30
MEMORY = 6 * GIGABYTE  # that a process may write to
FILE = GIGABYTE // 4  # the largest file
TEMPORARY = GIGABYTE // 2  # of /tmp
PROCESSES = 512
SYSTEM = ("/lib", "/lib64", "/bin", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
KEPT = ("PATH", "CPATH", "LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "CXX")  # of the environment, and:
KEPT_BEGIN = ("SIMT_", "LADDER_", "CUDA_", "NVIDIA_", "LD_LIBRARY_PATH")


@functools.cache
def missing():
    """What there would have to be for a sandbox, as a sentence; "" where it works."""
    program = shutil.which("bwrap")
    if not program:
        return "bubblewrap is not installed: apt install bubblewrap"
    done = subprocess.run([*prefix(program), "true"], capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    said = done.stderr.strip().splitlines()[-1:] or ["it says nothing"]
    return f"bubblewrap cannot make a sandbox, as user namespaces are not allowed here: {said[0]}"


def asked():
    word = os.environ.get("SANDBOX", "")
    if word not in ("", "require", "off"):
        raise BadCommand(f"SANDBOX={word}: say SANDBOX=require to grade in a sandbox only, or SANDBOX=off")
    return word


def is_used():
    if asked() == "off":
        return False
    if missing() and asked() == "require":
        raise Unusable(f"SANDBOX=require, and there is none: {missing()}")
    return not missing()


def said_once():
    """A line for the first grade without a sandbox; "" afterwards, and where there is one."""
    marker = ROOT / "build/grade/no_sandbox.txt"
    if is_used() or marker.is_file() or asked() == "off":
        return ""
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_text(missing() + "\n", encoding="utf-8")
    return f"Your kernels run with limits and in no sandbox, which your own files do not need: {missing()}."


def prefix(program, written=()):
    """bubblewrap's command line up to the program: these folders may be written."""
    words = [program, "--unshare-all", "--die-with-parent", "--new-session", "--setenv", "CCACHE_DISABLE", "1"]
    words += ["--proc", "/proc", "--dev", "/dev"]
    words += ["--size", str(TEMPORARY), "--tmpfs", "/tmp"]
    for path in ("/usr", *SYSTEM):
        link = os.path.islink(path)
        words += ["--symlink", os.readlink(path), path] if link else ["--ro-bind-try", path, path]
    for path in {
        os.path.realpath(sys.base_prefix),
        os.path.realpath(sys.prefix),
    }:  # a Python that is installed elsewhere
        words += [] if path.startswith(("/usr", str(ROOT))) else ["--ro-bind", path, path]
    words += ["--ro-bind", str(ROOT), str(ROOT)]
    for folder in written:
        words += ["--bind", str(folder), str(folder)]
    return [*words, "--chdir", str(ROOT), "--"]


def command(words, seconds, written=()):
    """The command that runs these words with limits, in the sandbox where there is one."""
    limits = {"t": seconds, "d": MEMORY // 1024, "f": FILE // 512, "c": 0}
    if is_used():
        limits["u"] = PROCESSES
    set_all = "".join(f"ulimit -{name} {value} 2>/dev/null; " for name, value in limits.items())
    limited = ["/bin/sh", "-c", f'{set_all}exec "$@"', "sh", *map(str, words)]
    return [*prefix(shutil.which("bwrap"), written), *limited] if is_used() else limited


def environment(**more):
    """Of what is started: it has no keys to other machines and no other secrets."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith(KEPT_BEGIN)}
    return {**kept, **more}
