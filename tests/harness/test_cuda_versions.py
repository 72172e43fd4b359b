"""The oldest and the newest CUDA compile what uses the interfaces that changed in between, for the oldest GPUs and the
newest. cuda/toolkit.sh gets both into build/, where they stay."""

import re
import shutil

import pytest
from conftest import ROOT, run

PLAIN = [
    "-std=c++17",
    "-O0",
    f"-I{ROOT}",
    f"-I{ROOT}/include",
    "-Xcompiler",
    "-Wall,-Wextra",
    "-Werror",
    "all-warnings",
]
# A tensor map's encoder, the bulk copy, graphs and the header that ships; then what sm_75 lacks.
FILES = {
    "oldest": [
        ("lectures/W2L3_transpose/transpose_v7.cu", "90a"),
        ("assignment1/rms_norm/matrix/12_bulk_copy/main.cu", "90a"),
        ("common/timing.cpp", "80"),
        ("tests/headers/rms_norm/alone/first.cu", "75"),
    ],
    "newest": [
        ("lectures/W2L3_transpose/transpose_v7.cu", "90a"),
        ("lectures/W2L3_transpose/transpose_v5.cu", "75"),
        ("lectures/W3L1_roofline/main.cu", "75"),
        ("assignment1/rms_norm/precision/10_bf16_bf16/main.cu", "75"),
        ("common/timing.cpp", "80"),
    ],
}
RELEASE = {"oldest": (12, 0), "newest": (13, 1)}  # this one, or a later one


def host_compiler(which):
    """A g++ that the release takes: 12.0 takes none after 12."""
    names = ["g++", "g++-12"]
    version = {name: int(run(name, "-dumpversion").stdout.split(".")[0]) for name in names if shutil.which(name)}
    return next((name for name in version if version[name] == 12 or which == "newest"), None)


@pytest.mark.full
@pytest.mark.parametrize("which", FILES)
def test_it_compiles(which, tmp_path):
    gxx = host_compiler(which)
    if not gxx:
        pytest.skip("CUDA 12.0 needs g++-12: apt-get install g++-12")
    folder = ROOT / "build/cuda" / which
    fetched = run(ROOT / "tests/harness/cuda/toolkit.sh", which, folder, timeout=1200)
    if fetched.returncode:
        pytest.skip(f"no {which} CUDA can be had here: {fetched.stderr.strip().splitlines()[-1]}")
    nvcc = folder / "nvcc"
    release = tuple(map(int, re.search(r"release (\d+)\.(\d+)", run(nvcc, "--version").stdout).groups()))
    assert release == RELEASE["oldest"] if which == "oldest" else release >= RELEASE["newest"]
    for file, arch in FILES[which]:
        made = run(
            nvcc, "-ccbin", gxx, *PLAIN, f"-arch=sm_{arch}", "-c", ROOT / file, "-o", tmp_path / "object", timeout=900
        )
        assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
