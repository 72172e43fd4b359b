"""rms_norm.q4 as operators of PyTorch, which torch.compile and torch.export see; without gradients.

    y = torch.ops.rms_norm.q4_multiply(weights.packed, weights.m, weights.k, x, bias)
    numbers = torch.ops.rms_norm.q4_rms_norm_quantize(x, weight, eps)
    y = torch.ops.rms_norm.q4_multiply_quantized(weights.packed, weights.m, weights.k, numbers, x.shape, x.dtype, bias)

weights are what q4.repack() returned; there may be no bias, and a weight may be None. Shapes, types and errors are those of rms_norm.q4.
"""

from __future__ import annotations

from typing import Any, Dict

import torch

from . import q4

_library = torch.library.Library("rms_norm", "FRAGMENT")
_OF_PRODUCTS = "bool dependent_launch=False, bool batch_invariant=False"
_OPTIONS = "float eps=1e-06, *, float weight_offset=0.0, bool dependent_launch=False"
for _schema in (
    f"q4_multiply(Tensor packed, SymInt m, SymInt k, Tensor x, Tensor? bias=None, *, {_OF_PRODUCTS}) -> Tensor",
    "q4_multiply_quantized(Tensor packed, SymInt m, SymInt k, Tensor numbers, SymInt[] shape, ScalarType dtype,"
    f" Tensor? bias=None, *, {_OF_PRODUCTS}) -> Tensor",
    f"q4_rms_norm_quantize(Tensor x, Tensor? weight, {_OPTIONS}) -> Tensor",
    f"q4_add_rms_norm_quantize(Tensor x, Tensor residual, Tensor? weight, {_OPTIONS}) -> (Tensor, Tensor)",
):
    _library.define(_schema)


def _multiply(packed, m, k, x, bias=None, **options):
    return q4.multiply(q4.Weights(packed, m, k), x, bias, **options)


def _multiply_quantized(packed, m, k, numbers, shape, dtype, bias=None, **options):
    return q4.multiply(q4.Weights(packed, m, k), q4.Quantized(numbers, tuple(shape), dtype), bias, **options)


def _rms_norm_quantize(*arguments, **options):
    return q4.rms_norm_quantize(*arguments, **options).numbers


def _add_rms_norm_quantize(x, residual, *arguments, **options):
    total = torch.empty_like(residual)
    numbers, _ = q4.add_rms_norm_quantize(x, residual, *arguments, residual_out=total, **options)
    return numbers.numbers, total


def _numbers_like(x):
    return x.new_empty(q4.quantized_bytes(x.shape), dtype=torch.uint8)


_FAKES: Dict[Any, Any] = {
    _multiply: lambda packed, m, k, x, *_, **__: x.new_empty((*x.shape[:-1], m)),
    _multiply_quantized: lambda packed, m, k, numbers, shape, dtype, *_, **__: numbers.new_empty(
        (*shape[:-1], m), dtype=dtype
    ),
    _rms_norm_quantize: lambda x, *_, **__: _numbers_like(x),
    _add_rms_norm_quantize: lambda x, residual, *_, **__: (_numbers_like(x), torch.empty_like(residual)),
}
for _function, _fake in _FAKES.items():
    for _key in ("CPU", "CUDA"):
        _library.impl(f"q4{_function.__name__}", _function, _key)
    torch.library.register_fake(f"rms_norm::q4{_function.__name__}", _fake, lib=_library)
