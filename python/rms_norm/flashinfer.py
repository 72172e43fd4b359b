"""The signatures of flashinfer.norm, so that `from rms_norm import flashinfer` takes its place for RMSNorm.

As there, everything is computed in float32 and rounded at the end, and dependent launches are used unless enable_pdl
is False; where the GPU has none, the launch is a plain one. The functions with an addition differ in one rounding:
FlashInfer normalizes the sum in float32, and these the sum as it is written to residual, which may change the last bit
of a result. Tensors that require grad, such as a torch.nn.Parameter, are refused unless gradients are off, and
torch.compile(fullgraph=True) sees operators.
"""

import contextlib
from typing import Any, Optional, Union

import rms_norm as _package

from . import Array

with contextlib.suppress(ModuleNotFoundError):  # without PyTorch, for the arrays of other libraries
    from . import _operators  # noqa: F401


def rmsnorm(
    input: Array, weight: Array, eps: float = 1e-6, out: Optional[Array] = None, enable_pdl: Optional[bool] = None
) -> Array:
    """The norm of input, of shape (batch_size, hidden_size) or (batch_size, num_heads, hidden_size), in out."""
    return _package.rms_norm(input, weight, eps, out, dependent_launch=enable_pdl is not False)


def fused_add_rmsnorm(
    input: Array, residual: Array, weight: Array, eps: float = 1e-6, enable_pdl: Optional[bool] = None
) -> None:
    """residual += input; input = the norm of residual."""
    _package.fused_add_rms_norm(input, residual, weight, eps, dependent_launch=enable_pdl is not False)


def gemma_rmsnorm(
    input: Array, weight: Array, eps: float = 1e-6, out: Optional[Array] = None, enable_pdl: Optional[bool] = None
) -> Array:
    """As rmsnorm, with 1 + weight for weight."""
    return _package.rms_norm(input, weight, eps, out, weight_offset=1.0, dependent_launch=enable_pdl is not False)


def gemma_fused_add_rmsnorm(
    input: Array, residual: Array, weight: Array, eps: float = 1e-6, enable_pdl: Optional[bool] = None
) -> None:
    """As fused_add_rmsnorm, with 1 + weight for weight."""
    dependent_launch = enable_pdl is not False
    _package.fused_add_rms_norm(input, residual, weight, eps, weight_offset=1.0, dependent_launch=dependent_launch)


def rmsnorm_quant(
    out: Array,
    input: Array,
    weight: Array,
    scale: Union[float, Array],
    eps: float = 1e-6,
    enable_pdl: Optional[bool] = None,
) -> None:
    """out = the norm of input / scale, of float8_e4m3fn or float8_e5m2; input has shape (batch_size, hidden_size), as out
    has, and weight (hidden_size,). scale is a number or an array of one, of any type and on any device; but only one of
    float32 beside input costs no copy. FlashInfer multiplies in another order, which may change the last bit of a result.
    """
    _quantized(out, input, None, weight, scale, eps, enable_pdl)


def fused_add_rmsnorm_quant(
    out: Array,
    input: Array,
    residual: Array,
    weight: Array,
    scale: Union[float, Array],
    eps: float = 1e-6,
    enable_pdl: Optional[bool] = None,
) -> None:
    """residual += input; out = the norm of residual / scale, as in rmsnorm_quant()."""
    _quantized(out, input, residual, weight, scale, eps, enable_pdl)


def fused_add_rmsnorm_fp8_block_quant(
    out: Array,
    block_scale: Array,
    normed_out: Array,
    input: Array,
    residual: Array,
    weight: Array,
    eps: float = 1e-6,
    enable_pdl: Optional[bool] = None,
) -> None:
    """residual += input; normed_out = the norm of residual; out = normed_out in float8_e4m3fn, with a scale of each 128
    columns. All but block_scale have two dimensions; block_scale has shape (columns / 128, rows rounded up to a multiple
    of 4) and float32, as block-scaled products read it.

    As there, what is quantized is the norm as it is rounded to the type of normed_out. Here, it is rounded before the
    weight is multiplied, too."""
    names = "input", "block_scale", "out"
    _package._arrays.check_arrays((input, block_scale, out), names, names)
    if len(input.shape) != 2:
        raise ValueError(f"input has the shape {tuple(input.shape)}; two dimensions are wanted")
    rows, cols = input.shape
    wanted = (cols // 128, -(-rows // 4) * 4)
    if cols % 128 != 0 or tuple(block_scale.shape) != wanted:
        raise ValueError(f"block_scale has the shape {tuple(block_scale.shape)}; {wanted} is wanted")
    _package.rms_norm_quantized(
        input,
        weight,
        eps,
        out.dtype,
        residual=residual,
        block=128,
        out=out,
        y=normed_out,
        scales=block_scale.T[:rows],
        rounding="llama",
        dependent_launch=enable_pdl is not False,
    )


def _quantized(
    out: Array,
    input: Array,
    residual: Optional[Array],
    weight: Array,
    scale: Any,
    eps: float,
    enable_pdl: Optional[bool],
) -> None:
    library = _package._arrays.library_of(input, "input")
    _package._arrays.library_of(out, "out")
    if hasattr(scale, "__dlpack__"):
        scale = library.float32_beside(input, scale)
    elif hasattr(scale, "__float__"):
        number = library.scales(input, (1,))
        number[...] = float(scale)
        scale = number
    else:
        raise TypeError(f"scale is {scale!r}; give a number, or an array of one number")
    _package.rms_norm_quantized(
        input,
        weight,
        eps,
        out.dtype,
        residual=residual,
        scale=scale,
        out=out,
        dependent_launch=enable_pdl is not False,
    )
