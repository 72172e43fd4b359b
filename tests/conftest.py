"""What all tests share: running a program or make, and the build of what they start.

A test that starts a program is marked pytest.mark.builds(FOLDER): before the first such test, one make builds what all the
collected tests are marked with, for the CPU device unless BACKEND says otherwise. Without such a test nothing is built.
The programs stay below build/<backend>/: the links that make leaves beside the sources are not touched.

make test runs two or more processes of pytest (pytest-xdist). All tests of a file run in one of them, so a long test
that shares no fixture with others stands in a file of its own. No process replaces one that crashes: pytest-xdist would
then wait for ever for the tests that it still had. Tests that are marked `full` run with FULL=1 only.
"""

import fcntl
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BACKEND = os.environ.get("BACKEND") or "cpu"
BUILD = ROOT / "build" / BACKEND
LADDER = "assignment1/rms_norm/matrix"
FULL = os.environ.get("FULL", "0") not in ("", "0")
TORCH = os.environ.get("TORCH", "0") not in ("", "0")
CLANG_FORMAT = pathlib.Path(sys.executable).with_name("clang-format")  # of requirements.txt

# PyTorch is large: its tests run with TORCH=1 only.
WITH_TORCH = [
    "document_programs",
    "python_compilers",
    "python_suites",
    "python_torch",
    "q4_torch",
    "recognize",
    "tiny_models",
]
collect_ignore = [] if TORCH else [f"python/test_{name}.py" for name in WITH_TORCH]

# The test files that take longest, longest first, so that no process still runs a long one at the end.
LONGEST = """
test_newer_compilers test_arm64 test_simt test_build test_grading test_analyze test_header test_q4_header test_tune_q4_gemm
test_tune_rms_norm test_nvcc test_cuda_versions test_python_package test_recognize test_tiny_models test_python_torch test_python_compilers
test_document_programs test_gemm_peers test_dependent test_controls test_notebook test_cli test_plots test_lecture_w1l2
test_vector test_new_ladder test_lecture_w3 test_lecture_w4l1 test_mutant_hazards test_readme test_lecture_w2l3 test_mutants
""".split()

# The tests use the tools as Python modules; programs that make starts find the tools through make, as for a user.
TOOLS = str(ROOT / "tools")
PYTHONPATH = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", TOOLS)]
os.environ["PYTHONPATH"] = os.pathsep.join([TOOLS, *PYTHONPATH])

# Where python3 is a script that looks for Python, such as pyenv's, it takes longer than what most tests do with Python.
if (shutil.which("python3") or "").endswith("/shims/python3"):
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(os.path.realpath(sys.executable)), os.environ["PATH"]])

# Where PATH has no nvcc, that of a toolkit, or the one that set-up installed (requirements-nvcc.txt).
TOOLKITS = [
    os.environ.get("CUDA_HOME") or "/usr/local/cuda",
    *ROOT.glob(".venv/lib/python3*/site-packages/nvidia/cu13"),
]
os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *(f"{toolkit}/bin" for toolkit in TOOLKITS)])
NVCC = shutil.which("nvcc")

# make's own variables would make the builds below belong to the make that started the tests.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "BACKEND", "BACKEND_SAID", "ARCHS", "ARGS", "S", "NVCC")
    and not name.startswith("PYTEST_XDIST_")
}


def run(*command, cwd=ROOT, timeout=300, **environment):
    """A finished process, with its output as text in .stdout and .stderr."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def make(*arguments, cwd=ROOT, timeout=600):
    return run("make", *arguments, cwd=cwd, timeout=timeout, PYTHONPATH=os.pathsep.join(PYTHONPATH))


def cores():
    return len(os.sched_getaffinity(0))


def full_but(every, *quick):
    """The parameters of a test: these few are tried in the quick run, and all of them with FULL=1."""
    return [one if one in quick else pytest.param(one, marks=pytest.mark.full) for one in every]


def program(folder):
    """Where the program of a folder is, for a test that is marked builds(folder)."""
    makefile = (ROOT / folder / "Makefile").read_text(encoding="utf-8")
    return BUILD / folder / re.search(r"^NAME := (\w+)$", makefile, re.MULTILINE)[1]


# --- The build -----------------------------------------------------------------------------------------------

TARGETS = pytest.StashKey()


def targets(items):
    """What make is asked to build for these tests: the libraries, and the program of each folder of their marks. A mark
    may name a parameter of its test, as in builds("{ladder.path}/mutants"), or a target, as in builds("bench/tune/programs")."""
    names = {"libs"}
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        for mark in item.iter_markers("builds"):
            named = [str(name).format(**parameters) for name in mark.args]
            names.update(name if name.endswith("/programs") else f"{name}/program" for name in named)
    # One make for a folder, since two would write the same files.
    return tuple(sorted(name for name in names if f"{name}s" not in names))


@functools.cache
def build(names):
    """Has make build them, and returns what it says if it fails. Of the processes of pytest-xdist, one does so."""
    BUILD.mkdir(parents=True, exist_ok=True)
    this_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    with open(BUILD / "tests.lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if not this_run or lock.read() != this_run:
            quick = [] if FULL else ["QUICK=1"]
            made = make(f"-j{cores()}", f"BACKEND={BACKEND}", *quick, *names, timeout=1800)
            if made.returncode != 0:
                return made.stdout + made.stderr
            lock.truncate(0)
            lock.write(this_run)
    return ""


# --- What pytest and pytest-xdist call -----------------------------------------------------------------------


def pytest_report_header(config):
    tests = "every test" if FULL else "the quick tests; FULL=1 runs every one"
    return f"backend: {BACKEND}; {tests}; the first test of a program builds all that are needed"


@pytest.hookimpl(optionalhook=True)  # without -n, pytest-xdist need not be there
def pytest_xdist_auto_num_workers(config):
    return max(2, cores())


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if not FULL and item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


def pytest_collection_finish(session):
    session.config.stash[TARGETS] = targets(session.items)


@pytest.hookimpl(tryfirst=True)  # before the fixtures of the test
def pytest_runtest_setup(item):
    if not any(item.iter_markers("builds")):
        return
    waiting = build.cache_info().currsize == 0
    plugins = item.config.pluginmanager
    if waiting and plugins.has_plugin("terminalreporter"):
        with plugins.get_plugin("capturemanager").global_and_fixture_disabled():
            plugins.get_plugin("terminalreporter").write_line("building what the tests start")
    failed = build(item.config.stash[TARGETS])
    if failed:
        said = f":\n{failed}" if waiting else ", see the first test that needs it"
        pytest.fail(f"the build failed{said}", pytrace=False)


# --- More for tests ------------------------------------------------------------------------------------------


def changed_header(header, folder, *changes):
    """A copy of a header below folder/include, in which each (pattern, replacement) was found and replaced."""
    shutil.copytree(header, folder / "include" / header.name)
    for shared in header.parent.glob("*.cuh"):
        shutil.copy(shared, folder / "include")
    for pattern, replacement in changes:
        changed = 0
        for path in (folder / "include").rglob("*.cuh"):
            text, count = re.subn(pattern, replacement, path.read_text(encoding="utf-8"))
            path.write_text(text, encoding="utf-8")
            changed += count
        assert changed > 0, f"the header has no {pattern} any more: change what is replaced"


# --- Fixtures ------------------------------------------------------------------------------------------------


def copy_if_there(source, target):
    """Another process's test may be building: a file under its temporary name may be gone by now."""
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        pass


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """A copy of the working tree with all that is built, whose files a test may change."""
    copy = tmp_path_factory.mktemp("tree with blanks") / "copy"
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    for name in (BACKEND, "generated", "simt"):
        if (ROOT / "build" / name).is_dir():
            without = shutil.ignore_patterns("tests") if name == "simt" else None
            shutil.copytree(ROOT / "build" / name, copy / "build" / name, ignore=without, copy_function=copy_if_there)
    return copy
