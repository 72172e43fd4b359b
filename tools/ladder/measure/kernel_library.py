"""Kernels as shared libraries for Python's ctypes, compiled where they are not up to date.

Of a ladder: one .cu file of extern "C" functions. The backend is chosen as by make: nvcc where there are nvcc and a GPU,
else the CPU device; BACKEND=cuda or cpu overrides. nvcc compiles for the GPU that is there, or for those that PyTorch's
variable TORCH_CUDA_ARCH_LIST names ("Ada", "8.9", "9.0+PTX", several with semicolons). Of a header: a folder of .cu files, which includes what is in include/.
"""

import ctypes
import os
import re
import shutil

from ..core import ladders, machine, results
from ..core.ladders import Unusable

GENERATIONS = {  # as PyTorch names them
    **{"Turing": "7.5+PTX", "Ampere": "8.0;8.6+PTX", "Ampere+Tegra": "8.7", "Ada": "8.9+PTX", "Hopper": "9.0+PTX"},
    "Blackwell": "10.0;10.3;12.0;12.1+PTX",
}
OPTIONS = ["-std=c++17", "-O3", f"-I{ladders.ROOT}", "-Xcompiler", "-fPIC,-fvisibility=hidden"]


def backend():
    asked = os.environ.get("BACKEND", "")
    if asked in ("cuda", "cpu"):
        return asked
    if asked:
        raise Unusable(f"BACKEND={asked} is not a backend; say BACKEND=cuda, BACKEND=cpu, or leave it out")
    try:
        machine.find_nvcc()
    except Unusable:
        return "cpu"
    return "cuda" if machine.gpu() else "cpu"


def architectures(asked):
    """nvcc's options for the value of TORCH_CUDA_ARCH_LIST."""
    options = []
    for word in re.split(r"[;,\s]+", asked.strip()):
        for one in GENERATIONS.get(word, word).split(";"):
            found = re.fullmatch(r"(\d+)\.(\d[af]?)(\+PTX)?", one)
            if not found:
                named = ", ".join(GENERATIONS)
                raise Unusable(f"TORCH_CUDA_ARCH_LIST={asked}: {word} is no architecture; say 8.9, 9.0+PTX or {named}")
            number = found[1] + found[2]
            if number == "90" and not found[3]:
                number += "a"  # Hopper's own instructions, which PTX for all lacks
            options.append(f"-gencode=arch=compute_{number},code=sm_{number}")
            options += [f"-gencode=arch=compute_{number},code=compute_{number}"] if found[3] else []
    return options


def compiler(chosen):
    if chosen == "cpu":
        return [str(ladders.ROOT / "simt/simtcc")]
    asked = os.environ.get("TORCH_CUDA_ARCH_LIST", "")
    if asked.strip():
        return [machine.find_nvcc(), *architectures(asked)]
    capability = machine.query("compute_cap").replace(".", "")
    return [machine.find_nvcc(), f"-arch=sm_{'90a' if capability == '90' else capability}"]


def is_fresh(target, dependencies, said, command):
    """Whether it was made by this command, from files that have not changed since."""
    if not (target.is_file() and dependencies.is_file() and said.is_file() and said.read_text() == " ".join(command)):
        return False
    files = re.sub(r"\\\n", " ", dependencies.read_text().partition(":")[2]).split()
    return all(os.path.exists(file) and os.stat(file).st_mtime <= target.stat().st_mtime for file in files)


def build(source, chosen):
    """The path of the library, below build/<backend>/python/ at the path of its source."""
    if chosen == "cpu" and not shutil.which("g++"):
        raise Unusable("g++ 12 or newer is needed to compile the kernels for the CPU device")
    target = ladders.ROOT / "build" / chosen / "python" / source.relative_to(ladders.ROOT).with_suffix(".so")
    object_file, dependencies, said = (target.with_suffix(suffix) for suffix in (".o", ".d", ".txt"))
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [*compiler(chosen), *OPTIONS, "-MMD", "-MF", str(dependencies), "-c", str(source), "-o", str(object_file)]
    if is_fresh(target, dependencies, said, command):
        return target
    print(f"compiling {results.shown(source)} ({chosen})", flush=True)
    link = [*compiler(chosen), "-shared", str(object_file), "-Xlinker", "-Bsymbolic", "-o", str(target)]
    for words in (command, link):
        done = machine.run(*words)
        if done.returncode != 0:
            raise Unusable(f"{done.stdout.decode(errors='replace')}{results.shown(source)} does not compile, see above")
    said.write_text(" ".join(command))
    return target


def build_folder(folder, target, command):
    """The library `target` of all .cu files of a folder, made by this command with include/ on its path."""
    files = sorted(folder.iterdir())
    command = [*command, "-std=c++17", "-O3", "-shared", "-Xcompiler", "-fPIC", f"-I{ladders.ROOT / 'include'}"]
    command += [*(str(path) for path in files if path.suffix == ".cu"), "-o", str(target)]
    sources = [*files, *(ladders.ROOT / "include").rglob("*.cuh")]
    said = target.with_suffix(".txt")
    fresh = target.is_file() and said.is_file() and said.read_text() == " ".join(command)
    if fresh and all(source.stat().st_mtime <= target.stat().st_mtime for source in sources):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"compiling {results.shown(folder)}", flush=True)
    done = machine.run(*command)
    if done.returncode != 0:
        raise Unusable(f"{done.stdout.decode(errors='replace')}{results.shown(folder)} does not compile, see above")
    said.write_text(" ".join(command))
    return target


def load(source):
    """(the library, "cuda" or "cpu")."""
    chosen = backend()
    return ctypes.CDLL(str(build(source, chosen))), chosen
