"""python -m rms_norm says what this build is for."""

from . import BACKEND, __version__, _build

if __name__ == "__main__":
    where = "NVIDIA GPUs, compiled with " + _build.OPTIONS.replace(";", " ") if BACKEND == "cuda" else "the CPU device"
    print(f"rms_norm {__version__} for {where}; types: {_build.TYPES}; parts: {_build.PARTS.replace(';', ' ')}")
    if BACKEND == "cpu":
        print("For a GPU, install CUDA's nvcc first; without a GPU here, say which: ARCHS='80 90' pip install ./python")
