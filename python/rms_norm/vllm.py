"""The signatures of vllm._custom_ops, so that `from rms_norm import vllm as ops` takes its place for RMSNorm.

As there, the normalized value is rounded before the weight is multiplied, and tensors that require grad are refused
unless gradients are off, as under torch.no_grad().
"""

import rms_norm as _package

from . import Array


def rms_norm(out: Array, input: Array, weight: Array, epsilon: float) -> None:
    """out = the norm of input, which has shape (..., hidden_size) as out has; weight has shape (hidden_size,)."""
    _package.rms_norm(input, weight, epsilon, out, rounding="llama")


def fused_add_rms_norm(input: Array, residual: Array, weight: Array, epsilon: float) -> None:
    """residual += input; input = the norm of residual. Both have shape (..., hidden_size), weight (hidden_size,)."""
    _package.fused_add_rms_norm(input, residual, weight, epsilon, rounding="llama")
