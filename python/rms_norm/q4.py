"""Products with weights in llama.cpp's q4_0, by the kernels of the repository's include/q4_gemm.

    weights = q4.repack(blocks)        # once: the blocks of a GGUF file, as the gguf package reads or makes them
    y = q4.multiply(weights, x)        # y = x · Wᵀ, as torch.nn.Linear has it

A layer of a model multiplies the result of its norm with several matrices. Quantize it once, in the pass of the norm:

    numbers = q4.rms_norm_quantize(x, weight)
    q, k = q4.multiply(wq, numbers), q4.multiply(wk, numbers)

Each 32 numbers of x become whole numbers from -127 to 127 and a scale, as in q8_1. Their products with the weights are
exact, and sums are float32: include/q4_gemm/README.md says more. Arrays are those of PyTorch, CuPy and NumPy, and lie
where BACKEND says. A function raises TypeError for a type that does not fit, ValueError for a shape, strides, a device or
arrays that overlap, and RuntimeError if CUDA refused the launch; the message says which. There are no gradients.
rms_norm.q4_torch has operators of PyTorch for torch.compile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Tuple

from . import _arrays
from ._build import BACKEND
from ._options import options_of

__all__ = ["Quantized", "Weights", "add_rms_norm_quantize", "multiply", "quantize", "repack", "rms_norm_quantize"]

Array = Any  # a torch.Tensor, cupy.ndarray or numpy.ndarray
_Q4_0 = 2  # in GGUF files


@dataclass(frozen=True)
class Weights:
    """A matrix of m rows of k weights, as repack() lays it out: 4.5 bits a weight, padded to multiples of 64."""

    packed: Array  # shape (bytes,), uint8
    m: int
    k: int


@dataclass(frozen=True)
class Quantized:
    """An array of shape (..., k) as numbers of q8_1, for multiply()."""

    numbers: Array  # shape (bytes,), uint8
    shape: Tuple[int, ...]
    dtype: Any  # of what was quantized: that of a product, unless it is written to an array of another type


def _library_of(x: Array, name: str = "x") -> Any:
    library = _arrays.library_of(x, name)
    if library.immutable:
        raise TypeError(f"{library.name}'s arrays cannot be written; PyTorch's, CuPy's and NumPy's can")
    return library


def _call(library: Any, function: str, arrays: Dict[str, Any], *rest: Any, written: Tuple[str, ...] = ()) -> None:
    """A function of the binding, of arrays by their names; numbers may stand among them."""
    if library.name == "PyTorch":
        if library.is_watched():
            raise ValueError("PyTorch traces or transforms this call: use an operator of rms_norm.q4_torch")
        library.check_written((name, arrays[name]) for name in written)
        tensors = [array for array in arrays.values() if hasattr(array, "requires_grad")]
        if library.is_grad_enabled() and library.any_requires_grad(*tensors):
            raise ValueError("a tensor requires grad, and q4 has no backward: call it under torch.no_grad()")
    values = [
        library.given(name, array, name in written) if hasattr(array, "__dlpack__") else array
        for name, array in arrays.items()
    ]
    with library.on_stream(next(iter(arrays.values()))):
        try:
            _arrays.q4[function](*values, *rest)
        except _arrays.REFUSALS as refused:
            names = [name for name, array in arrays.items() if not isinstance(array, int)]
            given = [array for array in arrays.values() if not isinstance(array, int)]
            raise _arrays.explained(refused, given, names) from None
    if library.name == "PyTorch":
        library.increment_version(tuple(arrays[name] for name in written if arrays[name] is not None))


def quantized_bytes(shape: Sequence[int]) -> int:
    """Of an array of this shape: 64 numbers of a row and their two scales are 68 bytes."""
    if len(shape) == 0:
        raise ValueError("x has no dimension; (..., k) is wanted")
    return math.prod(shape[:-1]) * (-(-shape[-1] // 64)) * 68


def repack(blocks: Array) -> Weights:
    """Weights for multiply(), from blocks of q4_0. Once for a matrix, when it is loaded.

    Args:
        blocks: shape (m, k / 32 · 18), uint8, contiguous: m rows of k weights as GGUF files have them, which is what
            gguf.quants.quantize(w, Q4_0) makes of an array of shape (m, k). Or a tensor of gguf.GGUFReader, in a build
            for the CPU device; for a GPU, copy it there first: repack(torch.tensor(tensor.data, device="cuda")).
    """
    kind = getattr(blocks, "tensor_type", None)
    if kind is not None:
        if kind != _Q4_0:
            raise TypeError(f"the tensor is of type {getattr(kind, 'name', kind)}; Q4_0 is wanted")
        blocks = blocks.data
    library = _library_of(blocks, "blocks")
    shape = tuple(blocks.shape)
    m, k = (shape[0], shape[1] // 18 * 32) if len(shape) == 2 else (0, 0)  # which the binding refuses
    packed = library.new(blocks, _arrays.q4["packed_size"](m, k))
    _call(library, "repack", {"blocks": blocks, "packed": packed}, written=("packed",))
    return Weights(packed, m, k)


def multiply(
    weights: Weights,
    x: Array,
    bias: Optional[Array] = None,
    out: Optional[Array] = None,
    *,
    dependent_launch: bool = False,
    batch_invariant: bool = False,
) -> Array:
    """y = x · Wᵀ + bias, over the last dimension of x.

    Args:
        weights: what repack() returned, m rows of k weights.
        x: shape (..., k), float32, float16 or bfloat16; rows may have gaps between them, of one size. Or Quantized.
        bias: shape (m,), of the type of the result.
        out: shape (..., m), where the result goes. It overlaps nothing else. Of the type of x; of any of the three if x
            is Quantized.
        dependent_launch: programmatic dependent launch. The kernel may start while the one before it on the stream
            still runs, and reads weights at once, so that kernel must not write them.
        batch_invariant: the bits of a row of the result depend on that row of x, the weights, the bias and the types, but
            not on the other rows. quantize() and the norms are batch-invariant without an option.

    Returns:
        out, or a new array of the type of x, or of what was quantized.
    """
    if not isinstance(weights, Weights):
        raise TypeError(f"weights are a {type(weights).__name__}; they must be what repack() returned")
    is_quantized = isinstance(x, Quantized)
    given, shape = (x.numbers, x.shape) if is_quantized else (x, tuple(getattr(x, "shape", ())))
    library = _library_of(given)
    if not shape or shape[-1] != weights.k:
        raise ValueError(f"x has the shape {shape}; (..., {weights.k}) is wanted")
    wanted = (*shape[:-1], weights.m)
    if out is None:
        out = library.new(given, wanted, x.dtype)
    elif tuple(getattr(out, "shape", wanted)) != wanted:
        raise ValueError(f"out has the shape {tuple(out.shape)}; {wanted} is wanted")
    workspace = None
    if BACKEND == "cuda":  # the CPU device takes no workspace in host memory, and is no faster with one
        workspace_bytes = _arrays.q4["workspace_size"](weights.m, math.prod(shape[:-1]), weights.k)
        workspace = library.new(given, workspace_bytes) if workspace_bytes else None
    arrays: Dict[str, Any] = {
        "weights": weights.packed,
        "m": weights.m,
        "k": weights.k,
        "x": given,
        "quantized": is_quantized,
    }
    arrays.update(bias=bias, out=out, workspace=workspace)
    rest = bool(dependent_launch), bool(batch_invariant), library.bfloat16_is_bits
    _call(library, "multiply", arrays, *rest, written=("out",))
    return out


def quantize(x: Array, *, dependent_launch: bool = False) -> Quantized:
    """x as numbers of q8_1, for several products.

    Args:
        x: shape (..., k), float32, float16 or bfloat16, with k a multiple of 32; rows as in multiply().
        dependent_launch: as in multiply(); nothing is read at once.
    """
    library = _library_of(x)
    numbers = library.new(x, quantized_bytes(x.shape))
    arrays = {"x": x, "quantized": numbers}
    _call(library, "quantize", arrays, bool(dependent_launch), library.bfloat16_is_bits, written=("quantized",))
    return Quantized(numbers, tuple(x.shape), x.dtype)


def rms_norm_quantize(
    x: Array,
    weight: Optional[Array] = None,
    eps: float = 1e-6,
    *,
    weight_offset: float = 0.0,
    dependent_launch: bool = False,
) -> Quantized:
    """quantize() of the norm of each row of x, which is not rounded in between.

    Args:
        x: shape (..., k), float32, float16 or bfloat16, with k a multiple of 32; rows as in multiply().
        weight: shape (k,), of the type of x or float32; None for ones.
        eps, weight_offset: as in rms_norm.rms_norm().
        dependent_launch: as in multiply(): the weight is what is read at once.
    """
    return _norm(x, None, None, weight, eps, weight_offset, dependent_launch)


def add_rms_norm_quantize(
    x: Array,
    residual: Array,
    weight: Optional[Array] = None,
    eps: float = 1e-6,
    *,
    residual_out: Optional[Array] = None,
    weight_offset: float = 0.0,
    dependent_launch: bool = False,
) -> Tuple[Quantized, Array]:
    """residual = x + residual, rounded to its type, and then rms_norm_quantize() of it.

    Args:
        x: as in rms_norm_quantize().
        residual: the shape of x, of its type or float32. It is overwritten by the sum, unless residual_out is given.
        weight, eps, weight_offset, dependent_launch: as in rms_norm_quantize().
        residual_out: where the sum goes, instead of residual.

    Returns:
        The norm, and the sum.
    """
    if residual is None:
        raise TypeError("residual is None; rms_norm_quantize() is the norm without one")
    residual_out = residual if residual_out is None else residual_out
    return _norm(x, residual, residual_out, weight, eps, weight_offset, dependent_launch), residual_out


def _norm(x, residual, residual_out, weight, eps, weight_offset, dependent_launch):
    options = options_of(eps, weight_offset)
    library = _library_of(x)
    numbers = library.new(x, quantized_bytes(x.shape))
    arrays = {"x": x, "residual": residual, "residual_out": residual_out, "weight": weight, "quantized": numbers}
    rest = *options.numbers[:2], bool(dependent_launch), library.bfloat16_is_bits
    _call(library, "norm", arrays, *rest, written=("residual_out", "quantized"))
    return Quantized(numbers, tuple(x.shape), x.dtype)
