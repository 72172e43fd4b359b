"""The kernels that benchmark_layernorm.py and test_layernorm.py call from PyTorch.

    before    the engine's kernels before the document's changes: 01_cub_block_reduce and 04_fused_add; for float, the
              form of 04 with one element per access
    after     those after its changes: 03_vectorized and 06_unrolled; for float, 07_generic
    header    this project's header, by the package of python/ and its module rms_norm.vllm

The first two are compiled when they are first needed: by nvcc for the GPU that is there, or for the CPU device, on
which tensors are in host memory.
"""

import ctypes
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
from ladder.measure import kernel_library

DTYPES = {"half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32}
CODES = {dtype: code for code, dtype in enumerate(DTYPES.values())}  # Dtype of common/operators/rms_norm_serving.h
_loaded = {}


def library():
    if not _loaded:
        _loaded["library"], _loaded["backend"] = kernel_library.load(
            pathlib.Path(__file__).resolve().with_name("python.cu")
        )
        _loaded["library"].serving_norm.argtypes = [
            *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_float),
            *(ctypes.c_int64, ctypes.c_int64, ctypes.c_int, ctypes.c_int, ctypes.c_void_p),
        ]
    return _loaded["library"]


def devices():
    """Of the tensors that the kernels take: every GPU, or host memory."""
    library()
    if _loaded["backend"] == "cpu":
        return ["cpu"]
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


class Compiled:
    """rms_norm and fused_add_rms_norm with the signatures of vllm._custom_ops, by the kernels before or after."""

    def __init__(self, before):
        self.before = before

    def launch(self, out, input, residual, weight, epsilon):
        dense = [tensor for tensor in (out, residual, weight) if tensor is not None and tensor is not input]
        if input.ndim != 2 or input.stride(1) != 1 or not all(tensor.is_contiguous() for tensor in dense):
            raise ValueError("input must be a matrix whose rows are contiguous, and the others must be contiguous")
        if any(tensor.dtype != input.dtype or tensor.device != input.device for tensor in dense):
            raise TypeError("all tensors must have one type and lie on one device")
        stream = torch.cuda.current_stream(input.device).cuda_stream if input.is_cuda else None
        with torch.cuda.device(input.device) if input.is_cuda else torch.no_grad():
            error = library().serving_norm(
                *(out.data_ptr(), input.data_ptr(), input.stride(0), None if residual is None else residual.data_ptr()),
                *(weight.data_ptr(), epsilon, *input.shape, CODES[input.dtype], self.before, stream),
            )
        if error:
            raise RuntimeError(f"the kernel could not be launched: CUDA's error {error}")

    def rms_norm(self, out, input, weight, epsilon):
        self.launch(out, input, None, weight, epsilon)

    def fused_add_rms_norm(self, input, residual, weight, epsilon):
        self.launch(input, input, residual, weight, epsilon)


def kernels(name):
    """What has rms_norm(out, input, weight, epsilon) and fused_add_rms_norm(input, residual, weight, epsilon)."""
    if name == "header":
        try:
            from rms_norm import vllm
        except ImportError as error:
            raise ImportError(f"the package of python/ is not installed (pip install ./python): {error}") from None
        return vllm
    return Compiled(name == "before")


NAMES = ["before", "after", "header"]
