"""python -m rms_norm says what this build is for."""

from . import BACKEND, __version__, _build

if __name__ == "__main__":
    where = "NVIDIA GPUs, compiled with " + _build.OPTIONS.replace(";", " ") if BACKEND == "cuda" else "the CPU device"
    print(f"rms_norm {__version__} for {where}; types: {_build.TYPES}")
    if BACKEND == "cpu":
        print("To build it for a GPU, install CUDA's nvcc, and where no GPU is, say which: ARCHS=\"80 90\" pip install …")
