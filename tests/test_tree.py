"""The tree itself: every stage has the same small shape, and the repository holds sources only."""

import re
import subprocess

import pytest

from conftest import LADDER, ROOT

STAGES = sorted((ROOT / LADDER).glob("[0-9]*_*"))


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists()]


def text_of(path):
    return path.read_text(encoding="utf-8")


def test_stages_are_numbered_without_a_gap():
    assert [int(stage.name[:2]) for stage in STAGES] == list(range(1, len(STAGES) + 1))
    assert STAGES


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
class TestStage:
    def test_holds_exactly_four_files(self, stage):
        names = {path.name for path in tracked() if path.parent == stage}
        assert names == {"kernel.cuh", "main.cu", "Makefile", "README.md"}

    def test_files_are_short(self, stage):
        assert 25 <= len(text_of(stage / "kernel.cuh").splitlines()) <= 160
        assert len(text_of(stage / "main.cu").splitlines()) <= 20
        written = re.sub(r"(:begin[^\n]*-->).*?(?=<!-- [^\n]*:end -->)", r"\1", text_of(stage / "README.md"), flags=re.S)
        assert len(written.splitlines()) <= 100  # without the tables, which scripts/readme.py writes

    def test_makefile_is_three_lines_of_variables(self, stage):
        assert text_of(stage / "Makefile").splitlines() == [
            "NAME := rms_norm_test",
            "SOURCES := main.cu",
            "include ../../../../mk/stage.mk",
        ]

    def test_kernel_is_its_own(self, stage):
        """A launch of its own, and no other stage's kernel under its name."""
        kernel = text_of(stage / "kernel.cuh")
        assert "__global__" in kernel and ("<<<" in kernel or "cudaLaunchKernelEx(" in kernel)
        included = re.findall(r'#include "(.*)"', kernel)
        assert all(name.startswith("common/") for name in included), included

    def test_is_registered_and_in_every_index(self, stage):
        assert f'"{stage.name}/kernel.cuh"' in text_of(ROOT / LADDER / "main.cu")
        assert f'"{stage.name}"' in text_of(stage / "kernel.cuh")
        for readme in (ROOT / LADDER / "README.md", ROOT / "README.md"):
            assert stage.name in text_of(readme), readme


READMES = [path for path in tracked() if path.suffix == ".md"]


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(readme):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text_of(readme)):
        if "://" not in target:
            assert (readme.parent / target).exists(), target


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
        if path.suffix != ".png" and path.is_file() and path.name != "test_tree.py":
            found += [f"{path}: {line}" for line in text_of(path).splitlines() if home.search(line)]
    assert found == []


def test_scripts_can_be_run():
    for path in [*(ROOT / "scripts").glob("*.sh"), ROOT / ".ci/run", ROOT / "simt/simtcc"]:
        assert path.stat().st_mode & 0o111, path
        assert text_of(path).startswith("#!"), path
