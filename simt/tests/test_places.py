"""runtime/places.cpp: the lines of a program, of a shared object, and of what has no debug information."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SIMT = Path(__file__).resolve().parent.parent
HERE = SIMT / "tests/places"


def line_of(file, text):
    """Where a line with this text stands, as file:line."""
    lines = (HERE / file).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return f"{HERE / file}:{number}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a program and its shared object; the program's header lies below .../simt/include."""
    folder = tmp_path_factory.mktemp("a folder")
    headers = folder / "simt/include"
    headers.mkdir(parents=True)
    shutil.copy(HERE / "here.h", headers)
    gxx = [*(os.environ.get("CXX") or "g++").split(), "-std=gnu++17", "-g", "-O1", f"-I{SIMT}", f"-I{headers}"]
    library, program = folder / "liblibrary.so", folder / "a program"
    subprocess.run([*gxx, "-shared", "-fPIC", HERE / "library.cpp", "-o", library], check=True)
    sources = [HERE / "program.cpp", SIMT / "runtime/places.cpp", library]
    subprocess.run([*gxx, *sources, f"-Wl,-rpath,{folder}", "-lbacktrace", "-o", program], check=True)
    return folder


def said_by(program):
    """{(address, what): [values]}"""
    done = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True)
    said = {}
    for words in re.findall(r"^(\w+) (\w+): (.*)$", done.stdout, re.MULTILINE):
        said.setdefault(words[:2], []).append(words[2])
    return said


def test_a_line_and_the_calls_inlined_there(folder):
    said = said_by(folder / "a program")
    call = line_of("program.cpp", 'show("own"')
    assert said["own", "frame"] == [line_of("program.cpp", "return here()"), call]
    assert said["own", "place"] == [line_of("program.cpp", "return here()")]
    in_header = line_of("here.h", "return here()").rpartition(":")[2]
    outer = line_of("program.cpp", 'show("header"')
    assert said["header", "frame"] == [f"{folder}/simt/include/here.h:{in_header}", outer]
    assert said["header", "place"] == [outer]
    assert said["the", "symbol"] == ["_Z5namedi"]


def test_a_line_of_a_shared_object(folder):
    assert said_by(folder / "a program")["library", "place"] == [line_of("library.cpp", "pc = here()")]


@pytest.mark.parametrize("address", ["nowhere", "data"])
def test_an_address_that_is_no_code_has_no_line(folder, address):
    assert said_by(folder / "a program")[address, "place"] == [":0"]
    assert said_by(folder / "a program")["no", "symbol"] == [""]


def test_a_stripped_program_has_no_lines(folder):
    stripped = folder / "stripped"
    subprocess.run(["strip", "-o", stripped, folder / "a program"], check=True)
    said = said_by(stripped)
    assert said["own", "place"] == [":0"] and said["the", "symbol"] == [""]
    assert said["library", "place"] == [line_of("library.cpp", "pc = here()")]


@pytest.mark.parametrize(
    "source, where",
    [
        ("below/k.cu", "."),
        pytest.param("k.cu", "below", marks=pytest.mark.full),
        pytest.param("../below/k.cu", "beside", marks=pytest.mark.full),
    ],
)
def test_a_source_named_from_another_folder(tmp_path, source, where):
    for name in ("below", "beside"):
        (tmp_path / name).mkdir()
    kernel = '#include "../a header.h"\nint main() {\n  k<<<1, 1>>>(nullptr);\n  return cudaDeviceSynchronize();\n}\n'
    (tmp_path / "below/k.cu").write_text(kernel)
    (tmp_path / "a header.h").write_text("__global__ void k(int* p) { *p = 1; }\n")
    subprocess.run([SIMT / "simtcc", "-O0", source, "-o", "program"], cwd=tmp_path / where, check=True)
    done = subprocess.run([tmp_path / where / "program"], stderr=subprocess.PIPE, text=True, cwd="/")
    assert f"{tmp_path}/a header.h:1: illegal memory access at 0x0" in done.stderr


def test_a_kernel_that_hangs_within_the_device_is_named_by_its_own_line(tmp_path):
    """Wherever the program runs: the device's own lines are known by their names."""
    source = "__global__ void k(int* p) {\n  while (atomicAdd(p, 0) == 0) {\n  }\n}\n"
    main = "int main() {\n  int* p;\n  cudaMalloc(&p, 4);\n  cudaMemset(p, 0, 4);\n  k<<<1, 2>>>(p);\n  return cudaDeviceSynchronize();\n}\n"
    (tmp_path / "k.cu").write_text(source + main)
    subprocess.run([SIMT / "simtcc", "-O0", "k.cu", "-o", "k"], cwd=tmp_path, check=True)
    environment = {**os.environ, "SIMT_TIMEOUT": "0.5"}
    done = subprocess.run([tmp_path / "k"], stderr=subprocess.PIPE, text=True, cwd="/", env=environment)
    assert f"{tmp_path}/k.cu:2: the kernel makes no progress" in done.stderr
