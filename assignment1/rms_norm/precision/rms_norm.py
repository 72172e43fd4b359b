"""The document's program: the ladder's kernels called from PyTorch, and its table of first elements and times.

    python3 assignment1/rms_norm/precision/rms_norm.py                    the document's table, N × K
    python3 assignment1/rms_norm/precision/rms_norm.py --shape 4096x512   one or more other shapes
    python3 assignment1/rms_norm/precision/rms_norm.py --csv FILE         the times of this run as a CSV, too

Needs PyTorch. The kernels are compiled when they are first needed: by nvcc for the GPU that is there, or for the
architectures that TORCH_CUDA_ARCH_LIST names (TORCH_CUDA_ARCH_LIST=Ada), or else for the CPU device, on which the
tensors are in host memory and no time is printed. As a module:

    from rms_norm import rms_norm_f16x8_pack_f32
    rms_norm_f16x8_pack_f32(x, y)          # y = the norm of x's rows; also weight= and eps=

Times are of one launch in a CUDA graph of many. "time" is the document's: one x and one y, which the L2 cache holds if
they fit. "cold" is that of many pairs in turn, so that large ones come from memory.
"""

import argparse
import datetime
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
import ctypes

try:
    import torch
except ImportError:
    sys.exit("rms_norm.py: PyTorch is needed (pip install torch)")
from ladder.core import machine, results
from ladder.core.ladders import Unusable
from ladder.measure import graph_timing, kernel_library

SHAPES = ["4096x512", "4096x1024", "4096x2048", "4096x4096", "4096x8192", "8192x8192"]
ON_CPU_DEVICE = ["64x512", "64x1024", "64x2048"]
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf1": torch.bfloat16}
# The document's names in its order, beside those of the kernels.
FLOAT32 = {"out_f32": "f32", "out_f32x4": "f32x4"}
FLOAT16 = {
    **{"out_f16f16": "f16_f16", "out_f16f32": "f16_f32", "out_f16x2f16": "f16x2_f16", "out_f16x8f16": "f16x8_f16"},
    **{"out_f16x8f32": "f16x8_f32", "out_f16x8packf16": "f16x8_pack_f16", "out_f16x8packf32": "f16x8_pack_f32"},
}
BFLOAT16 = {"out_bf16bf16": "bf16_bf16", "out_bf16x8packf32": "bf16x8_pack_f32"}
ARGUMENTS = [*[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2, ctypes.c_float, ctypes.c_void_p]
_loaded = {}


def library():
    if not _loaded:
        _loaded["library"], _loaded["backend"] = kernel_library.load(
            pathlib.Path(__file__).resolve().with_name("python.cu")
        )
    return _loaded["library"]


def device():
    """Of the tensors that the kernels take."""
    library()
    return "cuda" if _loaded["backend"] == "cuda" else "cpu"


def check(name, tensor, x, shape):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} is a {type(tensor).__name__}; it must be a tensor")
    if tensor.dtype != x.dtype or tensor.device != x.device:
        raise TypeError(f"{name} is {tensor.dtype} on {tensor.device}, and x is {x.dtype} on {x.device}")
    if tuple(tensor.shape) != tuple(shape) or not tensor.is_contiguous():
        raise ValueError(f"{name} must be contiguous and have the shape {tuple(shape)}, not {tuple(tensor.shape)}")


def made(kernel):
    """The function rms_norm_<kernel>."""
    dtype = TYPES[kernel[:3]]

    def function(x, y, weight=None, eps=1e-5):
        """y = the norm of each row of x, two matrices of one type, times the weight of as many elements as a row has."""
        call = getattr(library(), f"rms_norm_{kernel}")
        call.argtypes = ARGUMENTS
        if not isinstance(x, torch.Tensor) or x.dtype != dtype or x.device.type != device() or x.ndim != 2:
            raise TypeError(f"x must be a matrix of {dtype} on {device()}")
        check("x", x, x, x.shape)
        check("y", y, x, x.shape)
        if weight is not None:
            check("weight", weight, x, x.shape[1:])
        stream = torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else None
        pointers = x.data_ptr(), weight.data_ptr() if weight is not None else None, y.data_ptr()
        error = call(*pointers, *x.shape, eps, stream)
        if error:
            raise RuntimeError(f"rms_norm_{kernel} could not be launched: CUDA's error {error}")

    function.__name__ = function.__qualname__ = f"rms_norm_{kernel}"
    return function


KERNELS = {kernel: made(kernel) for kernel in [*FLOAT32.values(), *FLOAT16.values(), *BFLOAT16.values()]}
globals().update({function.__name__: function for function in KERNELS.values()})


def naive(x, y, eps=1e-5):
    """In PyTorch's own operations, each of them a kernel: the document's out_f32_th and out_f16_th."""
    y.copy_(x * torch.rsqrt((x * x).mean(dim=1, keepdim=True) + eps))


class Pair:
    """An input and an output of graph_timing's pools."""

    def __init__(self, x):
        self.x, self.y = x, torch.empty_like(x)


def microseconds(function, x):
    """(of one pair again and again, of many pairs in turn)."""

    def launch(pair):
        function(pair.x, pair.y)
        return pair.y

    count = graph_timing.pair_count(2 * x.numel() * x.element_size())
    pairs = [Pair(x)] + [Pair(torch.randn_like(x)) for _ in range(count - 1)]
    stream, found = torch.cuda.Stream(), []
    with torch.cuda.stream(stream):
        for pool in (pairs[:1], pairs):
            for pair in pool:
                launch(pair)
            graph = graph_timing.Graph(torch, stream, launch, pool)
            found.append(graph_timing.summarize([graph.time() for _ in range(12)])[0])
    return found


def line(name, function, x):
    """Prints it; its row of the CSV, if it was timed."""
    y = torch.full_like(x, torch.nan)
    function(x, y)
    first = [f"{value:<12}" for value in (round(value, 8) for value in y.flatten()[:3].tolist())]
    said = f"{name:>17}: {first}"
    row = []
    if x.is_cuda:
        warm, cold = microseconds(function, x)
        said += f", time:{warm / 1e3:.8f}ms, cold:{cold / 1e3:.8f}ms"
        row = [[*x.shape, name, f"{warm:.3f}", f"{cold:.3f}"]]
    print(said, flush=True)
    return row


def table(rows, cols):
    """Prints it; its rows of the CSV."""
    found = []
    print("-" * 85)
    print(" " * 40 + f"N={rows}, K={cols}")
    x = torch.randn(rows, cols, device=device())
    for names, type_of, other in (
        (FLOAT32, torch.float32, "out_f32_th"),
        (FLOAT16, torch.float16, "out_f16_th"),
        (BFLOAT16, torch.bfloat16, "out_bf16_th"),
    ):
        converted = x.to(type_of)
        for name, kernel in names.items():
            found += line(name, KERNELS[kernel], converted)
        found += line(other, naive, converted)
        print("-" * 85)
    return found


def write(path, rows):
    runtime, clock = torch.version.cuda or "", machine.query("clocks.max.sm")
    of_the_run = [torch.cuda.get_device_name(), runtime, machine.query("driver_version"), datetime.date.today()]
    of_the_run += [re.sub(r"\D", "", clock), torch.__version__]
    header = ["rows", "cols", "variant", "warm_microseconds", "microseconds", *results.OF_THE_RUN, "torch"]
    results.write_csv(path, header, [row + of_the_run for row in rows])


def shape(text):
    rows, _, cols = text.partition("x")
    if not (rows.isdigit() and cols.isdigit() and int(rows) and int(cols)):
        raise argparse.ArgumentTypeError(f"{text} is no shape; say 4096x512")
    return int(rows), int(cols)


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--shape", type=shape, action="append", help="NxK; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", type=pathlib.Path, metavar="FILE", help="also write the times to this file")
    given = parser.parse_args()
    try:
        torch.manual_seed(given.seed)
        place = torch.cuda.get_device_name() if device() == "cuda" else "CPU device (simt), which times nothing"
    except Unusable as error:
        sys.exit(f"rms_norm.py: {error}")
    print(place)
    found = []
    for rows, cols in given.shape or map(shape, SHAPES if device() == "cuda" else ON_CPU_DEVICE):
        found += table(rows, cols)
    if given.csv and not found:
        sys.exit("rms_norm.py: --csv: nothing was timed, so there is nothing to write; times need a GPU")
    if given.csv:
        write(given.csv, found)


if __name__ == "__main__":
    main()
