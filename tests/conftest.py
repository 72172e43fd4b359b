"""Builds every program once, for the CPU device unless BACKEND says otherwise, and hands the tests what they start.

The programs stay below build/<backend>/: the links that make leaves beside the sources are not touched.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BACKEND = os.environ.get("BACKEND") or "cpu"
BUILD = ROOT / "build" / BACKEND
LADDER = "assignment1/rms_norm/matrix"

# make's own variables would make the builds below belong to the make that started the tests.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "BACKEND", "BACKEND_SAID", "ARCHS", "ARGS", "S", "NVCC")
}


def run(*command, cwd=ROOT, timeout=300, **environment):
    """A finished process, with its output as text in .stdout and .stderr."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=timeout,
    )


def make(*arguments, cwd=ROOT, timeout=600):
    return run("make", *arguments, cwd=cwd, timeout=timeout)


def cores():
    return len(os.sched_getaffinity(0))


def pytest_configure(config):
    os.environ["MUTANTS_BIN"] = str(BUILD / LADDER / "mutants/rms_norm_mutants")


def pytest_sessionstart(session):
    if session.config.option.collectonly:
        return
    built = make(f"-j{cores()}", f"BACKEND={BACKEND}", "programs", timeout=1200)
    if built.returncode != 0:
        pytest.exit(f"the build failed:\n{built.stdout}{built.stderr}", returncode=1)


@pytest.fixture(scope="session")
def ladder():
    """The ladder's program."""
    return BUILD / LADDER / "rms_norm_matrix_test"


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """A copy of the working tree with what is built, whose files a test may change."""
    copy = tmp_path_factory.mktemp("tree with blanks") / "copy"
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    for name in (BACKEND, "simt"):
        if (ROOT / "build" / name).is_dir():
            shutil.copytree(ROOT / "build" / name, copy / "build" / name)
    return copy
