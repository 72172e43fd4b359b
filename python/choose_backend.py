"""Which backend the package is built for, and nvcc's options for the architectures: the rules of mk/config.mk.

CMakeLists.txt runs it: it prints the backend, why, the compiler and the options, one a line, or on stderr one sentence
on what is wrong. $BACKEND says cuda or cpu; without it, cuda is chosen where there is nvcc and either a GPU or a list
of architectures. $ARCHS ("80 90a") or $TORCH_CUDA_ARCH_LIST ("8.0;9.0a+PTX", "Ada") say which; without them, those of this
machine's GPUs.
"""

import os
import re
import shutil
import subprocess
import sys

# What PyTorch means by the names; the header needs compute capability 7.5.
NAMES = {
    "Turing": "7.5+PTX",
    "Ampere": "8.0;8.6+PTX",
    "Ada": "8.9+PTX",
    "Hopper": "9.0+PTX",
    "Blackwell": "10.0;12.0+PTX",
}


class Wrong(Exception):
    pass


def find_nvcc(environment):
    homes = [environment.get("CUDA_HOME"), "/usr/local/cuda"]
    places = [os.path.join(home, "bin/nvcc") for home in homes if home]
    return environment.get("NVCC") or shutil.which("nvcc") or next(filter(os.path.exists, places), None)


def capabilities():
    """Those of this machine's GPUs, as in ["9.0"]."""
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20, text=True).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return sorted(set(re.findall(r"^\d+\.\d$", said, re.MULTILINE)))


def of_torch(text):
    """(architecture, whether its PTX is wanted too) for each entry of a TORCH_CUDA_ARCH_LIST."""
    named = [NAMES.get(name, name) for name in re.split(r"[;, ]+", text) if name]
    for entry in ";".join(named).split(";"):
        match = re.fullmatch(r"(\d+)\.(\d)([af]?)(\+PTX)?", entry)
        if not match:
            known = ", ".join(NAMES)
            raise Wrong(f"TORCH_CUDA_ARCH_LIST has {entry}; write 8.0 or 9.0a+PTX, with ; between them, or {known}")
        yield match[1] + match[2] + match[3], bool(match[4])


def of_archs(text):
    for entry in text.split():
        if not re.fullmatch(r"\d{2,3}[af]?", entry):
            raise Wrong(f'ARCHS has {entry}; write numbers as in sm_90, as in ARCHS="80 90a"')
        yield entry, False


def options_of(architectures):
    """nvcc's, for pairs of an architecture and whether its PTX is wanted."""
    options = []
    for architecture, ptx in architectures:
        if int(re.match(r"\d+", architecture)[0]) < 75:
            raise Wrong(f"sm_{architecture} is too old: the kernels need compute capability 7.5")
        for code in [f"sm_{architecture}"] + [f"compute_{architecture}"] * ptx:
            options += ["-gencode", f"arch=compute_{architecture},code={code}"]
    return options


def choose(environment, nvcc, gpus):
    """(backend, why, nvcc's options)."""
    asked = environment.get("BACKEND")
    listed = environment.get("ARCHS") or environment.get("TORCH_CUDA_ARCH_LIST")
    if asked not in (None, "", "cuda", "cpu"):
        raise Wrong(f"BACKEND={asked} is not a backend; say BACKEND=cuda, BACKEND=cpu, or leave it out")
    if asked == "cuda" and not nvcc:
        raise Wrong("BACKEND=cuda needs nvcc, which is not on PATH, in CUDA_HOME or in /usr/local/cuda")
    backend = asked or ("cuda" if nvcc and (gpus or listed) else "cpu")
    if backend == "cpu":
        there = "there is no nvcc" if not nvcc else "there is nvcc, but no GPU and no list of architectures"
        return backend, "as asked" if asked else there, []
    if environment.get("ARCHS"):
        return backend, "for ARCHS", options_of(of_archs(environment["ARCHS"]))
    if environment.get("TORCH_CUDA_ARCH_LIST"):
        return backend, "for TORCH_CUDA_ARCH_LIST", options_of(of_torch(environment["TORCH_CUDA_ARCH_LIST"]))
    if not gpus:
        raise Wrong('there is no GPU here to build for; name architectures, as in ARCHS="80 90"')
    return backend, "for the GPUs of this machine", options_of((gpu.replace(".", ""), False) for gpu in gpus)


def main():
    nvcc = find_nvcc(os.environ)
    try:
        backend, why, options = choose(os.environ, nvcc, capabilities() if nvcc else [])
    except Wrong as wrong:
        sys.exit(f"rms_norm: {wrong}")
    print(backend, why, nvcc if backend == "cuda" else "", ";".join(options), sep="\n")


if __name__ == "__main__":
    main()
