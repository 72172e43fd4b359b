"""The tree itself: every stage has the same small shape, and the repository holds sources only."""

import pathlib
import re
import subprocess
import sys

import pytest
from conftest import ROOT, run
from ladder.core import ladders

LADDERS = ladders.all_ladders()
FOLDERS = [stage for ladder in LADDERS for stage in ladder.stages if stage.folder != ladder.folder]
CODE = (".h", ".cpp", ".cu", ".cuh")
MYPY = pathlib.Path(sys.executable).with_name("mypy")  # of requirements.txt


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists()]


def text_of(path):
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: ladder.id)
def test_stages_are_numbered_without_a_gap(ladder):
    numbers = [stage.number for stage in ladder.stages]
    assert numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] in (0, 1)


@pytest.mark.parametrize("stage", FOLDERS, ids=lambda stage: stage.id)
class TestStage:
    def test_holds_exactly_four_files(self, stage):
        names = {path.name for path in tracked() if path.parent == stage.folder}
        assert names == {"kernel.cuh", "main.cu", "Makefile", "README.md"}

    def test_files_are_short(self, stage):
        assert 25 <= len(text_of(stage.source).splitlines()) <= 160
        assert len(text_of(stage.folder / "main.cu").splitlines()) == 3
        written = re.sub(r"(:begin[^\n]*-->).*?(?=<!-- [^\n]*:end -->)", r"\1", text_of(stage.page), flags=re.S)
        written = re.sub(r"^<details>.*?^</details>\n", "", written, flags=re.S | re.M)
        assert len(written.splitlines()) <= 140  # without the tables, which make readme writes, and the folded answers

    def test_makefile_is_three_lines(self, stage):
        name, sources, rules = text_of(stage.folder / "Makefile").splitlines()
        assert name.startswith("NAME := ") and sources == "SOURCES := main.cu"
        assert re.fullmatch(r"include (\.\./)+mk/stage\.mk", rules)

    def test_kernel_is_its_own(self, stage):
        """A launch of its own, and no other stage's kernel under its name: what it includes is common/'s or its ladder's."""
        kernel = text_of(stage.source)
        assert "__global__" in kernel and ("<<<" in kernel or "cudaLaunchKernelEx(" in kernel)
        for name in re.findall(r'#include "(.*)"', kernel):
            path = ROOT / name
            assert path.is_file() and path.parent in (
                ROOT / "common",
                ROOT / "common/operators",
                stage.ladder.folder,
            ), name


COMMON = sorted(path for path in tracked() if ROOT / "common" in path.parents and path.suffix in CODE)


def test_common_is_the_harness():
    """Its only kernels are the one that copies and the one that waits; the functions that kernels share are those of two ladders."""
    device = [path.name for path in COMMON if re.search(r"\b__(global|device)__\b", text_of(path))]
    assert device == ["copy_kernel.cu", "delay.cu", "kernel_helpers.cuh"]


@pytest.mark.parametrize("path", [path for path in COMMON if path.suffix in (".h", ".cuh")], ids=lambda path: path.name)
def test_common_is_shared(path):
    """What one ladder alone includes belongs into that ladder's folder. common/judge is what make grade puts programs
    together from."""
    line = f'#include "{path.relative_to(ROOT)}"'
    users = [user for user in tracked() if user.suffix in CODE and user != path and line in text_of(user).splitlines()]
    if path.parent.name in ("operators", "judge") or any(ROOT / "common" in user.parents for user in users):
        return
    owners = {ladder.id for ladder in LADDERS for user in users if ladder.folder in user.parents}
    assert len(owners) > 1, f"{path.name} serves {owners or 'no ladder'}"


# Casts of arithmetic types that look like a call: static_cast<T>(x) or T{x} says the same.
FUNCTIONAL_CAST = re.compile(
    r"(?<![\w.>\":])(?:int|unsigned|float|double|bool|char|long|short|size_t|u?int\d+_t|u?intptr_t)\((?!\)|void\)|\*)(?!const void)"
)


@pytest.mark.parametrize(
    "top", ["assignment1", "assignment2", "bench", "common", "include", "lectures", "python", "simt", "tests"]
)
def test_there_is_one_form_of_cast(top):
    """Finds casts of arithmetic types that look like a call. The tests of simt are left out: they write CUDA as users do."""
    found = []
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in CODE or not name.startswith(f"{top}/") or re.match("simt/(extras/)?tests/", name):
            continue
        for number, line in enumerate(text_of(path).splitlines(), 1):
            code = re.sub(r'"(\\.|[^"\\])*"', '""', line.split("//")[0])
            if FUNCTIONAL_CAST.search(code) and not re.search(r"<[^<>]*\(", code):
                found.append(f"{name}:{number}: {line.strip()}")
    assert found == []


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: ladder.id)
def test_names_cannot_collide(ladder):
    """Every kernel file of a ladder is in a namespace below ladder, but for programs of one file without the harness."""
    plain = re.findall(r"^PROGRAMS := (.*)", text_of(ladder.folder / "Makefile"), re.M)
    plain = [ladder.folder / f"{name}.cu" for name in " ".join(plain).split()]
    for path in sorted(set(ladder.folder.rglob("*")) - set(plain)):
        if path.suffix in (".cuh", ".cu") and path.is_file() and "__global__" in text_of(path):
            assert re.search(rf"^namespace ladder::{ladder.namespace}\b", text_of(path), re.M), path


def test_nothing_built_is_tracked():
    built = re.compile(r"\.(o|d|a|so|pyc|ii|s|cubin|ptx|fatbin)$|/__pycache__/")
    assert [path for path in tracked() if built.search(str(path))] == []
    assert [path for path in tracked() if path.is_symlink()] == []
    assert [path for path in tracked() if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"] == []


def test_no_file_is_large():
    assert [path for path in tracked() if path.stat().st_size > 1_000_000] == []


def test_no_path_of_one_machine():
    """A home directory in a source works on its author's machine only."""
    home = re.compile(r"/(home|Users)/[a-z]|/(root)/")
    found = []
    for path in tracked():
        if path.suffix not in (".png", ".ncu-rep") and path.is_file() and path.name != "test_tree.py":
            found += [f"{path}: {line}" for line in text_of(path).splitlines() if home.search(line)]
    assert found == []


def test_scripts_can_be_run():
    for path in [*(ROOT / "scripts").glob("*.sh"), ROOT / ".ci/run", ROOT / "simt/simtcc"]:
        assert path.stat().st_mode & 0o111, path
        assert text_of(path).startswith("#!"), path


def test_format():
    checked = run("scripts/format.sh", "--dry-run")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.skipif(not MYPY.is_file(), reason="mypy is not installed; scripts/setup.sh test installs it")
def test_annotations_of_the_tools_are_right():
    checked = run(MYPY, "--cache-dir", "build/mypy")
    assert checked.returncode == 0, checked.stdout + checked.stderr
