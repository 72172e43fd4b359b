"""Dependent launches of both headers: chains in which a kernel could read what a launch two before it still writes. The
program is tests/headers/dependent, whose main.cu says how to run it on a GPU; here the analysis of the CPU device judges it,
also with headers in which a kernel lets the next one start before it waits.
"""

import re
import shutil

import pytest
from conftest import BUILD, ROOT, program, run

FOLDER = "tests/headers/dependent"
INCLUDE = ROOT / "include"
WAIT = re.compile(r"\bwait_for_previous_kernel\(\);")
# Each wait in the headers, in the order of the files and lines, and the call between that reaches it.
WAITS = {
    ("q4_gemm/activations.cuh", 0): "quantize",
    ("q4_gemm/few_columns.cuh", 0): "multiply",
    ("q4_gemm/many_columns.cuh", 0): "multiply, many columns",
    ("q4_gemm/many_columns.cuh", 1): "multiply, many columns",
    ("q4_gemm/norm.cuh", 0): "rms_norm_quantize",
    ("rms_norm/all_reduce.cuh", 0): "all_reduce_fused_add_rms_norm",
    ("rms_norm/few_rows.cuh", 0): "backward, few rows",
    ("rms_norm/gradients.cuh", 0): "backward",
    ("rms_norm/gradients.cuh", 1): "backward, long rows",
    ("rms_norm/gradients.cuh", 2): "backward",
    ("rms_norm/gradients.cuh", 3): "backward, rows read again",
    ("rms_norm/gradients.cuh", 4): "backward, rows read again",
    ("rms_norm/in_order.cuh", 0): "forward, batch-invariant",
    ("rms_norm/kernels.cuh", 0): "forward, contiguous",
    ("rms_norm/kernels.cuh", 1): "forward, unaligned",
    ("rms_norm/kernels.cuh", 2): "forward, a cluster a row",
    ("rms_norm/quantized_rows.cuh", 0): "forward_quantized",
    ("rms_norm/rope.cuh", 0): "qk_norm_rope",
    ("rms_norm/teams.cuh", 0): "forward, a team a row",
}
# Three of the calls have two kernels, and one of them that waits first is enough: so a wait of the second one is exchanged
# at once with the first one's.
SECOND = {
    ("q4_gemm/many_columns.cuh", 1): ("q4_gemm/many_columns.cuh", 0),
    ("rms_norm/gradients.cuh", 2): ("rms_norm/gradients.cuh", 0),
    ("rms_norm/gradients.cuh", 3): ("rms_norm/gradients.cuh", 0),
    ("rms_norm/gradients.cuh", 4): ("rms_norm/gradients.cuh", 0),
}
EXCHANGED = [place for place in WAITS if place not in SECOND]


def waits_of(path):
    return len(WAIT.findall(re.sub("//.*", "", path.read_text(encoding="utf-8"))))


@pytest.mark.full
@pytest.mark.builds(FOLDER)
def test_the_results_are_right_and_depend_on_what_is_read_early():
    result = run(program(FOLDER))
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.findall("plain 0, dependent 0$", result.stdout, re.MULTILINE) == ["plain 0, dependent 0"] * 63


def test_every_wait_of_the_headers_is_in_the_table():
    found = {
        (str(path.relative_to(INCLUDE)), number) for path in INCLUDE.glob("*/*.cuh") for number in range(waits_of(path))
    }
    assert found == set(WAITS)


@pytest.fixture(scope="module")
def analyzed(tmp_path_factory):
    """The program for the analysis, with headers in which the environment's EXCHANGED is the number of the wait, in EXCHANGED,
    before which the kernel lets the next one start."""
    folder = tmp_path_factory.mktemp("dependent")
    shutil.copytree(INCLUDE, folder / "include")
    for name in sorted({name for name, _ in WAITS}):
        path = folder / "include" / name
        numbers = iter(EXCHANGED.index(SECOND.get(place, place)) for place in WAITS if place[0] == name)
        text = re.sub(r"if \((p\.d|d|kD)ependent\) (?=wait_for)", "", path.read_text(encoding="utf-8"))
        exchange = "if (cuda_bits::exchanged == {}) let_next_kernel_start();\n"
        path.write_text(WAIT.sub(lambda wait: exchange.format(next(numbers)) + wait[0], text), encoding="utf-8")
    bits = folder / "include/cuda_bits.cuh"
    text = bits.read_text(encoding="utf-8")
    bits.write_text(
        text.replace("namespace cuda_bits {", "namespace cuda_bits {\ninline __device__ int exchanged = -1;", 1)
    )
    text = (ROOT / FOLDER / "main.cu").read_text(encoding="utf-8")
    choice = (
        'const int exchanged = std::getenv("EXCHANGED") ? std::atoi(std::getenv("EXCHANGED")) : -1;\n'
        "CUDA_CHECK(cudaMemcpyToSymbol(cuda_bits::exchanged, &exchanged, sizeof exchanged));"
    )
    (folder / "main.cu").write_text(
        f"#include <cstdlib>\n{text.replace('try {', 'try {' + choice, 1)}", encoding="utf-8"
    )
    options = ["--analyze", "-std=c++17", f"-I{folder}/include", f"-I{ROOT}", "-w"]
    library = BUILD / "libcommon.a"
    made = run(ROOT / "simt/simtcc", *options, folder / "main.cu", library, "-o", folder / "program", timeout=900)
    assert made.returncode == 0, made.stderr
    return folder / "program"


def hazards_of(analyzed, *arguments, **environment):
    result = run(ROOT / "simt/analyze", "--program", analyzed, "--", *arguments, **environment)
    return re.search(r"^hazards: .*", result.stdout, re.MULTILINE | re.DOTALL)[0], result.stdout + result.stderr


@pytest.mark.full
@pytest.mark.builds(FOLDER)
def test_headers_have_no_hazard(analyzed):
    found, said = hazards_of(analyzed)
    assert found.startswith("hazards: none"), said


@pytest.mark.full
@pytest.mark.builds(FOLDER)
@pytest.mark.parametrize("place", WAITS, ids=lambda place: f"{place[0]}:{place[1]}")
def test_a_kernel_that_lets_the_next_one_start_before_it_waits_is_found(analyzed, place):
    found, said = hazards_of(analyzed, WAITS[place], EXCHANGED=str(EXCHANGED.index(SECOND.get(place, place))))
    words = " ".join(found.split())
    assert "a launch reads what an earlier one may still write" in words, said
    assert (
        "write_late may still run here" in words and "lets the next kernel start before it has waited itself" in words
    )
