"""The driver: the command lines that nvcc takes, and one sentence for what goes wrong."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SIMT = Path(__file__).resolve().parent.parent
SIMTCC = SIMT / "simtcc"
CHECKED = "__global__ void k(int* x) { *x = VALUE; }\nint value_of_kernel() {\n  int *p, v = 0;\n  cudaMalloc(&p, 4);\n"
CHECKED += "  k<<<1, 1>>>(p);\n  cudaMemcpy(&v, p, 4, cudaMemcpyDeviceToHost);\n  cudaFree(p);\n  return v;\n}\n"
MAIN = "int value_of_kernel();\nint main() { return value_of_kernel(); }\n"


def simtcc(*arguments, cwd, program=SIMTCC, **environment):
    return subprocess.run(
        [str(word) for word in (program, *arguments)],
        cwd=str(cwd),
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def made(*arguments, **keywords):
    result = simtcc(*arguments, **keywords)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def commands(*arguments, cwd):
    """The tools that a command line would start."""
    return made("--dryrun", *arguments, cwd=cwd).stderr.splitlines()


def exit_code(program, cwd):
    return subprocess.run([str(cwd / program)]).returncode


@pytest.fixture
def folder(tmp_path):
    """A folder with a blank in its name, a kernel in value.cu and a main in main.cpp."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "value.cu").write_text(CHECKED)
    (folder / "main.cpp").write_text(MAIN)
    (folder / "one.cu").write_text('#define VALUE 3\n#include "value.cu"\n#include "main.cpp"\n')
    return folder


def test_one_command_makes_a_program(folder):
    result = made("-O0", "one.cu", cwd=folder)
    assert result.stdout + result.stderr == ""
    assert exit_code("a.out", folder) == 3
    assert sorted(path.name for path in folder.iterdir()) == ["a.out", "main.cpp", "one.cu", "value.cu"]


def test_a_wrong_answer_hints_at_what_would_look_further(folder):
    made("-O0", "one.cu", cwd=folder)

    def said(**environment):
        return subprocess.run(
            ["./a.out"], cwd=folder, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
        ).stderr

    assert said() == said(SIMT_HINTS="0") == ""
    assert said(SIMT_HINTS="1").startswith(
        "simt: the program ended with exit code 3, and no kernel failed. simt/analyze"
    )


@pytest.mark.full
def test_a_launch_that_takes_long_shows_its_progress(folder):
    (folder / "long.cu").write_text(
        "__device__ void rest();\n"
        "template <int n> __global__ void slow() { rest(); }\n"
        "int main() {\n"
        "  cudaLaunchConfig_t config = {};\n"
        "  config.gridDim = 80, config.blockDim = 1;\n"
        "  cudaLaunchKernelEx(&config, slow<7>);\n"
        "  return cudaDeviceSynchronize();\n"
        "}\n"
    )
    (folder / "rest.cpp").write_text("#include <unistd.h>\nvoid rest() { usleep(80000); }\n")  # 6.4 s, and no work
    made("-O0", "long.cu", "rest.cpp", "-o", "long", cwd=folder)
    run = {"cwd": folder, "stderr": subprocess.PIPE}
    environment = {**os.environ, "SIMT_WORKERS": "1"}
    assert subprocess.run(["./long"], env=environment, **run).stderr == b""
    said = subprocess.run(["./long"], env={**environment, "SIMT_PROGRESS": "1"}, **run).stderr.decode()
    assert re.search(r"simt: kernel slow<7>: \d\d of 80 blocks started", said) and said.endswith("\r\033[K")


def test_objects_and_several_files(folder):
    made("-O0", "-c", "-DVALUE=4", "value.cu", cwd=folder)
    made("-O0", "main.cpp", "value.o", "-o", "from object", cwd=folder)
    assert exit_code("from object", folder) == 4
    (folder / "sub").mkdir()
    shutil.move(str(folder / "main.cpp"), str(folder / "sub/value.cpp"))
    libraries = "-lcudart -lcuda -lcudadevrt".split()
    made("-O0", "-D", "VALUE=5", "value.cu", "sub/value.cpp", *libraries, "-o", "both", cwd=folder)
    assert exit_code("both", folder) == 5
    made("-O0", "-lib", "-DVALUE=6", "value.cu", "-o", "libvalue.a", cwd=folder)
    made("-O0", "sub/value.cpp", "-L.", "-lvalue", "-o", "from library", cwd=folder)
    assert exit_code("from library", folder) == 6


@pytest.mark.full
def test_separate_compilation_and_c(folder):
    (folder / "c.c").write_text("int offset(void) { int class = 1; return class; }\n")
    (folder / "main.cpp").write_text('extern "C" int offset();\n' + MAIN.replace("return v", "return offset() + v"))
    made("-rdc=true", "-dc", "-DVALUE=7", "value.cu", "-o", "v.o", cwd=folder)
    made("-dlink", "v.o", "-o", "link.o", cwd=folder)
    made("-O0", "-std=c++17", "v.o", "link.o", "main.cpp", "c.c", "-o", "all", cwd=folder)
    assert exit_code("all", folder) == 8


def test_shared_library(folder):
    made("-O0", "-shared", "-Xcompiler", "-fPIC", "-DVALUE=9", "value.cu", "-o", "libvalue.so", cwd=folder)
    dynamic = subprocess.run(["readelf", "-d", folder / "libvalue.so"], capture_output=True, text=True).stdout
    assert "SYMBOLIC" in dynamic, "NVIDIA's runtime in the same process would take the place of the device's"
    made("main.cpp", "-L.", "-lvalue", "-Xlinker", f"-rpath,{folder}", "-o", "dynamic", cwd=folder)
    assert exit_code("dynamic", folder) == 9
    # A process has 1,664 bytes for the thread-local variables of all libraries that it loads later.
    copies = [shutil.copy(folder / "libvalue.so", folder / f"lib{n}.so") for n in range(5)]
    loads = "import ctypes, sys\nfor library in sys.argv[1:]: ctypes.CDLL(library)"
    subprocess.run([sys.executable, "-c", loads, *copies], check=True)


@pytest.mark.full
def test_through_a_link_from_elsewhere(folder, tmp_path):
    link = tmp_path / "bin with blank" / "nvcc"
    link.parent.mkdir()
    link.symlink_to(SIMTCC)
    made("-O0", folder / "one.cu", "-o", folder / "linked", cwd="/", program=link)
    assert exit_code("linked", folder) == 3


def test_other_names_of_cuda_files(folder):
    shutil.copy(str(folder / "one.cu"), str(folder / "one.cpp"))
    made("-O0", "-x", "cu", "one.cpp", "-o", "as cuda", cwd=folder)
    assert exit_code("as cuda", folder) == 3


def test_a_header_that_is_compiled_as_a_source(folder):
    """Not into a precompiled header; -include comes before its first line."""
    (folder / "value.h").write_text("int value_of_kernel() { return VALUE + FIRST; }\n")
    (folder / "first.h").write_text("#define FIRST 1\n")
    options = "-DVALUE=4 -include first.h -MMD -MF deps.txt -MT goal -c value.h -o v.o".split()
    made("-O0", "-x", "c++", *options, cwd=folder)
    assert rule((folder / "deps.txt").read_text()) == {"goal": ["value.h", "first.h"]}
    made("-O0", "main.cpp", "v.o", "-o", "program", cwd=folder)
    assert exit_code("program", folder) == 5
    (folder / "kernel.h").write_text(CHECKED)
    made("-O0", "-x", "cu", "-DVALUE=6", "-c", "kernel.h", "-o", "v.o", cwd=folder)
    made("-O0", "main.cpp", "v.o", "-o", "program", cwd=folder)
    assert exit_code("program", folder) == 6


@pytest.mark.skipif(not shutil.which("ccache"), reason="no ccache on this machine")
def test_ccache_keeps_what_is_compiled(folder, monkeypatch):
    monkeypatch.delenv("CCACHE_DISABLE", raising=False)
    for _ in range(2):
        made("-O0", "-c", "one.cu", cwd=folder, CCACHE_DIR=str(folder))
    counts = subprocess.run(
        ["ccache", "--print-stats"], env={**os.environ, "CCACHE_DIR": str(folder)}, stdout=subprocess.PIPE, check=True
    ).stdout.decode()
    assert "preprocessed_cache_hit\t1\n" in counts and "cache_miss\t1\n" in counts


def test_options_reach_gxx(folder):
    options = """-o x "-Iinc one" -I inc2 -isystem sys -include first.h -DA=1 -D B -UC -O3 -g -std=c++20 -Wall -w
        -Xcompiler -fopenmp,-funroll-loops --compiler-options=-Wextra -Xlinker -z,now -lm -L lib
        -Werror all-warnings -fmad=false"""
    preprocess, _, compile_, link = commands("one.cu", *shlex.split(options), cwd=folder)
    for word in ["'-Iinc one'", "-I inc2", "-isystem sys", "-include first.h", "-D A=1", "-D B", "-U C"]:
        assert word.replace("'-Iinc one'", "-I 'inc one'") in preprocess and word not in compile_
    for word in "-O3 -g -std=c++20 -Wall -w -fopenmp -funroll-loops -Wextra -Werror -ffp-contract=off".split():
        assert f" {word} " in preprocess and f" {word} " in compile_
    for word in ["-fopenmp", "-Xlinker -z -Xlinker now", "-lm", "-Llib", "-lboost_context", "-o x"]:
        assert word in link
    assert compile_.index("-O2") < compile_.index("-O3")


def test_options_about_gpu_code_have_no_effect(folder):
    plain = commands("one.cu", "-o", "x", cwd=folder)
    options = """-arch=sm_90a -arch sm_80 -gencode arch=compute_90,code=sm_90 -lineinfo -use_fast_math --use_fast_math
        --generate-code=arch=compute_80,code=sm_80 -maxrregcount=32 -Xptxas -v --ptxas-options=-v --threads 4 -t4 -t 0
        -diag-suppress 177 --diag-suppress=20012 -m64 -cudart static -Wno-deprecated-gpu-targets --resource-usage
        -lcudart"""
    ignored = commands(*options.split(), "one.cu", "-o", "x", cwd=folder)
    without_names = [re.sub(r"/\S*simtcc-\w+", "TMP", "\n".join(lines)) for lines in (plain, ignored)]
    assert without_names[0] == without_names[1]


def test_macros_of_nvcc(folder):
    (folder / "m.cu").write_text(
        "#if !defined __CUDACC__ || !defined __NVCC__ || __CUDACC_VER_MAJOR__ != 13\n#error compiler\n#endif\n"
        "#if __CUDA_ARCH__ != 900 || __SIMT__ != 1\n#error device\n#endif\n"
        "#if !defined __CUDACC_EXTENDED_LAMBDA__ || !defined __CUDACC_RDC__\n#error options\n#endif\n"
    )
    made("-E", "--extended-lambda", "-rdc=true", "m.cu", "-o", "m.ii", cwd=folder)


def test_preprocessor_output(folder):
    assert "__global__ void k(int* x) { *x = 3; }" in made("-E", "one.cu", cwd=folder).stdout
    made("-E", "one.cu", "-o", "one.ii", cwd=folder)
    assert "__global__ void k(int* x)" in (folder / "one.ii").read_text()


def rule(text):
    """{target: prerequisites} of a file for make."""
    rules = {}
    for line in text.replace("\\\n", " ").splitlines():
        if ":" in line:
            targets, _, prerequisites = line.partition(":")
            rules[targets.strip()] = prerequisites.split()
    return rules


def test_dependencies(folder):
    assert rule(made("-MM", "one.cu", cwd=folder).stdout)["one.o"] == ["one.cu", "value.cu", "main.cpp"]
    assert any(name.endswith("/cuda_runtime.h") for name in rule(made("-M", "one.cu", cwd=folder).stdout)["one.o"])
    (folder / "out").mkdir()
    made("-c", "-MMD", "-MP", "one.cu", "-o", "out/o.o", cwd=folder)
    assert rule((folder / "out/o.d").read_text()) == {
        "out/o.o": ["one.cu", "value.cu", "main.cpp"],
        "value.cu": [],
        "main.cpp": [],
    }
    made("-c", "-MD", "-MF", "d.txt", "-MT", "goal", "main.cpp", cwd=folder)
    assert rule((folder / "d.txt").read_text())["goal"][0] == "main.cpp"
    made("-O0", "-MMD", "one.cu", "-o", "program", cwd=folder)
    assert rule((folder / "program.d").read_text())["program"] == ["one.cu", "value.cu", "main.cpp"]


@pytest.mark.full
def test_make_follows_the_dependencies(folder):
    (folder / "Makefile").write_text(f"one.o: one.cu\n\t{SIMTCC} -O0 -c -MMD -MF one.d one.cu -o $@\n-include one.d\n")

    def make():
        return subprocess.run(["make", "-C", str(folder)], stdout=subprocess.PIPE, text=True, check=True).stdout

    assert "simtcc" in make()
    assert "simtcc" not in make()
    later = time.time() + 5
    os.utime(str(folder / "value.cu"), (later, later))
    assert "simtcc" in make()


def test_debug_information_names_the_source(folder):
    made("-c", "one.cu", cwd=folder)
    lines = subprocess.run(["objdump", "-dl", str(folder / "one.o")], stdout=subprocess.PIPE, text=True).stdout
    assert "a folder/value.cu:5" in lines and ".ii" not in lines


@pytest.mark.full
def test_keep_shows_the_steps(folder):
    made("-c", "--keep", "--keep-dir", "steps", "one.cu", cwd=folder)
    assert "::simt::launch(" in (folder / "steps/one.translated.ii").read_text()
    assert "k<<<1, 1>>>(p)" in (folder / "steps/one.ii").read_text()
    assert "translate.py" in made("-v", "-c", "one.cu", cwd=folder).stderr


def test_help_and_version(folder):
    assert "-gencode" in made("--help", cwd=folder).stdout
    assert "release 13.0" in made("--version", cwd=folder).stdout


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "no input file"),
        (["absent.cu"], "absent.cu: no such file"),
        (["one.cu", "--frobnicate"], "unknown option --frobnicate"),
        (["one.cu", "-fPIC"], "-Xcompiler -fPIC"),
        (["one.cu", "-o"], "-o lacks its value"),
        (["one.cu", "-ptx"], "-ptx"),
        (["-cubin", "one.cu"], "no GPU code"),
        (["one.cu", "-lcublasXt"], "does not have this library"),
        (["one.cu", "-lcufft"], "does not have this library; it has CUDA's runtime, and most of Thrust, cuBLAS"),
        (["one.cu", "-lcudnn"], "does not have this library"),
        (["one.cu", "-c", "value.cu", "-o", "x.o"], "one source file"),
        (["one.cu", "-c", "-o", "absent/x.o"], "no folder absent"),
        (["one.cu", "-o", "one.cu"], "also an input"),
        (["one.cu", "-std=c++99"], "-std=c++99"),
        (["notes.txt"], "notes.txt"),
        (["kernel.ptx"], "GPU code"),
        (["-x", "fortran", "one.cu"], "fortran"),
    ],
)
def test_wrong_command_line(folder, arguments, words):
    (folder / "notes.txt").write_text("")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = simtcc(*arguments, cwd=folder)
    assert result.returncode == 2
    assert result.stderr.startswith("simtcc: ") and words in result.stderr and len(result.stderr.splitlines()) == 1
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "header, owner",
    [
        ("cudnn_new.h", "cuDNN"),
        ("thrust/new.h", "Thrust"),
        ("cute/new.h", "CUTLASS"),
        ("cuda_d3d12_interop.h", "Direct3D"),
    ],
)
def test_absent_cuda_library(folder, header, owner):
    (folder / "h.cu").write_text(f"#include <{header}>\n")
    result = simtcc("-c", "h.cu", cwd=folder)
    assert result.returncode == 1 and "h.cu:1:" in result.stderr
    assert owner in result.stderr.splitlines()[-1] and result.stderr.splitlines()[-1].startswith(
        "simtcc: the CPU device"
    )


@pytest.mark.full
def test_headers_of_an_installed_toolkit_are_not_used(folder):
    toolkit = folder / "toolkit"
    for name in ["crt/host_config.h", "cuda_runtime.h", "cublasXt.h", "thrust/async/scan.h"]:
        (toolkit / name).parent.mkdir(parents=True, exist_ok=True)
        (toolkit / name).write_text("#error a header for nvcc\n")
    made("-O0", "-I", toolkit, "one.cu", "-o", "x", cwd=folder)
    for header, owner in [("cublasXt.h", "cuBLAS"), ("thrust/async/scan.h", "Thrust")]:
        (folder / "h.cu").write_text(f"#include <{header}>\n")
        result = simtcc("-c", "-I", toolkit, "h.cu", cwd=folder)
        assert result.returncode == 1 and owner in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "code, words",
    [
        ("#include <cuda.h>\nint main() { cuInit(0); }", "CUDA's driver API; use the functions of the runtime"),
        ("#include <cuda.h>\nCUmodule module;", "CUDA's driver API"),
        ("#include <cublas_v2.h>\nint main() { cublasStrsm(); }", "this part of cuBLAS"),
        ("#include <curand_kernel.h>\nint main() { curandStateMRG32k3a_t s; }", "this part of cuRAND"),
        ("#include <nccl_device.h>\nncclGin* gin;", "this part of NCCL"),
        ("int main() { cudaGraphicsMapResources(1, 0); }", "CUDA's graphics interoperability"),
        ("int main() { cudaMemRangeGetAttribute(); }", "this function of CUDA's runtime"),
        ("int main() { cudaMemcopy(); }", ""),
        ("int main() { undeclared(); }", ""),
    ],
)
def test_what_is_not_declared_is_named(folder, code, words):
    (folder / "d.cu").write_text(code)
    said = simtcc("-O0", "-c", "d.cu", cwd=folder).stderr
    assert ("the CPU device does not have" in said) == bool(words) and words in said


@pytest.mark.parametrize(
    "code, words",
    [
        ("int main() { thrust::absent(1, 2); }", "Thrust has no thrust::absent"),
        ("using T = cub::Absent<int, 128>;", "CUB has no cub::Absent"),
        ("void f() { cub::DeviceAbsent::Sum(); }", "CUB has no cub::DeviceAbsent"),
        ("struct P : thrust::absent_policy<P> {};", "Thrust has no thrust::absent_policy"),
        ("int thrust_absent = thrust;", ""),
    ],
)
def test_a_name_that_a_namespace_of_cuda_lacks(folder, code, words):
    (folder / "d.cu").write_text(f"#include <thrust/pair.h>\n#include <cub/version.cuh>\nnamespace cub {{}}\n{code}\n")
    result = simtcc("-O0", "-c", "d.cu", cwd=folder)
    assert result.returncode == 1
    assert ("simtcc: the CPU device's" in result.stderr) == bool(words) and words in result.stderr


def test_a_shuffle_of_older_gpus_is_said_in_todays_words(folder):
    (folder / "d.cu").write_text("__global__ void k(int* x) { *x = __shfl_xor(*x, 1); }\n")
    assert "write __shfl_xor_sync(0xffffffff, ...)" in simtcc("-O0", "-c", "d.cu", cwd=folder).stderr


def test_a_product_of_matrices_without_a_blas_is_refused_at_the_call(folder):
    (folder / "gemm.cu").write_text(
        "#include <cublas_v2.h>\nint main() {\n  cublasHandle_t handle;\n  cublasCreate(&handle);\n  const float one = 1;\n"
        "  float* data;\n  cudaMalloc(&data, 4);\n"
        "  return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, data, 1, data, 1, &one, data, 1);\n}\n"
    )
    made("-O0", "gemm.cu", "-lcublas", "-o", "gemm", cwd=folder)
    environment = {**os.environ, "SIMT_BLAS": "absent.so"}
    result = subprocess.run(["./gemm"], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 15 and "needs a BLAS on this machine" in result.stderr


def test_refused_source_names_the_line_and_leaves_no_object(folder):
    (folder / "ptx.cu").write_text('void f() {\n  asm("bar.sync 1, 64;");\n}\n')
    result = simtcc("-c", "ptx.cu", cwd=folder)
    assert result.returncode == 1
    assert result.stderr.startswith("ptx.cu:2: error: the PTX instruction bar.sync cannot run on the CPU device; use")
    assert not (folder / "ptx.o").exists()


def fake_gxx(folder, version, name="g++"):
    (folder / "bin").mkdir(exist_ok=True)
    path = folder / "bin" / name
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


def test_compiler_that_is_absent_or_old(folder):
    absent = simtcc("one.cu", cwd=folder, CXX="no-such-compiler")
    assert (
        absent.returncode == 1 and "no-such-compiler is not installed" in absent.stderr and "apt-get" in absent.stderr
    )
    old = simtcc("one.cu", cwd=folder, CXX=str(fake_gxx(folder, "11.4.0")))
    assert old.returncode == 1 and "version 11.4.0" in old.stderr and "g++ 12 or newer" in old.stderr
    assert simtcc("-ccbin", folder / "bin", "one.cu", cwd=folder).stderr == old.stderr


def test_absent_boost(folder):
    compiler = fake_gxx(folder, "12.2.0", "fake")
    real = shutil.which("g++")
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *-lboost_context*) echo ld: cannot find -lboost_context >&2; exit 1;; esac\n'
        f'exec {real} "$@"\n'
    )
    result = simtcc("-O0", "one.cu", cwd=folder, CXX=str(compiler))
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].endswith("is missing: apt-get install libboost-context-dev")


@pytest.mark.full
def test_runtime_is_built_on_demand_once(folder, tmp_path):
    build = tmp_path / "new"
    jobs = [
        subprocess.Popen(
            [str(SIMTCC), "-O0", "one.cu", "-o", f"p{n}"],
            cwd=str(folder),
            env={**os.environ, "SIMT_BUILD_DIR": str(build)},
        )
        for n in range(2)
    ]
    assert [job.wait(timeout=600) for job in jobs] == [0, 0]
    assert exit_code("p0", folder) == 3 and exit_code("p1", folder) == 3
    archive = (build / "libsimt.a").stat()
    made("-O0", "one.cu", "-o", "p2", cwd=folder, SIMT_BUILD_DIR=str(build))
    assert (build / "libsimt.a").stat().st_mtime_ns == archive.st_mtime_ns
    assert [path.name for path in build.glob("libsimt*")] == ["libsimt.a"]


def test_it_says_that_the_runtime_is_built_and_on_a_terminal_how(folder, tmp_path):
    fake = tmp_path / "make"
    fake.write_text(f'#!/bin/sh\necho "  compile  simt/runtime/some.cpp"\nexec {shutil.which("make")} "$@"\n')
    fake.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    said = made("-O0", "one.cu", cwd=folder, PATH=path).stderr.splitlines()
    assert said == ["simtcc: building the CPU device, which takes a minute or two; later runs need not"]
    parent, child = os.openpty()
    command = [str(SIMTCC), "-O0", "one.cu"]
    subprocess.run(command, cwd=str(folder), env={**os.environ, "PATH": path}, stderr=child, check=True)
    os.close(child)
    assert b"  compile  simt/runtime/some.cpp" in os.read(parent, 4096)
    os.close(parent)


def test_runtime_folder_that_cannot_be_written(folder, tmp_path):
    (tmp_path / "file").write_text("")
    result = simtcc("-O0", "one.cu", cwd=folder, SIMT_BUILD_DIR=str(tmp_path / "file/build"))
    assert result.returncode == 1 and "set SIMT_BUILD_DIR" in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "sent, code", [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.full)]
)
def test_stopped_in_the_middle(folder, tmp_path, sent, code):
    """Nothing temporary is left, and no compiler goes on."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (folder / "long.cu").write_text(
        "template <int N> struct F { static constexpr long v = F<N - 1>::v + F<N - 2>::v; };\n"
        "constexpr long slow(int n) { return n < 2 ? n : slow(n - 1) + slow(n - 2); }\n"
        "constexpr long v = slow(45);\n"
    )
    job = subprocess.Popen(
        [str(SIMTCC), "-Xcompiler", "-fconstexpr-ops-limit=2147483647,-fconstexpr-cache-depth=1", "-c", "long.cu"],
        cwd=str(folder),
        env={**os.environ, "TMPDIR": str(temporary)},
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs inherit that it is ignored
    )
    deadline = time.time() + 60
    while not list(temporary.glob("*/*.translated.ii")) and time.time() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    assert job.poll() is None
    job.send_signal(sent)
    assert job.wait(timeout=30) == code
    job.stderr.close()
    assert list(temporary.iterdir()) == []
    assert not (folder / "long.o").exists()
    time.sleep(0.3)
    running = subprocess.run(["ps", "-eo", "args"], stdout=subprocess.PIPE, text=True).stdout
    assert str(temporary) not in running


def test_nothing_temporary_is_left(folder, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (folder / "wrong.cu").write_text("int main() { return missing; }\n")
    assert simtcc("wrong.cu", cwd=folder, TMPDIR=str(temporary)).returncode == 1
    assert list(temporary.iterdir()) == []


def test_c_files_may_call_the_runtime_and_are_c_otherwise(folder):
    (folder / "host.c").write_text(
        "#include <stdlib.h>\n#include <cuda_runtime.h>\nint value_of_kernel(void);\n"
        "int twice(int n) { return 2 * n; }\n"
        "int main(void) {\n  int *none = malloc(4), *d;\n  if (none == NULL || cudaMalloc((void **)&d, 4)) return 1;\n"
        "  return value_of_kernel();\n}\n"
    )
    source = CHECKED.replace("int value_of", 'extern "C" int twice(int);\nextern "C" int value_of')
    (folder / "linked.cu").write_text(source.replace("return v", "return twice(v)"))
    compiled = made("-DVALUE=4", "host.c", "linked.cu", "-o", "both", cwd=folder)
    assert compiled.stderr == ""
    assert exit_code("both", folder) == 8
    (folder / "plain.c").write_text(
        "#include <stdlib.h>\nint main(void) { int *new = malloc(4); return new == NULL; }\n"
    )
    made("plain.c", "-o", "plain", cwd=folder)
    assert exit_code("plain", folder) == 0


@pytest.mark.parametrize("include", ["", "#include <cuda_runtime.h>\n"])
def test_kernels_in_a_cpp_file_get_a_hint(folder, include):
    (folder / "kernel.cpp").write_text(include + "__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n")
    refused = simtcc("kernel.cpp", cwd=folder)
    assert refused.returncode == 1
    assert "simtcc: kernel.cpp has code for the device: name it .cu, or compile it with -x cu\n" in refused.stderr


def test_what_is_killed_leaves_no_half_written_object(folder):
    """g++ is a program that writes half an object and waits, and is then killed with simtcc."""
    slow = folder / "g++"
    slow.write_text(
        '#!/bin/bash\ncase " $* " in *" -c "*) ;; *) exec g++ "$@" ;; esac\n'
        'while [ $# -gt 0 ]; do [ "$1" = -o ] && echo half > "$2" && echo $$ > begun; shift; done\nexec sleep 60\n'
    )
    slow.chmod(0o755)
    command = [str(SIMTCC), "-c", "main.cpp", "-o", "main.o"]
    environment = {**os.environ, "CXX": shlex.quote(str(slow)), "CCACHE_DISABLE": "1", "TMPDIR": str(folder)}
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True) as process:
        for _ in range(200):
            if (folder / "begun").exists() and (folder / "begun").read_text():
                break
            time.sleep(0.05)
        process.kill()
    os.kill(int((folder / "begun").read_text()), signal.SIGKILL)
    assert not (folder / "main.o").exists()
