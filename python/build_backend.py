"""scikit-build-core, and for a source distribution a copy of what the build needs from the repository around it."""

import contextlib
import pathlib
import shutil

from scikit_build_core.build import *  # noqa: F403
from scikit_build_core.build import build_sdist as _build_sdist

HERE = pathlib.Path(__file__).resolve().parent
NEEDED = ["LICENSE", "include", "simt/extras/include", "simt/extras/runtime"]
NEEDED += [f"simt/{name}" for name in "Makefile simtcc checked_g++ driver include runtime analysis".split()]
NEEDED_PATTERNS = ["simt/*.py"]


@contextlib.contextmanager
def _copied():
    """python/repository/, while it lasts. A source distribution that is built from one has it already."""
    root, copy = HERE.parent, HERE / "repository"
    if not (root / "include/rms_norm/rms_norm.cuh").exists():
        yield
        return
    shutil.rmtree(copy, ignore_errors=True)
    try:
        for path in [root / name for name in NEEDED] + [p for pattern in NEEDED_PATTERNS for p in root.glob(pattern)]:
            target = copy / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(path, target) if path.is_dir() else shutil.copy2(path, target)
        yield
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def build_sdist(sdist_directory, config_settings=None):
    with _copied():
        return _build_sdist(sdist_directory, config_settings)
