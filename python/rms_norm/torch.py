"""RMSNorm as PyTorch operators: torch.ops.rms_norm.*, with gradients, for eager mode, torch.compile and CUDA graphs.

    rms_norm(x, weight, eps)                          y
    fused_add_rms_norm(x, residual, weight, eps)      y and the sum, as new tensors, with gradients
    fused_add_rms_norm_(x, residual, weight, eps)     in place, without gradients
    RMSNorm                                           the module; it loads the state of torch.nn.RMSNorm
    patch_transformers(model), unpatch(model)         the norms of a Hugging Face model

The arguments mean what those of the package's functions do. Under autocast, tensors keep the types that they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Optional, Tuple, Union, overload

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from . import _operators
from ._options import Cache, Options, Rounding, options_of
from ._transformers import patch_transformers, unpatch

__all__ = ["RMSNorm", "fused_add_rms_norm", "fused_add_rms_norm_", "patch_transformers", "rms_norm", "unpatch"]

_EPS = torch.finfo(torch.float32).eps

# torch.compile sees through Options(), but not through what finds those that were made before.


def rms_norm(
    x: Tensor,
    weight: Optional[Tensor] = None,
    eps: float = 1e-6,
    *,
    weight_offset: float = 0.0,
    rounding: Rounding = "gemma",
    dependent_launch: bool = False,
    cache: Cache = "tuned",
) -> Tensor:
    """The norm of each row of x, a new tensor, with gradients. Arguments and errors are those of the package's
    rms_norm(), but there is no out, and what PyTorch's dispatcher refuses by its type raises RuntimeError.

    There is no second derivative, and no rule for forward differentiation and torch.func: these raise an error.
    Without gradients in eager mode it calls the kernel directly, which takes the host less time than an operator."""
    options = (Options if is_dynamo_compiling() else options_of)(eps, weight_offset, rounding, dependent_launch, cache)
    return _operators.norm(x, weight, options)


def fused_add_rms_norm(
    x: Tensor,
    residual: Tensor,
    weight: Optional[Tensor] = None,
    eps: float = 1e-6,
    *,
    weight_offset: float = 0.0,
    rounding: Rounding = "gemma",
    dependent_launch: bool = False,
    cache: Cache = "tuned",
) -> Tuple[Tensor, Tensor]:
    """The norm of x + residual and the sum, as new tensors, with gradients. Otherwise as rms_norm()."""
    options = (Options if is_dynamo_compiling() else options_of)(eps, weight_offset, rounding, dependent_launch, cache)
    return _operators.fused_add(x, residual, weight, options)


def fused_add_rms_norm_(
    x: Tensor,
    residual: Tensor,
    weight: Optional[Tensor] = None,
    eps: float = 1e-6,
    *,
    weight_offset: float = 0.0,
    rounding: Rounding = "gemma",
    dependent_launch: bool = False,
    cache: Cache = "tuned",
) -> None:
    """residual = x + residual, x = the norm of residual: in place, and without gradients. Otherwise as rms_norm()."""
    options = (Options if is_dynamo_compiling() else options_of)(eps, weight_offset, rounding, dependent_launch, cache)
    torch.ops.rms_norm.fused_add_rms_norm_(x, residual, weight, options.eps, **options.unusual)


class RMSNorm(torch.nn.Module):
    """torch.nn.RMSNorm for the last dimension, whose state it loads, with the options of rms_norm().

    Args:
        normalized_shape: the length of the last dimension, as a number or a shape of one.
        eps: None for that of float32, as in torch.nn.RMSNorm, which uses it for inputs of 16 bits too.
        elementwise_affine: whether there is a weight; it begins as ones, or as zeros if weight_offset is 1.
        device, dtype: of the weight.
        weight_offset, rounding, dependent_launch, cache: as in rms_norm().

    Raises:
        ValueError: normalized_shape is not one positive number, or eps or an option is none that is known.
    """

    def __init__(
        self,
        normalized_shape: Union[int, Sequence[int]],
        eps: Optional[float] = None,
        elementwise_affine: bool = True,
        device: Union[torch.device, str, int, None] = None,
        dtype: Optional[torch.dtype] = None,
        *,
        weight_offset: float = 0.0,
        rounding: Rounding = "gemma",
        dependent_launch: bool = False,
        cache: Cache = "tuned",
    ) -> None:
        super().__init__()
        self.weight: Optional[torch.nn.Parameter]
        shape = tuple(normalized_shape) if isinstance(normalized_shape, Iterable) else (normalized_shape,)
        if len(shape) != 1:
            raise ValueError(f"normalized_shape is {shape}; only the last dimension can be normalized")
        if shape[0] < 1:
            raise ValueError(f"normalized_shape is {shape}; the last dimension has one element or more")
        self.normalized_shape, self.elementwise_affine = (int(shape[0]),), elementwise_affine
        self.options = Options(_EPS, weight_offset, rounding, dependent_launch, cache)
        self.eps = eps
        weight = torch.empty(self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", None if weight is None else torch.nn.Parameter(weight))
        self.reset_parameters()

    @property
    def eps(self) -> Optional[float]:
        return self._eps

    @eps.setter
    def eps(self, eps: Optional[float]) -> None:
        self.options, self._eps = replace(self.options, eps=_EPS if eps is None else eps), eps

    def reset_parameters(self) -> None:
        """Fills the weight with what the norm multiplies by 1 with."""
        if self.weight is not None:
            torch.nn.init.constant_(self.weight, 1.0 - self.options.weight_offset)

    @overload
    def forward(self, x: Tensor, residual: None = None) -> Tensor: ...

    @overload
    def forward(self, x: Tensor, residual: Tensor) -> Tuple[Tensor, Tensor]: ...

    def forward(self, x, residual=None):
        """The norm of x; or, with a residual, the norm of the sum and the sum."""
        if self.weight is None and x.shape[-1:] != self.normalized_shape:
            raise ValueError(f"x has the shape {tuple(x.shape)}; its last dimension must be {self.normalized_shape[0]}")
        if residual is None:
            return _operators.norm(x, self.weight, self.options)
        return _operators.fused_add(x, residual, self.weight, self.options)

    def extra_repr(self) -> str:
        words = [f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"]
        return ", ".join(words + [f"{name}={value!r}" for name, value in self.options.unusual.items()])
