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

from . import _operators
from ._options import Cache, Options, Rounding, options_of
from ._transformers import patch_transformers, unpatch

__all__ = ["RMSNorm", "fused_add_rms_norm", "fused_add_rms_norm_", "patch_transformers", "rms_norm", "unpatch"]

_EPS = torch.finfo(torch.float32).eps


def rms_norm(
    x: Tensor,
    weight: Optional[Tensor] = None,
    eps: float = 1e-6,
    *,
    weight_offset: float = 0.0,
    rounding: Rounding = "gemma",
    dependent_launch: bool = False,
    cache: Cache = "tuned",
    batch_invariant: bool = False,
) -> Tensor:
    """The norm of each row of x, a new tensor, with gradients. Arguments and errors are those of the package's
    rms_norm(), but there is no out, and what PyTorch's dispatcher refuses by its type raises RuntimeError.

    There is no second derivative, and no rule for forward differentiation and torch.func: these raise an error.
    Without gradients in eager mode it calls the kernel directly, which takes the host less time than an operator."""
    options = options_of(eps, weight_offset, rounding, dependent_launch, cache, batch_invariant)
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
    batch_invariant: bool = False,
) -> Tuple[Tensor, Tensor]:
    """The norm of x + residual and the sum, as new tensors, with gradients. Otherwise as rms_norm()."""
    options = options_of(eps, weight_offset, rounding, dependent_launch, cache, batch_invariant)
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
    batch_invariant: bool = False,
) -> None:
    """residual = x + residual, x = the norm of residual: in place, and without gradients. Otherwise as rms_norm()."""
    options = options_of(eps, weight_offset, rounding, dependent_launch, cache, batch_invariant)
    torch.ops.rms_norm.fused_add_rms_norm_(x, residual, weight, options.eps, **options.unusual)


def _has_rows(x: Tensor) -> bool:
    """Whether two strides reach all rows, in the order of the dimensions, as the kernels walk them."""
    if x.shape[-1] > 1 and x.stride(-1) != 1:
        return False
    leading = [(x.stride(i), x.shape[i]) for i in range(x.ndim - 1) if x.shape[i] != 1]
    pairs = [(outer, inner * count) for (outer, _), (inner, count) in zip(leading, leading[1:])]
    return len(pairs) < 2 or all(a >= b > 0 for a, b in pairs) and sum(a != b for a, b in pairs) < 2


class RMSNorm(torch.nn.Module):
    """torch.nn.RMSNorm, whose state it loads, with the options of rms_norm(), and a residual that forward() adds.

    As there, the result is contiguous. Where two strides do not reach all rows of x or of the residual, as the kernels
    walk them, it is copied first; where x is transposed, the result is copied. It cannot be scripted by torch.jit.

    Args:
        normalized_shape: the lengths of the last dimensions, which are normalized together; a number for one.
        eps: None for that of float32, as in torch.nn.RMSNorm, which uses it for inputs of 16 bits too.
        elementwise_affine: whether there is a weight; it begins as ones, or as zeros if weight_offset is 1.
        device, dtype: of the weight.
        weight_offset, rounding, dependent_launch, cache, batch_invariant: as in rms_norm().

    Raises:
        ValueError: normalized_shape is empty or negative, or eps or an option is none that is known.
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
        batch_invariant: bool = False,
    ) -> None:
        super().__init__()
        self.weight: Optional[torch.nn.Parameter]
        shape = tuple(normalized_shape) if isinstance(normalized_shape, Iterable) else (normalized_shape,)
        if not shape or min(shape) < 0:
            raise ValueError(f"normalized_shape is {shape}; it must be one number or more, and none may be negative")
        self.normalized_shape, self.elementwise_affine = tuple(int(length) for length in shape), elementwise_affine
        self._row = (
            None if len(shape) > 1 or 0 in shape else self.normalized_shape
        )  # where nothing has to be changed first
        self.options = Options(_EPS, weight_offset, rounding, dependent_launch, cache, batch_invariant)
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
        """Fills the weight so that the norm is multiplied by 1."""
        if self.weight is not None:
            torch.nn.init.constant_(self.weight, 1.0 - self.options.weight_offset)

    @overload
    def forward(self, x: Tensor, residual: None = None) -> Tensor: ...

    @overload
    def forward(self, x: Tensor, residual: Tensor) -> Tuple[Tensor, Tensor]: ...

    def forward(self, x, residual=None):
        """The norm of x; or, with a residual, the norm of the sum and the sum."""
        for tensor in (x, residual):
            if isinstance(tensor, Tensor) and not (tensor.is_contiguous() and tensor.shape[-1:] == self._row):
                return self._forward_of_any(x, residual)
        return self._forward_of_rows(x, residual, self.weight)

    def _forward_of_rows(self, x, residual, weight):
        if residual is None:
            return _operators.norm(x, weight, self.options)
        return _operators.fused_add(x, residual, weight, self.options)

    def _forward_of_any(self, x, residual):
        """The same of tensors that are not contiguous, and of several dimensions that are normalized together."""
        if not (isinstance(x, Tensor) and isinstance(residual, (Tensor, type(None)))):
            return self._forward_of_rows(x, residual, self.weight)  # which says what is no tensor
        shape, count = tuple(x.shape), len(self.normalized_shape)
        if shape[-count:] != self.normalized_shape:
            raise ValueError(
                f"x has the shape {shape}; it must end in {self.normalized_shape}, as normalized_shape says"
            )
        if residual is not None and residual.shape != x.shape:
            raise ValueError(
                f"residual has the shape {tuple(residual.shape)}, and x has {shape}; they must be the same"
            )
        if 0 in self.normalized_shape:  # PyTorch's own has nothing to compute, either
            y = torch.nn.functional.rms_norm(x, self.normalized_shape, self.weight)
            return y if residual is None else (y, residual.clone())
        x = x.flatten(-count)
        residual = None if residual is None else residual.flatten(-count)
        if not (_has_rows(x) and (residual is None or _has_rows(residual))):
            x = x.contiguous()
            residual = None if residual is None else residual.contiguous()
        results = self._forward_of_rows(x, residual, None if self.weight is None else self.weight.flatten())
        if residual is None:
            return results.contiguous().view(shape)
        return tuple(result.contiguous().view(shape) for result in results)

    def __prepare_scriptable__(self):
        raise NotImplementedError(
            "rms_norm.torch.RMSNorm cannot be scripted by torch.jit, which PyTorch has given up: use torch.compile, "
            "torch.export or torch.jit.trace"
        )

    def extra_repr(self) -> str:
        words = [f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"]
        return ", ".join(words + [f"{name}={value!r}" for name, value in self.options.unusual.items()])
