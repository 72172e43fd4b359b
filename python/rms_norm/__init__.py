"""RMSNorm for arrays of PyTorch, CuPy, JAX and NumPy, by the kernels of the repository's include/rms_norm.

    y = x / sqrt(mean(x²) + eps) · (weight_offset + weight)      over the last dimension of x

The formula is that of Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019. An array is anything that
DLPack can hand over: it is neither copied nor converted, and a call that would need that raises ValueError or TypeError.
BACKEND says where the arrays must lie: "cuda" means on an NVIDIA GPU, "cpu" in host memory, where the CPU device runs
the same kernels, slowly. Kernels are launched on the caller's current stream, and nothing is waited for.

rms_norm.torch has PyTorch operators with a backward, rms_norm.vllm and rms_norm.flashinfer have the signatures of these
libraries.
"""

from __future__ import annotations

import operator
from typing import Any, Optional, Tuple

from . import _arrays
from ._build import BACKEND, VERSION
from ._options import Cache, Rounding, options_of

__all__ = ["BACKEND", "__version__", "fused_add_rms_norm", "qk_norm", "qk_norm_rope", "rms_norm", "rms_norm_quantized"]
__version__ = VERSION

Array = Any  # a torch.Tensor, cupy.ndarray, jax.Array or numpy.ndarray

_NAMES_OF_HEADS = {name: ("qkv", "", "", name, "qkv") for name in ("q_weight", "k_weight")}


def rms_norm(
    x: Array,
    weight: Optional[Array] = None,
    eps: float = 1e-6,
    out: Optional[Array] = None,
    *,
    weight_offset: float = 0.0,
    rounding: Rounding = "gemma",
    dependent_launch: bool = False,
    cache: Cache = "tuned",
    batch_invariant: bool = False,
) -> Array:
    """The norm of each row of x, where a row is a piece along the last dimension.

    Args:
        x: shape (..., cols), of float32, float16 or bfloat16. The last dimension must be contiguous. The leading ones
            may be strided as far as two strides reach, as in a slice of wider rows or in the heads within packed rows.
        weight: shape (cols,), contiguous; None for ones. Its type may differ from that of x.
        eps: added to the mean of squares, under the root; finite and not negative. With 0, a row of zeros becomes NaN,
            and a row of magnitudes below 2.6e-23, whose squares are 0 in float32, infinite.
        out: where the result goes: the shape of x, with strides of its own; x itself to work in place. Its type may
            differ from that of x. None for a new array of x's type.
        weight_offset: added to the weight in float32: 1 for Gemma's 1 + weight. It has no effect without a weight.
        rounding: "gemma" rounds once, at the end; "llama" rounds the normalized value to the type of out, multiplies by
            the weight, and rounds again.
        dependent_launch: programmatic dependent launch. The kernel may start while the one before it on the stream
            still runs, and reads the weight at once, so that kernel must not write the weight.
        cache: what the L2 cache is asked to do with x and out: "tuned" (what was measured as fastest), "normal"
            (nothing) or "evict_first" (to displace little of what others keep there). Results do not depend on it.
        batch_invariant: a row's bits depend on its numbers, their types and the options before `dependent_launch`
            alone, and not on how many rows there are, or where the arrays lie. README.md says what it costs.

    Returns:
        out, or the new array.

    Raises:
        TypeError: an argument is no array, or its type is not compiled; README.md says which mixtures are.
        ValueError: shapes, strides, devices or options that do not fit, or arrays that overlap and are not the same
            one; the message says which. In PyTorch, also a tensor that requires grad, and a call that torch.func
            transforms: rms_norm.torch has functions for these.
        RuntimeError: CUDA refused the launch.
    """
    options = options_of(eps, weight_offset, rounding, dependent_launch, cache, batch_invariant)
    library = _arrays.library_of(x)
    if out is None:
        out = library.empty_like(x)
    elif library.immutable:
        raise TypeError(f"{library.name}'s arrays cannot be written: leave out= away and take the result")
    library.norm(x, None, None, weight, out, options)
    return out


def fused_add_rms_norm(
    x: Array,
    residual: Array,
    weight: Optional[Array] = None,
    eps: float = 1e-6,
    *,
    out: Optional[Array] = None,
    residual_out: Optional[Array] = None,
    weight_offset: float = 0.0,
    rounding: Rounding = "gemma",
    dependent_launch: bool = False,
    cache: Cache = "tuned",
    batch_invariant: bool = False,
) -> Tuple[Array, Array]:
    """Adds x to the residual, and then normalizes the sum. By default in place, as serving engines do.

        residual = x + residual        rounded to the type of residual
        x = the norm of residual

    Args:
        x: shape (..., cols). It is overwritten by the norm, unless out is given.
        residual: the shape of x; its type may differ. It is overwritten by the sum, unless residual_out is given.
        weight, eps, weight_offset, rounding, dependent_launch, cache, batch_invariant: as in rms_norm().
        out: where the norm goes, instead of x.
        residual_out: where the sum goes, instead of residual; of the type of residual.

    Returns:
        The norm and the sum: (x, residual), or what was given instead. JAX's arrays cannot be written: there, both are
        new arrays.

    Raises:
        As rms_norm().
    """
    options = options_of(eps, weight_offset, rounding, dependent_launch, cache, batch_invariant)
    library = _arrays.library_of(x)
    if residual is None:
        raise TypeError("residual is None; rms_norm() is the norm without one")
    if library.immutable:
        if out is not None or residual_out is not None:
            raise TypeError(f"{library.name}'s arrays cannot be written: take the results")
        out, residual_out = library.empty_like(x), library.empty_like(residual)
    out = x if out is None else out
    residual_out = residual if residual_out is None else residual_out
    library.norm(x, residual, residual_out, weight, out, options)
    return out, residual_out


def rms_norm_quantized(
    x: Array,
    weight: Optional[Array] = None,
    eps: float = 1e-6,
    dtype: Any = "float8_e4m3fn",
    *,
    residual: Optional[Array] = None,
    scale: Optional[Array] = None,
    block: int = 0,
    column_major: bool = False,
    upper_bound: Optional[Array] = None,
    out: Optional[Array] = None,
    y: Optional[Array] = None,
    scales: Optional[Array] = None,
    weight_offset: float = 0.0,
    rounding: Rounding = "gemma",
    dependent_launch: bool = False,
    cache: Cache = "tuned",
) -> Tuple[Array, ...]:
    """The norm of x, or of x + residual, in numbers of 8 bits.

        out = the norm / scale                                rounded to nearest even, at most the largest of its sign
        scale = max(min(largest |norm|, upper_bound) / the largest number of dtype, a least one)      if it is not given

    Args:
        x: shape (..., cols), of float32, float16 or bfloat16.
        weight: shape (cols,), of the type of x; None for ones.
        dtype: "float8_e4m3fn", "float8_e5m2" or "int8", or a library's type of this name. CuPy has no float8: there,
            out has uint8, the bytes of the numbers.
        residual: the shape and type of x, or None. It is overwritten by the sum, which is what is normalized.
        scale: one number of float32 for all, where x lies. None has the kernel find scales.
        block: 0 for a scale of each row; 64 or 128 for one of as many columns, of which the last block may have fewer.
        column_major: with a block, whether new scales have strides 1 and the rows, rounded up to a multiple of 4.
        upper_bound: one number of float32, where x lies: what is larger does not count as the largest |norm|.
        out, scales: where the results go, if not to new arrays: the shape of x; and shape (..., blocks), or
            (rows, blocks), of float32, whose order in memory may be by rows or by columns.
        y: where the norm itself goes, too: of the shape and type of x.
        eps, weight_offset, rounding, dependent_launch, cache: as in rms_norm(). "llama" quantizes the norm as it is
            rounded to the type of x, as vLLM does, and "gemma" in float32.

    Returns:
        out and the scales, or the scale that was given; with a residual, the sum as a third one. A row's numbers do not
        depend on other rows. include/rms_norm/quantize.cuh says what becomes of NaN, infinite numbers and zeros.

    Raises:
        As rms_norm().
    """
    options = options_of(eps, weight_offset, rounding, dependent_launch, cache, False)
    library, code = _arrays.library_of(x), _arrays.name_of_code(dtype)
    if library.immutable and not (out is None and scales is None and y is None):
        raise TypeError(f"{library.name}'s arrays cannot be written: take the results")
    total = library.empty_like(residual) if library.immutable and residual is not None else residual
    if not x.shape:
        raise ValueError("x has no dimension; the last one is normalized")
    out = library.codes(x, code) if out is None else out
    if scale is None and scales is None:
        leading = tuple(x.shape[:-1])
        if block not in (0, 64, 128):
            raise ValueError(f"block is {block!r}; 0, 64 and 128 are known")
        blocks = -(-x.shape[-1] // block) if block else 1
        if block and column_major:
            if len(leading) != 1:
                raise ValueError(f"x has the shape {tuple(x.shape)}; scales by columns want two dimensions")
            if library.immutable:
                raise TypeError(f"{library.name}'s arrays have one order in memory: transpose the scales")
            scales = library.scales(x, (blocks, -(-leading[0] // 4) * 4)).T[: leading[0]]
        else:
            scales = library.scales(x, (*leading, blocks))
    arrays = x, residual, total, weight, out, y, scale, scales, upper_bound
    _arrays.check_quantized(arrays, block)
    out = library.quantized(arrays, code, block, options)
    found = scale if scales is None else scales
    return (out, found) if residual is None else (out, found, total)


def qk_norm(
    qkv: Array,
    q_weight: Optional[Array],
    k_weight: Optional[Array],
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    eps: float = 1e-6,
    *,
    weight_offset: float = 0.0,
    rounding: Rounding = "gemma",
    dependent_launch: bool = False,
    cache: Cache = "tuned",
    batch_invariant: bool = False,
) -> Array:
    """Normalizes each query head and each key head within packed rows, in place.

    Args:
        qkv: shape (..., n) with n >= (q_heads + kv_heads) · head_dim. A row holds the query heads, then the key heads;
            what follows, like the value heads, is not touched.
        q_weight, k_weight: shape (head_dim,), for the query heads and for the key heads; None for ones.
        q_heads, kv_heads, head_dim: how many heads there are of each kind, and how many elements in a head.
        eps, weight_offset, rounding, dependent_launch, cache, batch_invariant: as in rms_norm().

    Returns:
        qkv.

    Raises:
        As rms_norm(). Where k_weight has a type or strides that are refused, and q_weight has not, the query heads are
        normalized by then.
    """
    options = options_of(eps, weight_offset, rounding, dependent_launch, cache, batch_invariant)
    library = _arrays.library_of(qkv, "qkv")
    if library.immutable:
        raise TypeError(f"{library.name}'s arrays cannot be written, and qk_norm works in place")
    q_heads, kv_heads, head_dim = _counts(q_heads, kv_heads, head_dim)
    shape = tuple(qkv.shape)
    if not shape or shape[-1] < (q_heads + kv_heads) * head_dim:
        heads = f"{q_heads} query and {kv_heads} key heads of {head_dim}"
        raise ValueError(f"qkv has the shape {shape}; its last dimension is too short for {heads}")
    strides = qkv.stride() if hasattr(qkv, "stride") else getattr(qkv, "strides", None)
    if strides is not None and strides[-1] == 0 and shape[-1] > 1:
        raise ValueError("the last dimension of qkv is expanded: its elements are one; make a contiguous copy first")
    parts = ("q_weight", q_weight, 0, q_heads), ("k_weight", k_weight, q_heads, kv_heads)
    for name, weight, _, _ in parts:  # both, before anything is written
        if weight is not None and tuple(getattr(weight, "shape", (head_dim,))) != (head_dim,):
            raise ValueError(f"{name} has the shape {tuple(weight.shape)}; ({head_dim},) is wanted")
    for name, weight, first, count in parts:
        heads = library.heads(qkv, first * head_dim, (first + count) * head_dim, head_dim)
        library.norm(heads, None, None, weight, heads, options, _NAMES_OF_HEADS[name])
    return qkv


def _counts(q_heads, kv_heads, head_dim):
    try:
        counts = [operator.index(count) for count in (q_heads, kv_heads, head_dim) if not isinstance(count, bool)]
    except TypeError:
        counts = []
    if len(counts) < 3 or min(counts) < 1:
        given = f"{q_heads!r}, {kv_heads!r} and {head_dim!r}"
        raise ValueError(f"q_heads, kv_heads and head_dim are {given}; they must be whole numbers above 0")
    return counts


def qk_norm_rope(
    qkv: Array,
    q_weight: Optional[Array],
    k_weight: Optional[Array],
    cos_sin: Array,
    positions: Array,
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    eps: float = 1e-6,
    *,
    neighbours: bool = False,
    weight_offset: float = 0.0,
    rounding: Rounding = "gemma",
    dependent_launch: bool = False,
    batch_invariant: bool = False,
) -> Array:
    """qk_norm(), and then the rotary position embedding of each of these heads, in one pass and in place.

        a, b = a · cos - b · sin, b · cos + a · sin         for each pair (a, b) of the elements that are rotated

    Args:
        qkv: shape (..., n) with n >= (q_heads + kv_heads) · head_dim, of float32, float16 or bfloat16. One stride must
            reach all rows, in the order of the leading dimensions.
        q_weight, k_weight: shape (head_dim,), of the type of qkv or of float32; None for ones.
        cos_sin: shape (max_positions, rotary_dim), of the type of qkv or of float32: for each position rotary_dim / 2
            cosines, then as many sines. The first rotary_dim elements of a head are rotated; that is an even number, as
            head_dim is.
        positions: shape (...), of int64: the position of each row of qkv. Heads whose position is not one of cos_sin
            become NaN.
        q_heads, kv_heads, head_dim, eps, weight_offset, dependent_launch, batch_invariant: as in qk_norm().
        neighbours: whether elements 2i and 2i + 1 of a head are a pair, as in GPT-J, and not elements i and
            rotary_dim / 2 + i, as in GPT-NeoX and Llama.
        rounding: "gemma" computes all in float32 and rounds at the end; "llama" rounds the normalized value and its
            product with the weight, too.

    Returns:
        qkv.

    Raises:
        As rms_norm(). The formula is that of Su and others, "RoFormer", 2021.
    """
    options = options_of(eps, weight_offset, rounding, dependent_launch, "tuned", batch_invariant)
    library = _arrays.library_of(qkv, "qkv")
    if library.immutable:
        raise TypeError(f"{library.name}'s arrays cannot be written, and qk_norm_rope works in place")
    counts = _counts(q_heads, kv_heads, head_dim)
    arrays = qkv, q_weight, k_weight, cos_sin, positions
    _arrays.check_rope(arrays, *counts)
    library.rope(arrays, (*counts, bool(neighbours)), options)
    return qkv
