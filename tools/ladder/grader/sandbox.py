"""Where a student's file is compiled and its kernels run: in bubblewrap, where it is installed and user namespaces are
allowed, and with limits everywhere.

Inside there is no network and no home; the tree is read-only, and what is written elsewhere is gone afterwards. On one's
own laptop nothing is asked for: without bubblewrap the limits are all. SANDBOX=require, for instructors, refuses to grade
without it, and SANDBOX=off leaves it out. Limits of processes do not hold for root, so what root grades runs as a user that
has no other processes and no files.
"""

import functools
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from ..core import machine
from ..core.ladders import ROOT, BadCommand, Unusable

GIGABYTE = 2**30
MEMORY = min(6 * GIGABYTE, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)  # that a process may write to
FILE = GIGABYTE // 4  # the largest file
TEMPORARY = GIGABYTE // 2  # of /tmp
PROCESSES = 96 + 4 * machine.cores()  # threads count, too
USERS = 2**30  # root's kernels run as users of larger numbers, one for each thread of a grader
SYSTEM = ("/lib", "/lib64", "/bin", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
KEPT = ("PATH", "CPATH", "LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "CXX")  # of the environment, and:
OF_OTHERS = (".git", "my", *(f"build/{one}grade" for one in ("", "cpu/build/", "analyze/build/")), "build/class")
HIDDEN = [ROOT / name for name in OF_OTHERS]
KEPT_BEGIN = ("SIMT_", "LADDER_", "CUDA_", "NVIDIA_", "LD_LIBRARY_PATH")


@functools.cache
def missing():
    """What there would have to be for a sandbox, as a sentence; "" where it works."""
    program = shutil.which("bwrap")
    if not program:
        return "bubblewrap is not installed: apt install bubblewrap"
    if is_root() and not shutil.which("setpriv"):
        return "root needs setpriv as well: apt install util-linux"
    done = subprocess.run([*prefix(program), "ls", "mk/grade.mk"], capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    said = done.stderr.strip().splitlines()[-1:] or ["it says nothing"]
    if said[0].startswith("ls:"):
        return f"what root grades runs as another user, who cannot read {ROOT}: chmod -R a+rX {ROOT}"
    if said[0].startswith("setpriv:"):
        return f"root cannot start a program as another user here: {said[0]}"
    return f"bubblewrap cannot make a sandbox, as user namespaces are not allowed here: {said[0]}"


def is_root():
    return os.geteuid() == 0


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


def hide(path):
    """What is in a folder of the tree, for example what a class has handed in, cannot be read inside."""
    HIDDEN.append(path)


def prefix(program, written=(), read=()):
    """bubblewrap's command line up to the program: these folders may be written, and these may be read though they lie in a
    hidden folder."""
    words = [program, "--die-with-parent", "--new-session", "--setenv", "CCACHE_DISABLE", "1"]
    words += [
        f"--unshare-{one}" for one in ("ipc", "pid", "net", "uts", "cgroup-try", *([] if is_root() else ["user"]))
    ]
    for one in ("SETUID", "SETGID", "SETPCAP") if is_root() else ():
        words += ["--cap-add", f"CAP_{one}"]
    words += ["--proc", "/proc", "--dev", "/dev"]
    words += ["--perms", "1777", "--size", str(TEMPORARY), "--tmpfs", "/tmp"]
    for path in ("/usr", *SYSTEM):
        link = os.path.islink(path)
        words += ["--symlink", os.readlink(path), path] if link else [*above(path), "--ro-bind-try", path, path]
    for path in elsewhere():
        words += [*above(path), "--ro-bind", path, path]
    words += [*above(ROOT), "--ro-bind", str(ROOT), str(ROOT)]
    hidden = [str(path) for path in HIDDEN if ROOT in path.parents and path.is_dir()]
    for path in hidden:
        words += ["--perms", "0755", "--tmpfs", path]
    for path in map(str, read):
        words += [*above(path), "--ro-bind", path, path]
    for path in map(str, written):
        words += [*above(path), "--bind", path, path]
    for path in (*hidden, "/dev", "/"):
        words += ["--remount-ro", path]
    words += ["--chdir", str(ROOT), "--"]
    return words + (as_user(written) if is_root() else [])


def elsewhere():
    """Where Python, g++ and libraries lie that are neither the system's nor in the tree; never a home as a whole."""
    programs = [shutil.which(word) for word in os.environ.get("CXX", "g++").split()]
    folders = [Path(program).parent for program in programs if program]
    prefixes = [folder.parent for folder in folders if folder.name == "bin"]
    for name in ("CPATH", "LIBRARY_PATH", "LD_LIBRARY_PATH"):
        folders += [Path(one) for one in os.environ.get(name, "").split(os.pathsep) if os.path.isdir(one)]
    folders += [one for one in prefixes if one not in (Path.home(), *Path.home().parents)]
    folders += [Path(os.path.realpath(one)) for one in (sys.base_prefix, sys.prefix)]
    there = {Path("/usr"), ROOT, *map(Path, SYSTEM)}
    found = {one.absolute() for one in folders}
    return sorted(str(one) for one in found if not there & {one, *one.parents})


def above(path):
    """The folders above it, which every user may enter."""
    return [word for one in reversed(Path(path).parents) for word in ("--perms", "0755", "--dir", str(one))][4:]


def as_user(written):
    """For root: the words that start a program as another user, who gets these folders."""
    user = str(USERS + threading.get_native_id())
    for path in [one for folder in written for one in (folder, *folder.rglob("*"))]:
        os.chown(path, int(user), int(user), follow_symlinks=False)
    return f"setpriv --reuid {user} --regid {user} --clear-groups --inh-caps=-all --bounding-set=-all".split()


def command(words, seconds, written=(), read=()):
    """The command that runs these words with limits, in the sandbox where there is one."""
    limits = {"St": seconds, "Ht": seconds + 2, "d": MEMORY // 1024, "f": FILE // 512, "c": 0}  # St: it ends by SIGXCPU
    set_all = "".join(f"ulimit -{name} {value} 2>/dev/null; " for name, value in limits.items())
    if is_used():  # dash calls it p
        set_all += f"ulimit -u {PROCESSES} 2>/dev/null || ulimit -p {PROCESSES}; "
    limited = ["/bin/sh", "-c", f'{set_all}exec "$@"', "sh", *map(str, words)]
    return [*prefix(shutil.which("bwrap"), written, read), *limited] if is_used() else limited


def environment(**more):
    """Of what is started: it has no keys to other machines and no other secrets."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith(KEPT_BEGIN)}
    return {**kept, **more}
