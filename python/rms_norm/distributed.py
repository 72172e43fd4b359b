"""The norm behind an all-reduce, for models whose matrices are split over GPUs.

    from rms_norm import distributed

    y, total = distributed.all_reduce_fused_add_rms_norm(x, residual, weight, eps)

x is this rank's part of a sum over the ranks of a group of torch.distributed. On GPUs of one host, one kernel adds up the
parts, adds the residual and computes the norm (include/rms_norm/all_reduce.cuh), in memory that PyTorch's symmetric memory
shares among the ranks. On tensors in host memory, a collective of the group, such as gloo's, gathers the parts. Both add in
float32, in the order of the ranks, the residual last, and round once: every rank gets the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import _resolve_process_group

from . import _arrays, _operators
from ._options import remembered
from ._transformers import Report

MESSAGE_BYTES = 32 << 20


@dataclass
class _Region:
    rank: int
    addresses: List[int]
    bytes: int
    groups: int
    memory: Any  # that PyTorch frees when nothing refers to it
    handle: Any


_regions: Dict[Tuple[str, torch.device], _Region] = {}


def _name_of(group: Optional[dist.ProcessGroup]) -> Any:  # a type of its own in newer versions of PyTorch
    group = dist.group.WORLD if group is None else group
    if group is None:
        raise RuntimeError("torch.distributed has no process group; call torch.distributed.init_process_group() first")
    return group.group_name


def prepare(
    group: Optional[dist.ProcessGroup] = None,
    message_bytes: int = MESSAGE_BYTES,
    device: Optional[torch.device] = None,
    groups: int = 1,
) -> None:
    """Allocates what a group's ranks share on a GPU, by default the current one. All ranks of the group call it, outside of
    a graph's capture; the first call of all_reduce_fused_add_rms_norm does it, if nobody has. A call with more than
    message_bytes of x is several launches. `groups` is how many groups may run such calls on a GPU at the same time.
    """
    if not _arrays.of_gpus:
        raise RuntimeError("this build of rms_norm is for the CPU device; build it for GPUs to use tensors on GPUs")
    if device is None or device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    from torch.distributed import _symmetric_memory

    name = _name_of(group)
    ranks = _resolve_process_group(name).size()
    if ranks > 8:
        raise ValueError(f"the group has {ranks} ranks; up to 8 ranks of one host are known")
    size = _arrays.of_gpus["all_reduce_region_bytes"](ranks, message_bytes)
    memory = _symmetric_memory.empty(size, dtype=torch.uint8, device=device)
    handle = _symmetric_memory.rendezvous(memory, name)
    head = _arrays.of_gpus["all_reduce_region_head"]()
    memory[:head].zero_()
    memory[head:].fill_(0xFF)
    torch.cuda.synchronize(device)
    dist.barrier(_resolve_process_group(name))
    torch.cuda.synchronize(device)
    _regions[name, device] = _Region(handle.rank, list(handle.buffer_ptrs), size, groups, memory, handle)


def _by_kernel(x, residual, weight, options, group_name):
    region = _regions.get((group_name, x.device))
    if region is None:
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("call rms_norm.distributed.prepare() before a graph is captured")
        prepare(_resolve_process_group(group_name), device=x.device)
        region = _regions[group_name, x.device]
    y, total = torch.empty_like(x), torch.empty_like(residual)
    llama = options.rounding == "llama"
    numbers = options.eps, options.weight_offset, llama, options.dependent_launch
    place = region.rank, region.addresses, region.bytes, region.groups
    try:
        _arrays.of_gpus["all_reduce"](x, residual, total, weight, y, *place, *numbers)
    except _arrays.REFUSALS as refused:
        raise _arrays.explained(refused, (x, residual, total, weight, y)) from None
    return y, total


def _by_collective(x, residual, weight, options, group_name):
    group = _resolve_process_group(group_name)
    parts = [torch.empty_like(x) for _ in range(group.size())]
    dist.all_gather(parts, x, group=group)
    total = parts[0].float()
    for part in parts[1:]:
        total += part
    total = total.add_(residual).to(residual.dtype)
    return _operators.norm(total, weight, options), total


_SCHEMA = (
    "(Tensor x, Tensor residual, Tensor? weight, float eps, str group_name, float weight_offset, str rounding,"
    " bool dependent_launch) -> (Tensor, Tensor)"
)
_namespace = vars(torch.ops.rms_norm)
if "_distributed" in _namespace:  # this module is loaded again
    _namespace["_distributed"]._destroy()
_library = _namespace["_distributed"] = torch.library.Library("rms_norm", "FRAGMENT")
_library.define(f"all_reduce_fused_add_rms_norm{_SCHEMA}")


def _with_options(function):
    def call(x, residual, weight, eps, group_name, weight_offset, rounding, dependent_launch):
        options = remembered(eps, weight_offset, rounding, dependent_launch)
        return function(x.contiguous(), residual.contiguous(), weight, options, group_name)

    return call


_library.impl("all_reduce_fused_add_rms_norm", _with_options(_by_kernel), "CUDA")
_library.impl("all_reduce_fused_add_rms_norm", _with_options(_by_collective), "CPU")


@torch.library.register_fake("rms_norm::all_reduce_fused_add_rms_norm", lib=_library)
def _(x, residual, weight, *numbers):
    _check(x, residual, weight)
    return torch.empty_like(x, memory_format=torch.contiguous_format), torch.empty_like(
        residual, memory_format=torch.contiguous_format
    )


def _check(x, residual, weight):
    _operators._check(x, weight, residual=residual)
    if residual.dtype != x.dtype:
        raise TypeError(f"residual is {residual.dtype} and x is {x.dtype}; they must have the same type")


def all_reduce_fused_add_rms_norm(
    x: Tensor,
    residual: Tensor,
    weight: Optional[Tensor],
    eps: float = 1e-6,
    *,
    group: Optional[dist.ProcessGroup] = None,
    weight_offset: float = 0.0,
    rounding: str = "gemma",
    dependent_launch: bool = False,
) -> Tuple[Tensor, Tensor]:
    """The norm of the sum of x over the ranks of a group and the residual, and that sum, as new tensors.

    x and residual have the shape (..., hidden_size) and one type, float32, float16 or bfloat16; weight has the shape
    (hidden_size,), and that type or float32, or is None. All ranks of the group, by default of all processes, call it with
    tensors of one shape, in the same order. It has no gradients. torch.compile sees one operator, and a CUDA graph may
    capture it after prepare(). ValueError and TypeError say what is refused; the other options are those of
    rms_norm.rms_norm.
    """
    _check(x, residual, weight)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, residual, weight)):
        raise ValueError(
            "a tensor requires grad, and all_reduce_fused_add_rms_norm has no backward: call it under torch.no_grad()"
        )
    return torch.ops.rms_norm.all_reduce_fused_add_rms_norm(
        x, residual, weight, eps, _name_of(group), weight_offset, rounding, dependent_launch
    )


def patch_transformers(model: torch.nn.Module, *, dependent_launch: bool = False) -> Report:
    """Has the sums over the ranks of a tensor-parallel Hugging Face model computed together with the norms, in place.

    The model is one that transformers has split over the ranks (`tp_plan="auto"`). It is patched as by
    rms_norm.torch.patch_transformers(); in addition, in each decoder layer that is known, the all-reduce behind the attention's
    last product, the addition of the residual and the layer's second norm are one call of all_reduce_fused_add_rms_norm(), and so
    are the all-reduce behind the MLP's last product, the addition, and the next layer's first norm or the model's last. All
    ranks must patch, and must register the same hooks. The sum is rounded once, to the same bits on every rank; transformers
    rounds it twice. rms_norm.torch.unpatch() undoes it.

    A layer is known if rms_norm.torch.patch_transformers() knows it, and its attention and its MLP end with a product by a
    matrix of torch.nn.Linear without a bias that is split `rowwise`, as those of Llama, Mistral and Qwen3. A patched layer has
    no gradients: it raises ValueError where they are recorded, and TypeError for a DTensor.

    Args:
        model: the model, or a part of it.
        dependent_launch: as in rms_norm.torch.patch_transformers().

    Returns:
        A Report; layers whose sums are left to transformers, and why, are in its `left`.

    Raises:
        ValueError: there is no such layer; the message says why, and the model is as it was.
    """
    from . import _tensor_parallel

    return _tensor_parallel.patch(model, dependent_launch)
