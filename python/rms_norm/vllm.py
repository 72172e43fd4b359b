"""The signatures of vllm._custom_ops, so that `from rms_norm import vllm as ops` takes its place for RMSNorm.

As there, the normalized value is rounded before the weight is multiplied, tensors that require grad are refused
unless gradients are off, as under torch.no_grad(), and torch.compile(fullgraph=True) sees operators. And as there, the
environment variable VLLM_BATCH_INVARIANT, which is read once, makes a row's bits independent of the rows beside it if it
is a whole number other than 0.
"""

import contextlib
import os

import rms_norm as _package

from . import Array

with contextlib.suppress(ModuleNotFoundError):  # without PyTorch, for the arrays of other libraries
    from . import _operators  # noqa: F401


def _is_on(value: str) -> bool:
    try:
        return int(value) != 0
    except ValueError:
        return False


_BATCH_INVARIANT = _is_on(os.environ.get("VLLM_BATCH_INVARIANT", "0"))


def rms_norm(out: Array, input: Array, weight: Array, epsilon: float) -> None:
    """out = the norm of input, which has shape (..., hidden_size) as out has; weight has shape (hidden_size,)."""
    _package.rms_norm(input, weight, epsilon, out, rounding="llama", batch_invariant=_BATCH_INVARIANT)


def fused_add_rms_norm(input: Array, residual: Array, weight: Array, epsilon: float) -> None:
    """residual += input; input = the norm of residual. Both have shape (..., hidden_size), weight (hidden_size,)."""
    _package.fused_add_rms_norm(input, residual, weight, epsilon, rounding="llama", batch_invariant=_BATCH_INVARIANT)
