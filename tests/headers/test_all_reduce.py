"""The all-reduce of include/rms_norm on the CPU device's devices: its sums to the last bit on every rank, many launches, and
what its tests say of headers that lack a part of the protocol. tests/headers/all_reduce/main.cu says how to run them on GPUs.
"""

import re

import pytest
from conftest import ROOT, changed_header, program, run

FOLDER = "tests/headers/all_reduce"
TESTS = ROOT / FOLDER
HEADER = ROOT / "include/rms_norm"
builds = pytest.mark.builds(FOLDER)


def counts(result):
    found = re.search(r"^(\d+) passed, (\d+) failed$", result.stdout, re.MULTILINE)
    assert found, result.stdout + result.stderr
    return int(found[1]), int(found[2])


@pytest.mark.full
@builds
@pytest.mark.parametrize(
    "ranks, order, groups",
    [
        (2, "reversed", []),
        (3, "7", ["shapes, float16", "sharded, float32", "graphs", "delays"]),
        (4, "forward", ["two_groups", "two_halves"]),
        (8, "forward", ["sharded, bfloat16", "many_rows, float32", "delays"]),
    ],
)
def test_every_rank_has_the_sum_and_its_norm(ranks, order, groups):
    result = run(program(FOLDER), "--launches", "60", *groups, SIMT_DEVICES=str(ranks), SIMT_ORDER=order, timeout=600)
    assert result.returncode == 0 and counts(result) == (len(groups) or 16, 0), result.stdout + result.stderr


@pytest.mark.full
@builds
@pytest.mark.parametrize("group", ["absent", "dies"])
def test_the_rank_that_does_not_come_is_named(group):
    result = run(program(FOLDER), group, SIMT_DEVICES="3")
    assert counts(result) == (1, 0), result.stdout + result.stderr


# name: (what is replaced, by what, which has a choice, ranks, the group that must fail, what is said)
MUTANTS = {
    "one buffer": ("launches % 2", "launches % (WRONG ? 1 : 2)", 2, "delays", "__trap|another one"),
    "sentinel that a sum can be": ("kOtherNaNs :", "(WRONG ? word : kOtherNaNs) :", 2, "sentinels, float32", "__trap"),
    "place not cleared": (
        "{ store_for_system(slot",
        "{ if (!(WRONG)) store_for_system(slot",
        2,
        "delays",
        "another one",
    ),
    "own region for the peer's": ("p.peers[peer] +", "(WRONG ? p.region : p.peers[peer]) +", 2, "delays", "__trap"),
    "absent blocks without a number": (
        "(blockIdx.x == 0)",
        "(!(WRONG) && blockIdx.x == 0)",
        2,
        "delays",
        "__trap|another",
    ),
    "number before all threads have read it": (
        "uses == 0) __syncthreads()",
        "uses == 0 && !(WRONG)) __syncthreads()",
        3,
        "delays",
        "__trap|another",
    ),
    "shared rows in place": ("p.x != p.y", "WRONG || p.x != p.y", 3, "shapes, float32", "residual_out of rank|__trap"),
    "own part first": (
        "peer == p.rank)",
        "peer == (WRONG ? 0 : p.rank))",
        3,
        "shapes, float32",
        "residual_out of rank",
    ),
}


@pytest.fixture(scope="module")
def mutants(tmp_path_factory):
    """The program, in which the environment's MUTANT chooses what is wrong; 0 is nothing."""
    folder = tmp_path_factory.mktemp("mutants")
    changes = [
        (re.escape(right), wrong.replace("WRONG", f"all_reduce_mutant == {number}"))
        for number, (right, wrong, *_) in enumerate(MUTANTS.values(), 1)
    ]
    # A constant of the host: kernels of the CPU device may read it.
    variable = (
        "(?m)^namespace detail {\n\ntemplate <class T>\nstruct Identity",
        r'inline const int all_reduce_mutant = std::atoi(std::getenv("MUTANT"));\n\g<0>',
    )
    include = (r"#include <algorithm>\n(?=#include <atomic>)", r"\g<0>#include <cstdlib>\n")
    changed_header(HEADER, folder, *changes, variable, include)
    # The other types are as float32 is, and are left out.
    (folder / "others.cu").write_text(
        "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <string>\nnamespace all_reduce_test {\n"
        "template <class T>\nvoid run_group(const std::string&, int) {}\n"
        "template void run_group<__half>(const std::string&, int);\n"
        "template void run_group<__nv_bfloat16>(const std::string&, int);\n}\n",
        encoding="utf-8",
    )
    files = [TESTS / "main.cu", folder / "others.cu", TESTS / "float32.cu"]
    options = [f"-I{folder}/include", f"-I{TESTS}", f"-I{ROOT}", "-std=c++17", "-O0", "-w", "-DRMS_NORM_CHECKED"]
    made = run(ROOT / "simt/simtcc", *options, *files, "-o", folder / "program", timeout=600)
    assert made.returncode == 0, made.stderr
    return folder / "program"


@pytest.mark.full
@pytest.mark.parametrize("name", [None, *MUTANTS])
def test_wrong_protocol_is_rejected(mutants, name):
    number = 0 if name is None else list(MUTANTS).index(name) + 1
    _, _, ranks, group, said = MUTANTS[name or "one buffer"]
    environment = {"SIMT_DEVICES": str(ranks), "SIMT_ORDER": "2", "MUTANT": str(number)}
    result = run(mutants, "--launches", "40", group, **environment, timeout=300)
    if name is None:
        assert counts(result) == (1, 0), result.stdout + result.stderr
    else:
        assert result.returncode == 1 and re.search(said, result.stdout + result.stderr), result.stdout + result.stderr
