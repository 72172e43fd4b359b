"""The signatures of vllm._custom_ops, so that `from rms_norm import vllm as ops` takes its place for RMSNorm.

As there, the normalized value is rounded before the weight is multiplied, tensors that require grad are refused
unless gradients are off, as under torch.no_grad(), and torch.compile(fullgraph=True) sees operators. And as there, the
environment variable VLLM_BATCH_INVARIANT, which is read once, makes a row's bits independent of the rows beside it if it
is a whole number other than 0.
"""

import contextlib
import math
import os
from typing import Any, List, Optional, Tuple

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


def rms_norm_static_fp8_quant(result: Array, input: Array, weight: Array, scale: Array, epsilon: float) -> None:
    """result = the norm of input / scale, which is one number of float32. As torch.ops._C has it; result is contiguous,
    of torch.float8_e4m3fn."""
    _package._arrays.library_of(result, "result")
    _package.rms_norm_quantized(input, weight, epsilon, result.dtype, scale=scale, out=result, rounding="llama")


def fused_add_rms_norm_static_fp8_quant(
    result: Array, input: Array, residual: Array, weight: Array, scale: Array, epsilon: float
) -> None:
    """residual += input; result = the norm of residual / scale."""
    _package._arrays.library_of(result, "result")
    _package.rms_norm_quantized(
        input, weight, epsilon, result.dtype, residual=residual, scale=scale, out=result, rounding="llama"
    )


def rms_norm_dynamic_per_token_quant(
    input: Array,
    weight: Array,
    epsilon: float,
    quant_dtype: Any,
    scale_ub: Optional[Array] = None,
    residual: Optional[Array] = None,
) -> Tuple[Array, Array]:
    """The norm of input in quant_dtype, float8_e4m3fn or int8, and a scale of each row, of shape (rows, 1); with a residual,
    which is overwritten by the sum, the norm of that.

    The sum is normalized as it is rounded to the type of residual; vLLM normalizes it in float32, which may change the
    last bit of a result."""
    scales = _package._arrays.library_of(input, "input").scales(input, (_rows(input), 1))
    out, found, *_ = _package.rms_norm_quantized(
        input,
        weight,
        epsilon,
        quant_dtype,
        residual=residual,
        upper_bound=scale_ub,
        scales=scales,
        rounding="llama",
    )
    return out, found


def rms_norm_per_block_quant(
    input: Array,
    weight: Array,
    epsilon: float,
    quant_dtype: Any,
    group_size: List[int],
    scale_ub: Optional[Array] = None,
    residual: Optional[Array] = None,
    is_scale_transposed: bool = False,
    tma_alignment: int = 0,
) -> Tuple[Array, Array]:
    """As rms_norm_dynamic_per_token_quant(), with a scale of each group_size[1] columns, 64 or 128, of which the rows
    have a multiple. The scales have shape (rows, groups). is_scale_transposed puts those of a group side by side in
    memory, and tma_alignment pads these columns to a multiple of so many rows."""
    library = _package._arrays.library_of(input, "input")
    cols = input.shape[-1] if input.shape else 0
    if len(group_size) != 2 or group_size[1] not in (64, 128) or cols % group_size[1] != 0:
        raise ValueError(
            f"group_size is {group_size}; its second number must be 64 or 128, and divide the {cols} columns"
        )
    rows, groups = _rows(input), cols // group_size[1]
    if is_scale_transposed:
        padded = -(-rows // tma_alignment) * tma_alignment if tma_alignment else rows
        scales = library.scales(input, (groups, padded)).T[:rows]
    else:
        scales = library.scales(input, (rows, groups))
    out, found, *_ = _package.rms_norm_quantized(
        input,
        weight,
        epsilon,
        quant_dtype,
        residual=residual,
        block=group_size[1],
        upper_bound=scale_ub,
        scales=scales,
        rounding="llama",
    )
    return out, found


def _rows(x: Array) -> int:
    return math.prod(x.shape[:-1])


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
    _package._arrays.library_of(qkv, "qkv")
    heads = num_heads_q + num_heads_k + num_heads_v
    if not qkv.shape or qkv.shape[-1] != heads * head_dim:
        raise ValueError(f"qkv has the shape {tuple(qkv.shape)}; {heads} heads of {head_dim} are wanted in each row")
    counts = num_heads_q, num_heads_k, head_dim
    arrays = qkv, q_weight, k_weight, cos_sin_cache, position_ids
    _package.qk_norm_rope(*arrays, *counts, eps, neighbours=not is_neox, batch_invariant=_BATCH_INVARIANT)
