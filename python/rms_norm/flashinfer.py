"""The signatures of flashinfer.norm, so that `from rms_norm import flashinfer` takes its place for RMSNorm.

As there, everything is computed in float32 and rounded at the end, and dependent launches are used unless enable_pdl
is False; where the GPU has none, the launch is a plain one. The functions with an addition differ in one rounding:
FlashInfer normalizes the sum in float32, and these the sum as it is written to residual, which may change the last bit
of a result. Tensors that require grad, such as a torch.nn.Parameter, are refused unless gradients are off, and
torch.compile(fullgraph=True) sees operators.
"""

import contextlib
from typing import Optional

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
