"""The C++ unit tests of common/, and that every program of the tree can be built."""

import re

import pytest
from conftest import LADDER, ROOT, program, run
from ladder.core import ladders

MAKEFILES = [path for top in ("assignment*", "lectures", "tests", "bench") for path in ROOT.glob(f"{top}/**/Makefile")]
LEAVES = [path.parent for path in MAKEFILES if "mk/stage.mk" in path.read_text(encoding="utf-8")]
# A stage's own program differs from the next one's in its kernel alone, which the ladder's program contains: those of one
# ladder show that they build.
STAGE = re.compile(r".*/\d\d_\w+")
FOLDERS = [str(leaf.relative_to(ROOT)) for leaf in LEAVES]
FOLDERS = [folder for folder in FOLDERS if folder.startswith(LADDER) or not STAGE.fullmatch(folder)]
FOLDERS.remove("bench/norm/all_reduce")  # times several GPUs, and does nothing else


@pytest.mark.builds("tests/harness/cpp")
def test_common_library():
    tests = run(program("tests/harness/cpp"), timeout=600)
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert "Status: SUCCESS!" in tests.stdout


@pytest.mark.full
@pytest.mark.builds(*(f"{folder}/programs" for folder in FOLDERS))
def test_every_program_is_built():
    assert len(FOLDERS) > 50
    assert all(program(folder).is_file() for folder in FOLDERS)


@pytest.mark.full
@pytest.mark.builds("{ladder.path}")
@pytest.mark.parametrize("ladder", ladders.all_ladders(), ids=lambda ladder: ladder.id)
def test_a_ladder_takes_the_small_input_of_gpu_check(ladder):
    """compute-sanitizer's tools run the stages on it, where no test can look."""
    result = run(program(ladder.path), *ladders.options(ladder.small), "--list")
    assert result.returncode == 0, result.stderr
