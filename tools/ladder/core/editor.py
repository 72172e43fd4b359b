"""compile_commands.json: how clangd reads the C++ and CUDA files, as they are for the CPU device.

clang does not run the translator, so it gets simt/editor.h before each CUDA file. make writes the file, and so does
make compile_commands.json.
"""

import json

from .ladders import ROOT

FOLDERS = ("assignment*", "bench", "common", "include", "lectures", "my", "simt", "tests")
COMMON = (
    "clang++ -std=c++17 -D__NVCC__ -D__SIMT__=1 -D__builtin_assoc_barrier= -DSIMT_OBSERVED -DDOCTEST_CONFIG_USE_STD_HEADERS "
    "-fbracket-depth=1024 -I. -Iinclude -isystem simt/include -isystem simt/extras/include "
    "-Isimt -iquote simt/runtime -iquote simt/analysis"
).split()
# Kernels are read as host code, and nothing of an installed toolkit, which clang may be too old for.
CUDA = (
    "-x cuda --cuda-host-only -nocudainc -nocudalib -Wno-unknown-cuda-version -Xclang -fcuda-allow-variadic-functions "
    "-Wno-pragma-once-outside-header -D__CUDACC__ -D__CUDA_ARCH__=900 -D__CUDACC_VER_MAJOR__=13 -D__CUDACC_VER_MINOR__=0 "
    "-include simt/editor.h"
).split()


def commands():
    for top in FOLDERS:
        for path in sorted(ROOT.glob(f"{top}/**/*")):
            if path.suffix in (".cu", ".cuh", ".cpp"):
                file = path.relative_to(ROOT)
                language = CUDA if path.suffix != ".cpp" else []
                observed = ["-DSIMT_ANALYSIS"] if file.parts[:2] == ("simt", "analysis") else []
                arguments = [*COMMON, f"-Ibuild/generated/{file.parent}", *observed, *language, str(file)]
                yield {"directory": str(ROOT), "file": str(file), "arguments": arguments}


def write():
    path = ROOT / "compile_commands.json"
    text = json.dumps(list(commands()), indent=0) + "\n"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
