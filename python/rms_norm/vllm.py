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


def fused_qk_norm_rope(
    qkv: Array,
    num_heads_q: int,
    num_heads_k: int,
    num_heads_v: int,
    head_dim: int,
    eps: float,
    q_weight: Array,
    k_weight: Array,
    cos_sin_cache: Array,
    is_neox: bool,
    position_ids: Array,
) -> None:
    """The norm of each query and key head in qkv, of shape (num_tokens, all heads · head_dim), and its rotation, in place.

    cos_sin_cache has shape (max_position, rotary_dim), and position_ids (num_tokens,). As there, everything is computed in
    float32 and rounded at the end."""
    heads = num_heads_q + num_heads_k + num_heads_v
    if qkv.shape[-1] != heads * head_dim:
        raise ValueError(f"qkv has the shape {tuple(qkv.shape)}; {heads} heads of {head_dim} are wanted in each row")
    counts = num_heads_q, num_heads_k, head_dim
    arrays = qkv, q_weight, k_weight, cos_sin_cache, position_ids
    _package.qk_norm_rope(*arrays, *counts, eps, neighbours=not is_neox, batch_invariant=_BATCH_INVARIANT)
