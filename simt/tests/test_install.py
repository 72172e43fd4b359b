"""The installed tree: whoever looks for a CUDA toolkit finds one, and programs that others link run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SIMT = Path(__file__).resolve().parent.parent
CMAKE = next((str(path) for path in SIMT.parent.glob(".venv/bin/cmake")), None) or shutil.which("cmake")
FILES = {
    "twice.h": "int twice(int);\n",
    "twice.cu": '#include "twice.h"\n'
    "__global__ void twice_kernel(int* x) { *x *= 2; }\n"
    "int twice(int value) {\n"
    "  int* x;\n"
    "  cudaMalloc(&x, 4);\n"
    "  cudaMemcpy(x, &value, 4, cudaMemcpyHostToDevice);\n"
    "  twice_kernel<<<1, 1>>>(x);\n"
    "  cudaMemcpy(&value, x, 4, cudaMemcpyDeviceToHost);\n"
    "  return value;\n"
    "}\n",
    "main.cpp": '#include <cublas_v2.h>\n#include <cuda_runtime.h>\n#include <cstdio>\n#include "twice.h"\n'
    "int main() {\n"
    "  int devices = 0;\n"
    "  cublasHandle_t handle = nullptr;\n"
    "  cudaGetDeviceCount(&devices);\n"
    '  std::printf("%d device, %d, %d\\n", devices, twice(31), cublasCreate(&handle));\n'
    "}\n",
    "Makefile": "CUDA_HOME ?= /usr/local/cuda\nNVCC ?= $(CUDA_HOME)/bin/nvcc\n"
    "app: main.cpp twice.o\n"
    "\tg++ -I$(CUDA_HOME)/include $^ -L$(CUDA_HOME)/lib64 -lcublas -lnccl -lcudart -o $@\n"
    "twice.o: twice.cu\n"
    "\t$(NVCC) -arch=sm_80 -c $< -o $@\n",
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.20)\n"
    "project(x LANGUAGES CXX CUDA)\n"
    "find_package(CUDAToolkit REQUIRED)\n"
    "add_library(twice STATIC twice.cu)\n"
    "set_target_properties(twice PROPERTIES CUDA_SEPARABLE_COMPILATION ON)\n"
    "add_executable(app main.cpp)\n"
    "target_link_libraries(app twice CUDA::cublas CUDA::cudart)\n"
    'file(WRITE ${CMAKE_BINARY_DIR}/found "${CUDAToolkit_VERSION} ${CUDAToolkit_INCLUDE_DIRS}")\n',
}
OF_THE_PROGRAM = "1 device, 62, 0\n"


def run(*words, cwd, **environment):
    done = subprocess.run(
        [str(word) for word in words],
        cwd=str(cwd),
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_of_the_runtime():
    return Path(os.environ.get("SIMT_BUILD_DIR") or SIMT.parent / "build/simt").resolve()


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory):
    place = tmp_path_factory.mktemp("install") / "toolkit"
    run("make", "-s", f"BUILD={build_of_the_runtime()}", "install", f"PREFIX={place}", cwd=SIMT, MAKEFLAGS="")
    return place.rename(place.with_name("moved"))  # the tree knows no path of its own


@pytest.fixture
def project(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def version():
    return re.search(r'VERSION = "(.*)"', (SIMT / "driver/__init__.py").read_text())[1]


def test_a_makefile_finds_it_as_a_toolkit(toolkit, project):
    run("make", "-s", cwd=project, CUDA_HOME=str(toolkit))
    assert run("./app", cwd=project) == OF_THE_PROGRAM
    assert json.loads((toolkit / "version.json").read_text())["simtcc"]["version"] == version()
    said = run(toolkit / "bin/nvcc", "--version", cwd=project)
    assert f"simtcc {version()}" in said and "release 13.0, V13.0.0" in said


@pytest.mark.full
def test_messages_name_the_programs_line_and_not_the_headers(toolkit, project):
    fault = project / "fault.cu"
    fault.write_text("__global__ void k(int* x) {\n  atomicAdd(x + 8, 1);\n}\nint main() {\n  k<<<1, 1>>>(nullptr);\n")
    fault.write_text(fault.read_text() + "  return cudaDeviceSynchronize() != 700;\n}\n")
    run(toolkit / "bin/simtcc", "fault.cu", "-o", "fault", cwd=project)
    done = subprocess.run(["./fault"], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0 and "fault.cu:2: illegal memory access at 0x20" in done.stderr
    done = subprocess.run([toolkit / "bin/simt-analyze", "fault.cu"], cwd=project, capture_output=True, text=True)
    assert done.returncode == 1 and "fault.cu:2" in done.stdout


@pytest.mark.full
@pytest.mark.skipif(not CMAKE, reason="no cmake on this machine")
def test_cmake_finds_a_cuda_compiler_and_a_toolkit(toolkit, project):
    run(CMAKE, "-B", "build", cwd=project, CUDACXX=str(toolkit / "bin/nvcc"))
    assert (project / "build/found").read_text() == f"13.0.0 {toolkit}/include"
    run(CMAKE, "--build", "build", cwd=project)
    assert run("build/app", cwd=project) == OF_THE_PROGRAM


@pytest.mark.full
@pytest.mark.skipif(not CMAKE, reason="no cmake on this machine")
def test_the_wheel_holds_the_tree(project):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = {"BUILD": str(build_of_the_runtime()), "MAKEFLAGS": ""}
    run(*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", "wheels", SIMT / "wheel", cwd=project, **build)
    (wheel,) = (project / "wheels").iterdir()
    assert wheel.name.startswith(f"simtcc-{version()}-py3-none-")
    run(*pip, "install", "--no-deps", "--target", "site", wheel, cwd=project)
    site = {"PYTHONPATH": str(project / "site")}
    run("site/bin/simtcc", "twice.cu", "main.cpp", "-lcublas", "-o", "app", cwd=project, **site)
    assert run("./app", cwd=project) == OF_THE_PROGRAM
    home = run(sys.executable, "-c", "import simtcc; print(simtcc.TOOLKIT)", cwd=project, **site).strip()
    run("make", "-s", "-B", cwd=project, CUDA_HOME=home)
    assert run("./app", cwd=project) == OF_THE_PROGRAM
