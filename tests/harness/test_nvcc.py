"""What only nvcc can tell: the GPU's code of a ladder and of the header compiles. Nothing here needs a GPU.

test_build.py asks whether every file compiles, host code too, and whether two backends mix.
"""

import re
import shutil
from pathlib import Path

import pytest
from conftest import FULL, LADDER, NVCC, ROOT, make, run

HEADER_FILES = [ROOT / "tests/headers/rms_norm/alone/first.cu", ROOT / "tests/headers/rms_norm/alone/second.cu"]
OPTIONS = [f"-I{ROOT}", f"-I{ROOT}/include", "-Xcompiler", "-Wall,-Wextra", "-Werror", "all-warnings"]
# The oldest and the newest; for 80 and 90a test_build.py compiles the serving ladder's calls of the header.
ARCHITECTURES = ["75", "100", "120"]

# With FULL=1 set-up installs nvcc where there is none: without it, the tests fail then.
pytestmark = pytest.mark.skipif(not NVCC and not FULL, reason="no nvcc on this machine")


def test_the_stages_of_a_ladder_compile_for_the_gpu():
    """The first ladder's main.cu, which includes its stages, for sm_90a, which has all that a stage may ask for.

    With FULL=1 test_build.py compiles every file, host code too.
    """
    build = ["BACKEND=cuda", "ARCHS=90a", "BUILD_NAME=compile-check-90a", "SOURCES=main.cu"]
    result = make(*build, f"{LADDER}/gpu-code", timeout=900)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.full
@pytest.mark.parametrize("folder", ["lectures/W1L1_first_kernel", LADDER])
def test_what_the_notebook_builds_compiles_for_a_t4(folder):
    """lectures/colab.ipynb: the first lecture and the first ladder, for sm_75."""
    build = ["BACKEND=cuda", "ARCHS=75", "BUILD_NAME=compile-check-75", "SOURCES=main.cu"]
    result = make(*build, f"{folder}/gpu-code", timeout=900)
    assert result.returncode == 0, result.stdout + result.stderr


def fast():
    return ["-Ofc", "max"] if "--Ofast-compile" in run(NVCC, "--help").stdout else []


@pytest.mark.full
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_header_compiles_for_the_gpu(arch, tmp_path):
    if f"sm_{arch.rstrip('a')}" not in run(NVCC, "--list-gpu-code").stdout.split():
        pytest.skip(f"this nvcc has no sm_{arch}")
    options = ["-std=c++17", *fast(), *OPTIONS, f"-arch=sm_{arch}", "-fatbin", "-o", tmp_path / "code"]
    for file in HEADER_FILES:
        made = run(NVCC, *options, file, timeout=900)
        assert made.returncode == 0 and "warning" not in made.stderr, made.stderr


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("aarch64-linux-gnu-g++"), reason="apt-get install g++-aarch64-linux-gnu")
@pytest.mark.parametrize(
    "arch, file", [("87", HEADER_FILES[0]), ("90a", ROOT / "assignment1/rms_norm/matrix/12_bulk_copy/main.cu")]
)
def test_host_code_for_jetson_and_grace(arch, file, tmp_path):
    """With g++ for 64-bit Arm, nvcc looks for headers in a folder for it; both processors have the same headers."""
    root = Path(NVCC).resolve().parents[1]
    headers = next(folder for folder in (*root.glob("targets/*/include"), root / "include") if folder.is_dir())
    options = ["-std=c++17", *fast(), *OPTIONS, "-isystem", headers, "-isystem", headers / "cccl", f"-arch=sm_{arch}"]
    made = run(NVCC, "-ccbin", "aarch64-linux-gnu-g++", *options, "-c", file, "-o", tmp_path / "object", timeout=900)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    assert (tmp_path / "object").read_bytes()[18] == 183  # e_machine of its ELF header


@pytest.mark.full
def test_norms_that_end_in_8_bits_compile_for_the_gpu(tmp_path):
    file = tmp_path / "quantized.cu"
    file.write_text(
        "#include <cuda_bf16.h>\n#include <rms_norm/quantize.cuh>\n"
        "cudaError_t call(const __nv_bfloat16* x, __nv_fp8_e4m3* q, const rms_norm::Quantization& how) {\n"
        "  return rms_norm::forward_quantized(x, x, q, how, nullptr, 8192, 4096);\n}\n"
    )
    made = run(NVCC, "-std=c++17", *OPTIONS, "-arch=sm_90", "-cubin", "-o", tmp_path / "code", file, timeout=300)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr


@pytest.mark.full
def test_header_compiles_in_two_files(tmp_path):
    """Host code too, and as it is shipped, with all optimizations. As C++17 the inference ladder's programs include it."""
    options = ["-std=c++20", *OPTIONS, "-arch=sm_90", "-o", tmp_path / "program"]
    made = run(NVCC, *options, *HEADER_FILES, timeout=900)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr


@pytest.mark.full
@pytest.mark.parametrize("candidates", ["forward_contiguous", "add_contiguous"])
def test_the_compiler_does_not_split_stores(candidates, tmp_path):
    """It does so with plain stores of 16 bytes, and a kernel has four of them then."""
    options = [f"-I{ROOT}", f"-I{ROOT}/include", "-std=c++17", "-O3", "-arch=compute_90", "-ptx"]
    made = run(NVCC, *options, f"bench/tune/rms_norm/{candidates}.cu", "-o", tmp_path / "ptx")
    assert made.returncode == 0, made.stderr
    stores = re.findall(r"\bst\.global[\w.:]*", (tmp_path / "ptx").read_text(encoding="utf-8"))
    assert len(stores) > 100 and set(stores) <= {"st.global.v4.u32", "st.global.L2::cache_hint.v4.u32"}


@pytest.mark.full
@pytest.mark.parametrize(
    "file",
    [
        "bench/abi/rms_norm/bfloat16_gradients.cu",
        "tests/headers/rms_norm/teams/main.cu",
        "bench/tune/q4_gemm/few_16.cu",
    ],
)
def test_copies_land_where_lines_of_memory_begin(file, tmp_path):
    """Dynamic shared memory begins where the static variables end, unless an alignment is declared, and an asynchronous
    copy is slower if its target lies otherwise in a sector than its source."""
    options = ["-std=c++17", f"-I{ROOT}", *OPTIONS, "-arch=compute_90a", "-ptx", "-o", tmp_path / "ptx"]
    made = run(NVCC, *options, ROOT / file, timeout=900)
    assert made.returncode == 0, made.stderr
    ptx = (tmp_path / "ptx").read_text(encoding="utf-8")
    declared = re.findall(r"\.extern \.shared \.align (\d+) \.b8 (\w+)\[\]", ptx)
    alignments = {name: int(alignment) for alignment, name in declared}
    kernels = [kernel for kernel in re.split(r"\.entry ", ptx)[1:] if re.search(r"cp\.async\.(c[ag]|bulk)", kernel)]
    assert kernels
    for kernel in kernels:
        used = {name for name in alignments if re.search(rf"\b{name}\b", kernel)}
        assert used and all(alignments[name] >= 128 for name in used), (kernel.split("(")[0], alignments)


@pytest.mark.full
@pytest.mark.parametrize(
    "file", ["tune/q4_gemm/few_16.cu", "tune/q4_gemm/exact.cu", "tune/q4_gemm/reference.cu", "abi/q4_gemm/float32.cu"]
)
def test_what_measures_q4_gemm_compiles_for_hopper(file, tmp_path):
    """make compile-check leaves bench/ out."""
    options = ["-std=c++17", "-O3", f"-I{ROOT}", *OPTIONS, "-arch=sm_90a", "-fatbin", "-o", tmp_path / "code"]
    made = run(NVCC, *options, ROOT / "bench" / file, timeout=900)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
