"""What make says of itself, its choice of a backend and its jobs, and what it cleans, without building anything."""

import re
import shutil

import pytest
from conftest import ROOT, make


@pytest.mark.parametrize(
    "nvcc, gpu, backend, why",
    [
        ("nvcc", "yes", "cuda", "there are nvcc and a GPU"),
        ("nvcc", "", "cpu", "there is nvcc, but no GPU"),
        ("", "yes", "cpu", "there is a GPU, but no nvcc"),
        ("", "", "cpu", "there is neither nvcc nor a GPU"),
    ],
)
def test_what_decided_the_backend_cannot_be_misread(nvcc, gpu, backend, why):
    said = make("-n", "-f", "mk/config.mk", "ROOT=.", f"NVCC={nvcc}", f"HAS_GPU={gpu}", "ARCHS=90", "mk").stdout
    assert said.splitlines()[0] == f"backend: {backend}{' for sm_90' if backend == 'cuda' else ''} ({why})"


def test_help_names_every_job_once():
    jobs = "\n" + make("help").stdout
    names = "run test start stage analyze exercise grade try hint quiz class student-tree bench peers chain tune profile plots readme site slides programs"
    for job in [*names.split(), "compile-check", "format", "clean"]:
        assert jobs.count(f"\nmake {job} ") == 1, job


def test_clean_removes_its_own_links_and_leaves_the_users(tmp_path):
    tree, others = tmp_path / "tree", tmp_path / "others/build/program"
    for program in (tree / "build/cpu/a stage/program", tree / "my/build/program", others):
        program.parent.mkdir(parents=True)
        program.touch()
    shutil.copy(ROOT / "Makefile", tree)
    (tree / "deep/er").mkdir(parents=True)
    own = {"one": "build/cpu/a stage/program", "deep/er/two": "../../build/cpu/gone"}
    users = {"three": others, "four": "../others/build", "deep/five": "../my/build/program"}
    for name, target in {**own, **users}.items():
        (tree / name).symlink_to(target)
    cleaned = make("clean", cwd=tree)
    assert cleaned.returncode == 0 and not (tree / "build").exists(), cleaned.stderr
    assert [name for name in {**own, **users} if (tree / name).is_symlink()] == list(users)


@pytest.mark.parametrize("job", ["run", "test", "stage", "analyze"])
def test_how_long_a_job_takes_stands_beside_it(job):
    page = (ROOT / "COMMANDS.md").read_text(encoding="utf-8")
    for jobs in (make("help").stdout, page):
        said = re.search(rf"^make {job}\b(.*\n(?:  .*\n)*)", jobs, re.MULTILINE).group(1)
        assert re.search(r"\d+ (minutes|seconds)", said), said
