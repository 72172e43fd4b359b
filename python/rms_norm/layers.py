"""RMSNorm as the package `kernels` of Hugging Face takes it: for classes that carry use_kernel_forward_from_hub().

    from kernels import Mode, kernelize, use_kernel_mapping
    from rms_norm import layers

    with use_kernel_mapping(layers.MAPPING):
        model = kernelize(model, mode=Mode.INFERENCE)

It takes the norms alone; rms_norm.torch.patch_transformers() fuses them with the additions before them, too.
"""

from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple, Type

import torch
from torch.compiler import is_dynamo_compiling

from . import BACKEND, _operators, _recognize
from ._options import Options, remembered

REFUSALS = BufferError, TypeError, ValueError  # of the kernels, for arguments that the module's own code may take
_known: Dict[type, Optional[_recognize.Norm]] = {}


@torch._dynamo.assume_constant_result
def _norm_of(kind: type, x_type: torch.dtype, weight_type: torch.dtype) -> Optional[Tuple[Any, ...]]:
    """What the modules of a class compute, if the kernels do: the name of the eps, or None and the eps, then options."""
    if kind not in _known:
        try:
            _known[kind] = _recognize.norm_of_class(kind)
        except _recognize.Unknown:
            _known[kind] = None
    known = _known[kind]
    if known is None or (x_type, weight_type) not in known.types:
        return None
    return known.eps, known.constant, known.options.get("weight_offset", 0.0), known.options.get("rounding", "gemma")


def _forward(module, x):
    """The norm of x as the module's class computes it, by the kernels where they do the same, else by its own code."""
    weight = module.weight
    known = _norm_of(type(module), x.dtype, weight.dtype)
    if known is None or is_dynamo_compiling() and (x.stride(-1) != 1 or weight.shape != x.shape[-1:]):
        return type(module).forward(module, x)
    name, eps, *options = known
    try:
        make = Options if is_dynamo_compiling() else remembered
        return _operators.norm(x, weight, make(eps if name is None else getattr(module, name), *options))
    except REFUSALS:
        return type(module).forward(module, x)


class RMSNorm(torch.nn.Module):
    """Its forward becomes that of the modules of other classes, which keep their weight and eps. What they compute is
    found by the formula of their class: that of Llama, Gemma, OLMo 2 or those like them; others keep their own code."""

    can_torch_compile = True
    has_backward = True

    def forward(self, hidden_states):
        return _forward(self, hidden_states)


@dataclass(frozen=True)
class Repository:
    """What stands in a mapping of `kernels` for a repository of the hub: it is this file."""

    layer_name: str = "RMSNorm"

    def load(self) -> Type[torch.nn.Module]:
        return RMSNorm


_NAMES = "RMSNorm", "RMSNormZeroCentered"  # of the layers, as transformers calls them
MAPPING = {name: {BACKEND: Repository()} for name in _NAMES}
