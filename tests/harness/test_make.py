"""What make says of itself, its choice of a backend and its jobs, and what it cleans, without building anything."""

import re
import shutil

import pytest
from conftest import ROOT, make, run


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


def stand_in(path, text):
    """A program that answers as far as the checks ask."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


COMPILERS = {  # what -dumpfullversion prints, and the macros that make g++ look like it
    "clang++": ("", "-D__clang__=1"),
    "g++-11": ("11.4.0", "-U__GNUC__ -D__GNUC__=11"),
}
COMMANDS = ["scripts/check_tools.sh cpu", "scripts/check_tools.sh cuda", "make -C simt"]
COMMANDS += [f"simt/{tool} simt/tests/warp_test.cu" for tool in ("simtcc", "simtcc -ccbin {chosen}", "analyze")]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_another_compiler_than_a_new_gxx_is_refused_in_one_sentence(tmp_path, compiler, command):
    full, macros = COMPILERS[compiler]
    cases = f'--version) echo "{compiler} of old" ;; -dumpfullversion) echo {full} ;; *-E*) exec g++ {macros} "$@" ;;'
    chosen = stand_in(tmp_path / compiler, f'case "$*" in {cases} *) exit 1 ;; esac')
    nvcc = stand_in(tmp_path / "nvcc", "echo Cuda compilation tools, release 12.0, V12.0.140")
    refused = run(*command.format(chosen=chosen).split(), NVCC=nvcc, **({} if "ccbin" in command else {"CXX": chosen}))
    assert refused.returncode in (1, 2) and "compile" not in refused.stdout, refused.stdout
    assert len(refused.stderr.splitlines()) == 1, refused.stderr
    assert chosen in refused.stderr and "g++ 12 or newer" in refused.stderr and "apt-get install" in refused.stderr


@pytest.mark.parametrize("release, is_refused", [("11.8", True), ("12.0", False), ("13.1", False)])
def test_an_old_cuda_is_refused_in_one_sentence(tmp_path, release, is_refused):
    nvcc = stand_in(tmp_path / "nvcc", f"echo Cuda compilation tools, release {release}, V{release}.89")
    checked = run("scripts/check_tools.sh", "cuda", NVCC=nvcc)
    assert checked.returncode == is_refused and len(checked.stderr.splitlines()) == is_refused, checked.stderr
    assert (f"needs CUDA 12.0 or newer, and {nvcc} is of CUDA {release}:" in checked.stderr) == is_refused
