"""The Python package, installed once for all the tests that import it: for the CPU device, unless BACKEND says cuda."""

import fcntl
import os
import sys

from conftest import BACKEND, FULL, ROOT, TORCH, cores, run

PACKAGE = ROOT / "python"
BUILD = ROOT / "build/python_package" / BACKEND
SITE = BUILD / "site"
TYPES = "usual" if FULL or TORCH else "float32"


def pip_install(*arguments, **environment):
    """pip, with what requirements.txt has."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    parallel = {"CMAKE_BUILD_PARALLEL_LEVEL": str(cores())}
    return run(sys.executable, "-m", "pip", "install", *options, *arguments, timeout=900, **parallel, **environment)


def install():
    """Installs it into build/ and imports it; of the processes of pytest-xdist, the first one installs."""
    BUILD.mkdir(parents=True, exist_ok=True)
    this_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    with open(BUILD / "lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if not this_run or lock.read() != this_run:
            # Settings of scikit-build-core, which not every pip can hand over.
            defined = {"RMS_NORM_TYPES": TYPES}  # a variable of the environment would not change an older build's
            if BACKEND == "cpu":  # in a quick run g++ would optimize for longer than the kernels run
                defined["OPTIMIZE_OFTEN"] = "-O1" if FULL else "-O0"
            settings = {"SKBUILD_BUILD_DIR": str(BUILD / "cmake"), "BACKEND": BACKEND}
            settings["SKBUILD_CMAKE_DEFINE"] = ";".join(f"{name}={value}" for name, value in defined.items())
            made = pip_install(PACKAGE, "--upgrade", "--target", SITE, **settings)
            assert made.returncode == 0, made.stdout + made.stderr
            lock.truncate(0)
            lock.write(this_run)
    if str(SITE) not in sys.path:
        sys.path.insert(0, str(SITE))
    import rms_norm

    assert rms_norm.BACKEND == BACKEND and str(SITE) in rms_norm.__file__
    return rms_norm
