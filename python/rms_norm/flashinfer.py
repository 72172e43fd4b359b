"""The signatures of flashinfer.norm, so that `from rms_norm import flashinfer` takes its place for RMSNorm.

As there, everything is computed in float32 and rounded at the end, and dependent launches are used unless enable_pdl
is False; where the GPU has none, the launch is a plain one.
"""

from typing import Any, Optional

import rms_norm as _package


def rmsnorm(input, weight, eps: float = 1e-6, out: Optional[Any] = None, enable_pdl: Optional[bool] = None):
    """The norm of input, of shape (batch_size, hidden_size) or (batch_size, num_heads, hidden_size), in out."""
    return _package.rms_norm(input, weight, eps, out, dependent_launch=enable_pdl is not False)


def fused_add_rmsnorm(input, residual, weight, eps: float = 1e-6, enable_pdl: Optional[bool] = None) -> None:
    """residual += input; input = the norm of residual."""
    _package.fused_add_rms_norm(input, residual, weight, eps, dependent_launch=enable_pdl is not False)


def gemma_rmsnorm(input, weight, eps: float = 1e-6, out: Optional[Any] = None, enable_pdl: Optional[bool] = None):
    """As rmsnorm, with 1 + weight for weight."""
    return _package.rms_norm(input, weight, eps, out, weight_offset=1.0, dependent_launch=enable_pdl is not False)


def gemma_fused_add_rmsnorm(input, residual, weight, eps: float = 1e-6, enable_pdl: Optional[bool] = None) -> None:
    """As fused_add_rmsnorm, with 1 + weight for weight."""
    dependent_launch = enable_pdl is not False
    _package.fused_add_rms_norm(input, residual, weight, eps, weight_offset=1.0, dependent_launch=dependent_launch)
