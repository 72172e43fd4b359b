"""The operators on PyTorch's DTensor, whose parts lie on several devices: each device has whole rows of its own.

A row whose elements lie on several devices is first brought together, which DTensor does by itself.
"""

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding

WHOLE, SUMMED = Replicate(), Partial()


def _shardings(x, results, given):
    """For each way to distribute x: the placements of results and of what is given, which are functions of x's."""
    for placement in (WHOLE, *(Shard(dimension) for dimension in range(x.ndim - 1))):
        yield [result(placement) for result in results], [tensor and tensor(placement) for tensor in given]


def _as_x(placement):
    return placement


def _whole(placement):
    return WHOLE


def _summed(placement):
    return WHOLE if placement == WHOLE else SUMMED


def _norm(x, weight, *numbers, **options):
    return list(_shardings(x, [_as_x], [_as_x, weight and _whole]))


def _fused_add(x, residual, weight, *numbers, **options):
    return list(_shardings(x, [_as_x, _as_x], [_as_x, _as_x, weight and _whole]))


def _norm_with_rstd(x, residual, weight, *numbers, **options):
    results = [_as_x, _as_x if residual else _whole, _as_x]
    return list(_shardings(x, results, [_as_x, residual and _as_x, weight and _whole]))


def _backward(dy, dsum, x, weight, eps, weight_offset, wants_dweight, rstd=None):
    of_weight = _summed if wants_dweight else _whole
    given = [_as_x, dsum and _as_x, _as_x, weight and _whole, None, None, None, rstd and _as_x]  # None is a number's
    return list(_shardings(x, [_as_x, of_weight], given))


def register():
    operators = torch.ops.rms_norm
    register_sharding([operators.rms_norm.default, operators._rms_norm.default])(_norm)
    register_sharding([operators.fused_add_rms_norm.default, operators._fused_add_rms_norm.default])(_fused_add)
    register_sharding(operators._norm_with_rstd.default)(_norm_with_rstd)
    register_sharding(operators.backward.default)(_backward)
