"""include/ as packages of CMake: a program finds the headers by find_package() and by FetchContent, and the version stands once."""

import pathlib
import re
import shutil
import tarfile

import pytest
from conftest import FULL, NVCC, ROOT, full_but, make, run

CMAKE = next((str(path) for path in ROOT.glob(".venv/bin/cmake")), None) or shutil.which("cmake")
HEADERS = ["rms_norm", "q4_gemm"]
pytestmark = pytest.mark.skipif(not CMAKE, reason="no cmake on this machine")

PROGRAM = r"""
#include <cstdio>
#include <q4_gemm/q4_gemm.cuh>
#include <rms_norm/rms_norm.cuh>

int main() {
  float *x, *y, host[] = {3, 4, 30, -40};
  cudaError_t error = cudaMalloc(&x, sizeof host);
  if (error == cudaSuccess) error = cudaMalloc(&y, sizeof host);
  if (error == cudaSuccess) error = cudaMemcpy(x, host, sizeof host, cudaMemcpyDefault);
  if (error == cudaSuccess) error = rms_norm::forward(x, static_cast<float*>(nullptr), y, 2, 2);
  if (error == cudaSuccess) error = cudaMemcpy(host, y, sizeof host, cudaMemcpyDefault);
  std::printf("%d %d: %.4f %.4f %s\n", RMS_NORM_VERSION, Q4_GEMM_VERSION, host[0], host[3], cudaGetErrorName(error));
  std::printf("%zu\n", q4_gemm::packed_size(1, 32));
}
"""
# simtcc takes the place of a C++ compiler, a .cu is C++ to it, and it translates no system headers.
FOR_SIMTCC = """
set_source_files_properties(example.cu PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-x;cu;-O0")
set_target_properties(example PROPERTIES NO_SYSTEM_FROM_IMPORTED ON)
"""


def of_the_page():
    page = (ROOT / "include/rms_norm/README.md").read_text(encoding="utf-8")
    return re.search(r"```cmake\n(.*?)```", page, re.DOTALL).group(1)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """What make headers packs: the headers and their licence, and nothing that is large."""
    made = make("headers")
    assert made.returncode == 0, made.stderr
    path = pathlib.Path(shutil.copy(ROOT / "build/rms_norm_ladder-headers.tar.gz", tmp_path_factory.mktemp("archive")))
    with tarfile.open(path) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"LICENSE", "CMakeLists.txt", "cuda_bits.cuh", *(f"{name}/{name}.cuh" for name in HEADERS)} <= names
    assert path.stat().st_size < 1 << 20
    return path


def configure(source, build, *options):
    made = run(CMAKE, "-S", source, "-B", build, *options, timeout=300)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "Warning" not in made.stderr, made.stderr


def installed(folder):
    """The headers as cmake --install leaves them, and what of a project finds them."""
    configure(ROOT / "include", folder / "headers")
    assert run(CMAKE, "--install", folder / "headers", "--prefix", folder / "prefix").returncode == 0
    find = "".join(f"find_package({name} 0.1 CONFIG REQUIRED)\n" for name in HEADERS)
    page, count = re.subn(r"include\(FetchContent\)\n.*?MakeAvailable\(\w+\)\n", find, of_the_page(), flags=re.DOTALL)
    assert count == 1
    return page, [f"-DCMAKE_PREFIX_PATH={folder}/prefix"]


def fetched(archive):
    project = of_the_page().replace("/path/to/build/rms_norm_ladder-headers.tar.gz", str(archive))
    assert str(archive) in project
    return project, []


def write(folder, project):
    (folder / "CMakeLists.txt").write_text(project, encoding="utf-8")
    (folder / "example.cu").write_text(PROGRAM, encoding="utf-8")


@pytest.mark.parametrize("way", full_but(["find_package", "FetchContent"], "FetchContent"))
def test_a_program_finds_the_headers(way, archive, tmp_path):
    project, options = installed(tmp_path) if way == "find_package" else fetched(archive)
    write(tmp_path, project.replace("LANGUAGES CUDA", "LANGUAGES CXX") + FOR_SIMTCC)
    compiler = tmp_path / "simtcc"  # CMake sets CXX to this, and simtcc would take it for g++
    compiler.write_text(f'#!/bin/sh\nexec env -u CXX {ROOT}/simt/simtcc "$@"\n', encoding="utf-8")
    compiler.chmod(0o755)
    configure(tmp_path, tmp_path / "build", f"-DCMAKE_CXX_COMPILER={compiler}", *options)
    made = run(CMAKE, "--build", tmp_path / "build", timeout=300)
    assert made.returncode == 0, made.stdout + made.stderr
    assert run(tmp_path / "build/example").stdout == "100 100: 0.8485 -1.1314 cudaSuccess\n2304\n"
    flags = (tmp_path / "build/CMakeFiles/example.dir/flags.make").read_text(encoding="utf-8")
    assert f"{ROOT}/include" not in flags, "the headers of the repository were used"


@pytest.mark.full
@pytest.mark.skipif(not NVCC and not FULL, reason="no nvcc on this machine")
def test_nvcc_compiles_what_cmake_finds(archive, tmp_path):
    project, options = fetched(archive)
    write(tmp_path, project)
    architecture = ["-DCMAKE_CUDA_ARCHITECTURES=90", f"-DCMAKE_CUDA_COMPILER={NVCC}"]
    configure(tmp_path, tmp_path / "build", *architecture, *options)
    made = run(CMAKE, "--build", tmp_path / "build", timeout=900)
    assert made.returncode == 0, made.stdout + made.stderr
    assert (tmp_path / "build/example").exists()


def test_another_version_is_not_found(tmp_path):
    project, options = installed(tmp_path)
    write(tmp_path, project.replace(" LANGUAGES CUDA", " LANGUAGES NONE").replace("rms_norm 0.1", "rms_norm 0.2"))
    made = run(CMAKE, "-S", tmp_path, "-B", tmp_path / "build", *options)
    assert made.returncode != 0 and 'compatible with requested version "0.2"' in made.stderr, made.stderr


def test_the_package_and_the_headers_have_one_version():
    text = (ROOT / "python/pyproject.toml").read_text(encoding="utf-8")
    major, minor, patch = map(int, re.search(r'^version = "(\d+)\.(\d+)\.(\d+)"$', text, re.MULTILINE).groups())
    header = (ROOT / "include/cuda_bits.cuh").read_text(encoding="utf-8")
    assert (
        int(re.search(r"^#define CUDA_BITS_VERSION (\d+)$", header, re.MULTILINE)[1])
        == major * 10000 + minor * 100 + patch
    )
