"""include/q4_gemm: its answers on the CPU device, how it compiles, what the analysis says of it, and whether its tests can
fail. The test program is that of tests/headers/q4_gemm, whose main.cu says how to run it on a GPU."""

import functools
import re

import pytest
from conftest import BUILD, FULL, ROOT, changed_header, full_but, program, run

HEADER = ROOT / "include/q4_gemm"
FOLDER = "tests/headers/q4_gemm"
TESTS, OBJECTS = ROOT / FOLDER, BUILD / FOLDER
builds = pytest.mark.builds(FOLDER)
SIMTCC = [ROOT / "simt/simtcc", "-std=c++17"]
FULL_ONLY = {"rounded.cu", "repeated.cu", "invariance.cu"}  # as the Makefile has it


@builds
@pytest.mark.parametrize("order", full_but(["forward", "reversed"], "reversed"))
def test_answers(order):
    result = run(program(FOLDER), timeout=600, SIMT_ORDER=order, SIMT_DEVICES="2")
    assert result.returncode == 0 and result.stdout.endswith("all right\n"), result.stdout + result.stderr
    assert len(re.findall("^pass  ", result.stdout, re.MULTILINE)) == (15 if FULL else 7)


@pytest.mark.full
def test_compiles_in_two_files(tmp_path):
    for name, text in {
        "first.cu": "cudaError_t f(void* w) { return q4_gemm::repack(w, w, 64, 64); }",
        "second.cu": "cudaError_t f(void*);\nint main() { return q4_gemm::repack(nullptr, nullptr, 0, 64) + (f(nullptr) != 1); }",
    }.items():
        (tmp_path / name).write_text(f"#include <q4_gemm/q4_gemm.cuh>\n{text}\n", encoding="utf-8")
    warnings = ["-Xcompiler", "-Wall,-Wextra", "-Werror", "all-warnings"]
    made = run(*SIMTCC, f"-I{ROOT}/include", *warnings, "first.cu", "second.cu", "-o", "program", cwd=tmp_path)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    assert run(tmp_path / "program").returncode == 0


OTHER_TYPES = """\
#include <q4_gemm/q4_gemm.cuh>
using namespace q4_gemm;
cudaError_t f(void* p, double* x, float* y) { return multiply(Repacked{p}, x, y, 64, 1, 64); }
cudaError_t f(void* p, float* x, int* y) { return multiply(Repacked{p}, x, y, 64, 1, 64); }
cudaError_t f(void* p, float* x, float* y, unsigned char* bias) { return multiply(Repacked{p}, x, y, 64, 1, 64, bias); }
cudaError_t f(void* p, short* x) { return quantize(x, p, 1, 64); }
cudaError_t f(void* p, float* x, long* weight) { return rms_norm_quantize(x, weight, p, 1, 64); }
__device__ float f(bool value) { return detail::to_float(value); }
__device__ char f(float value) { return detail::from_float<char>(value); }
"""


def test_other_element_types_do_not_compile(tmp_path):
    (tmp_path / "types.cu").write_text(OTHER_TYPES, encoding="utf-8")
    made = run(*SIMTCC, f"-I{ROOT}/include", "-c", "types.cu", cwd=tmp_path)
    wrong = {int(line) for line in re.findall(r"^types\.cu:(\d+):", made.stderr, re.MULTILINE)}
    functions = range(3, len(OTHER_TYPES.splitlines()) + 1)
    assert made.returncode != 0 and wrong >= {*functions}, made.stderr
    assert "static assertion failed: elements are float, __half or __nv_bfloat16" in made.stderr, made.stderr


OLDER = r"""
#include <q4_gemm/q4_gemm.cuh>
#include <cstdio>

int main() {
  constexpr int64_t kM = 4096, kK = 64;
  void *blocks, *packed;
  float *x, *y, first = -1;
  cudaMalloc(&blocks, kM * kK / 32 * 18);
  cudaMalloc(&packed, q4_gemm::packed_size(kM, kK));
  cudaMalloc(&x, kK * sizeof(float));
  cudaMalloc(&y, kM * sizeof(float));
  cudaMemset(blocks, 0, kM * kK / 32 * 18);
  cudaMemset(x, 0, kK * sizeof(float));
  cudaMemset(y, 1, kM * sizeof(float));
  q4_gemm::repack(blocks, packed, kM, kK);
  q4_gemm::Options options;
  options.dependent_launch = true;
  const cudaError_t error = q4_gemm::multiply(q4_gemm::Repacked{packed}, x, y, kM, 1, kK, nullptr, options);
  cudaMemcpy(&first, y, sizeof first, cudaMemcpyDefault);
  std::printf("%s %d\n", cudaGetErrorName(error), first == 0);
}
"""


@pytest.mark.full
@pytest.mark.parametrize("version", [75, 80, 90])
def test_code_for_an_older_architecture_lacks_what_newer_ones_have(tmp_path, version):
    """As on a new GPU that runs what was compiled for an older one. A trap stands for clusters, which it lacks."""
    no_clusters = r"__cluster_barrier_arrive_relaxed\(\)", "__trap()"
    changed_header(HEADER, tmp_path, (r"attributes\.ptxVersion", str(version)), no_clusters)
    (tmp_path / "older.cu").write_text(OLDER, encoding="utf-8")
    made = run(*SIMTCC, "-O0", f"-I{tmp_path}/include", "older.cu", "-o", "older", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    said = {75: "cudaErrorNotSupported 0", 80: "cudaSuccess 1", 90: "cudaErrorL"}
    assert run(tmp_path / "older").stdout.startswith(said[version])


def test_the_example_of_the_page_runs(tmp_path):
    page = (HEADER / "README.md").read_text(encoding="utf-8")
    (tmp_path / "example.cu").write_text(re.search(r"```cpp\n(.*?)```", page, re.DOTALL).group(1), encoding="utf-8")
    made = run(*SIMTCC, "-O0", f"-I{ROOT}/include", "example.cu", "-o", "example", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert run(tmp_path / "example").stdout == re.search(r"It prints (\S+)\. ", page).group(1) + "\n"


# --- Known-wrong headers and the analysis -------------------------------------------------------------------


def build(folder, *options, change=(), sources=("main.cu",)):
    """The test program with a copy of the header in which each (pattern, replacement) is applied."""
    changed_header(HEADER, folder, *change)
    others = {path.name for path in TESTS.glob("*.cu")} - {*sources} - (set() if FULL else FULL_ONLY)
    objects = [OBJECTS / f"{name}.o" for name in sorted(others)]
    files = [*(TESTS / name for name in sources), *objects, BUILD / "libcommon.a", "-o", folder / "program"]
    made = run(*SIMTCC, f"-I{folder}/include", f"-I{ROOT}", "-w", *options, *files, timeout=900)
    assert made.returncode == 0, made.stderr
    return folder / "program"


@pytest.mark.full
@builds
def test_a_block_may_have_little_shared_memory(tmp_path):
    """So little that hardly any shape of the policy has room, and x comes in several passes."""
    little = (
        r"(?=return get\(device\.multiprocessors)",
        "device.block_bytes = 61 << 10, device.shared_bytes = 62 << 10;",
    )
    program = build(tmp_path, "-O1", "-DFEW_KINDS", change=[little], sources=["main.cu", "devices.cu", "invariance.cu"])
    result = run(program, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr


# name: (the expression that is replaced, by what, the file whose tests must fail)
MUTANTS = {
    "nibbles_exchanged": (r"(?<=signed_nibbles\()row << 4(?=\))", "row", "main.cu"),
    "missing_minus_eight": (r"(?<=\^ )0x80808080u", "0u", "main.cu"),
    "scale_of_the_other_block": (r"(?<=d\[2 \* )b(?= \+ h\], product)", "1 - b", "main.cu"),
    "stale_slot": (r"(?<=__pipeline_wait_prior\()S::kDepth - 2(?=\))", "S::kDepth - 1", "main.cu"),
    "tail_of_n": (r"(?<=min\(8 \* j \+ share\.g, )columns - 1(?=\))", "max(columns - 2, 0)", "main.cu"),
    "sums_of_one_phase": (r"(?<=phase < )S::kPhases(?=; \+\+phase\))", "1", "main.cu"),
    "sums_of_one_block": (r"(?<=block < )share\.cluster_blocks(?=; \+\+block\) sum)", "1", "main.cu"),
    "bias_of_the_first_row": (r"p\.bias\[row \+ i\]", "p.bias[row]", "main.cu"),
    "sums_of_one_part": (r"(?<=other < )parts(?=; \+\+other\))", "1", "main.cu"),
    "bias_ignored": (r"(?<=p\.bias != nullptr\) sum \+= )to_float\(p\.bias\[row\]\)", "0.0f", "main.cu"),
    "sums_of_one_way": (r"(?<=way < )S::kWays(?=; \+\+way\))", "1", "main.cu"),
    "stage_begun_without_x": (r"(?<=init\(&full\[i\], )3(?=\))", "2", "main.cu"),
    "chunk_past_the_end": (r"min\(j % S::kChunks, there - 1\)", "j % S::kChunks", "main.cu"),
    "scales_of_another_column": (
        r"(?<=\[)place_of\(i / to\.columns\) \+ i % to\.columns(?=\])",
        "place_of(i / to.columns)",
        "main.cu",
    ),
    "x_not_waited_for": (r"(?<=__pipeline_wait_prior\()S::kLate(?=\))", "S::kLate + 1", "main.cu"),
    "x_of_the_first_slots_missing": (r"(?<=if \()i < asked(?=\) fetch_x)", "i + 1 < asked", "main.cu"),
    "x_of_the_first_chunk_again": (r"(?<=x \+= )S::kPhases \* p\.x\.n \* kChunk", "0", "main.cu"),
    "slots_too_small": (r"columns \* kChunk \+ scales \* kXScaleBytes(?= : 0)", "columns * kChunk", "main.cu"),
    "late_weights_not_asked_for": (r"\(is_first \? S::kLate : 0\)(?=; \+\+i\))", "0", "main.cu"),
    "residual_not_added": (
        r"to_float\(x\.values\[j\]\) \+ to_float\(kept\.values\[j\]\)",
        "to_float(x.values[j])",
        "activations.cu",
    ),
    "halves_cut_off": (r"(?<=copysignf\()0\.5f(?=, scaled\))", "0.25f", "activations.cu"),
    "nan_is_lost": (
        r"max\(most, __float_as_uint\(x\[i\]\) & 0x7fffffffu\)",
        "__float_as_uint(fmaxf(__uint_as_float(most), fabsf(x[i])))",
        "activations.cu",
    ),
    "batch_invariance_ignored": (r"(?<=\()batch_invariant(?= \? c)", "false", "invariance.cu"),
    "many_columns_not_invariant": (r"(?<= && )!options\.batch_invariant(?=\) \{)", "true", "invariance.cu"),
    "overlap_not_seen": (r"begin >= other\.end\(\)", "true", "arguments.cu"),
}
FAULTS = {"stage_begun_without_x", "chunk_past_the_end"}  # of these, a launch ends with an error that the device names

EXCHANGED = """\
#pragma once
#include <cstdlib>
inline __managed__ int exchanged = -1;
static const bool is_chosen = (exchanged = std::atoi(std::getenv("EXCHANGED")), true);
"""


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """source -> the test program in which this file has all its wrong headers at once: the environment's EXCHANGED is the
    number of the expression, in MUTANTS, in whose place the wrong one is computed."""

    @functools.cache
    def wrong(source):
        folder = tmp_path_factory.mktemp("wrong")
        changes = [
            (right, lambda found, number=number, other=other: f"(exchanged == {number} ? ({other}) : ({found[0]}))")
            for number, (right, other, file) in enumerate(MUTANTS.values())
            if file == source
        ]
        (folder / "exchanged.h").write_text(EXCHANGED, encoding="utf-8")
        options = ["-O0", "-DFEW_KINDS", "-include", folder / "exchanged.h"]
        return build(folder, *options, change=changes, sources=[source])

    return wrong


@builds
@pytest.mark.parametrize("name", full_but(MUTANTS, "halves_cut_off"))
def test_wrong_header_is_rejected(wrong, name):
    source, number = MUTANTS[name][2], list(MUTANTS).index(name)
    given = ["--products"] if source == "main.cu" and name not in FAULTS else []
    result = run(wrong(source), "--quick", *given, timeout=600, EXCHANGED=str(number))
    assert result.returncode == 1, result.stdout + result.stderr
    said = "FAIL" in result.stdout or "hazard" in result.stderr
    if name in FAULTS:
        said = "simt: cudaError" in result.stderr
    assert said, result.stdout + result.stderr


@pytest.mark.full
@builds
@pytest.mark.parametrize("source", sorted({source for _, _, source in MUTANTS.values()}))
def test_the_header_in_which_nothing_is_exchanged_is_accepted(wrong, source):
    result = run(wrong(source), "--quick", timeout=600, EXCHANGED="-1")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.full
@pytest.mark.parametrize("barriers", ["all", "none"])
def test_hazards(tmp_path, barriers):
    changed_header(HEADER, tmp_path)
    if barriers == "none":
        path = tmp_path / "include/q4_gemm/few_columns.cuh"
        path.write_text(path.read_text(encoding="utf-8").replace("__syncthreads();", ";"), encoding="utf-8")
    program = TESTS / "hazards/main.cu"
    made = run(*SIMTCC, "--analyze", f"-I{tmp_path}/include", program, "-o", "hazards", cwd=tmp_path, timeout=600)
    assert made.returncode == 0, made.stderr
    result = run(ROOT / "simt/analyze", "--program", tmp_path / "hazards", timeout=600)
    found = re.search(r"^hazards: (.*)", result.stdout, re.MULTILINE)
    assert found and found.group(1).startswith("none") == (barriers == "all"), result.stdout + result.stderr
