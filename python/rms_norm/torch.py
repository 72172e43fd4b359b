"""RMSNorm as PyTorch operators: torch.ops.rms_norm.*, with gradients, for eager mode, torch.compile and CUDA graphs.

    rms_norm(x, weight, eps)                          y
    fused_add_rms_norm(x, residual, weight, eps)      y and the sum, as new tensors, with gradients
    fused_add_rms_norm_(x, residual, weight, eps)     in place, without gradients
    RMSNorm                                           the module; it loads the state of torch.nn.RMSNorm
    patch_transformers(model), unpatch(model)         the norms of a Hugging Face model

The arguments mean what those of the package's functions do. Under autocast, tensors keep the types that they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from numbers import Integral
from typing import Optional, Tuple, Union, overload

import torch
from torch import Tensor, empty_like, is_grad_enabled
from torch.compiler import is_dynamo_compiling

from . import Cache, Rounding, _arrays, _options
from ._transformers import patch_transformers, unpatch
from ._watched import is_watched

__all__ = ["RMSNorm", "fused_add_rms_norm", "fused_add_rms_norm_", "patch_transformers", "rms_norm", "unpatch"]

# --- The operators --------------------------------------------------------------------------------------------------

_OPTIONS = (
    "float eps=1e-06, *, float weight_offset=0.0, str rounding='gemma', bool dependent_launch=False, str cache='tuned'"
)
_library = torch.library.Library("rms_norm", "DEF")
for _prefix in ("", "_"):  # with gradients; and without, which is what is left of a call in code that is compiled
    _library.define(f"{_prefix}rms_norm(Tensor x, Tensor? weight, {_OPTIONS}) -> Tensor")
    _library.define(
        f"{_prefix}fused_add_rms_norm(Tensor x, Tensor residual, Tensor? weight, {_OPTIONS}) -> (Tensor, Tensor)"
    )
_library.define(f"fused_add_rms_norm_(Tensor(a!) x, Tensor(b!) residual, Tensor? weight, {_OPTIONS}) -> ()")
_library.define(
    "backward(Tensor dy, Tensor? dsum, Tensor x, Tensor? weight, float eps, float weight_offset, bool wants_dweight)"
    " -> (Tensor, Tensor)"
)


def _implement(name):
    def register(function):
        for key in ("CPU", "CUDA"):
            _library.impl(name, function, key)
        return function

    return register


def _like(x, name="x"):
    """empty_like(), and a sentence for what is no tensor."""
    try:
        return empty_like(x)
    except TypeError:
        raise TypeError(f"{name} is a {type(x).__name__}; it must be a PyTorch tensor") from None


def _norm(x, weight, eps=1e-6, weight_offset=0.0, rounding="gemma", dependent_launch=False, cache="tuned"):
    llama, cache_code = _options(rounding, cache)
    y = _like(x)
    _arrays.norm(x, None, None, weight, y, eps, weight_offset, llama, dependent_launch, cache_code)
    return y


def _fused_add_rms_norm(
    x, residual, weight, eps=1e-6, weight_offset=0.0, rounding="gemma", dependent_launch=False, cache="tuned"
):
    llama, cache_code = _options(rounding, cache)
    y, total = _like(x), _like(residual, "residual")
    _arrays.norm(x, residual, total, weight, y, eps, weight_offset, llama, dependent_launch, cache_code)
    return y, total


if not _arrays.register_operators():  # these in C++; PyTorch before 2.10 does not have what that needs
    for _prefix in ("", "_"):
        _implement(f"{_prefix}rms_norm")(_norm)
        _implement(f"{_prefix}fused_add_rms_norm")(_fused_add_rms_norm)


@_implement("fused_add_rms_norm_")
def _(x, residual, weight, eps=1e-6, *, weight_offset=0.0, rounding="gemma", dependent_launch=False, cache="tuned"):
    if is_grad_enabled() and _any_requires_grad(x, residual, weight):
        raise ValueError("a tensor requires grad, and this works in place; fused_add_rms_norm has gradients")
    llama, cache_code = _options(rounding, cache)
    _arrays.norm(x, residual, residual, weight, x, eps, weight_offset, llama, dependent_launch, cache_code)
    torch.autograd.graph.increment_version((x, residual))


@_implement("backward")
def _(dy, dsum, x, weight, eps, weight_offset, wants_dweight):
    dx = torch.empty_like(x)
    if not wants_dweight:
        _arrays.backward(dy, dsum, x, weight, dx, None, None, eps, weight_offset)
        return dx, x.new_empty(0)
    rows = x.numel() // x.shape[-1]
    workspace = x.new_empty(_arrays.backward_workspace_bytes(rows, x.shape[-1]), dtype=torch.uint8)
    dweight = torch.empty_like(weight)
    _arrays.backward(dy, dsum, x, weight, dx, dweight, workspace, eps, weight_offset)
    return dx, dweight


# --- What they return, for torch.compile ----------------------------------------------------------------------------


def _check(x, weight, residual=None):
    """Refuses what the kernels refuse, of what is known without memory."""
    for name, tensor in (("x", x), ("weight", weight), ("residual", residual)):
        if tensor is not None and tensor.dtype not in TYPES:
            known = "float32, float16 and bfloat16 are known"
            raise TypeError(f"{name} has elements of type {str(tensor.dtype)[6:]}; {known}")
    if x.ndim == 0:
        raise ValueError("x has no dimension; the last one is normalized")
    for name, tensor, wanted in (("weight", weight, x.shape[-1:]), ("residual", residual, x.shape)):
        if tensor is not None and tensor.shape != wanted:
            raise ValueError(f"{name} has the shape {tuple(tensor.shape)}; {tuple(wanted)} is wanted")


@torch.library.register_fake("rms_norm::rms_norm", lib=_library)
@torch.library.register_fake("rms_norm::_rms_norm", lib=_library)
def _(x, weight, eps=1e-6, **options):
    _check(x, weight)
    return torch.empty_like(x)


@torch.library.register_fake("rms_norm::fused_add_rms_norm", lib=_library)
@torch.library.register_fake("rms_norm::_fused_add_rms_norm", lib=_library)
def _(x, residual, weight, eps=1e-6, **options):
    _check(x, weight, residual)
    return torch.empty_like(x), torch.empty_like(residual)


@torch.library.register_fake("rms_norm::fused_add_rms_norm_", lib=_library)
def _(x, residual, weight, eps=1e-6, **options):
    _check(x, weight, residual)


@torch.library.register_fake("rms_norm::backward", lib=_library)
def _(dy, dsum, x, weight, eps, weight_offset, wants_dweight):
    return torch.empty_like(x), torch.empty_like(weight) if wants_dweight else x.new_empty(0)


# --- Their gradients ------------------------------------------------------------------------------------------------

TYPES = frozenset({torch.float32, torch.float16, torch.bfloat16})
_USUAL = {Tensor, torch.nn.Parameter}
_USUAL_OR_NONE = {*_USUAL, type(None)}
_any_requires_grad, _is_transformed = torch._C._any_requires_grad, torch._C._are_functorch_transforms_active


def _is_direct(x, second, third=None):
    """Whether the kernel may be called at once: the tensors are usual ones, nobody wants gradients, and nothing listens
    to operators, as tracers and modes of PyTorch do. What is no tensor may be, since it is then refused."""
    if type(x) not in _USUAL or type(second) not in _USUAL_OR_NONE or type(third) not in _USUAL_OR_NONE:
        return not (isinstance(x, Tensor) and all(isinstance(other, (Tensor, type(None))) for other in (second, third)))
    return not (x.is_meta or is_watched() or is_grad_enabled() and _any_requires_grad(x, second, third))


def _below_autograd(operator, kernel, tensors, eps, options):
    if _is_direct(*tensors):
        return kernel(*tensors, eps, **options)
    with torch._C._AutoDispatchBelowAutograd():
        return operator(*tensors, eps, **options)


def _save(ctx, weight_at, eps, options, *tensors):
    ctx.weight_at, ctx.eps, ctx.weight_offset = weight_at, eps, options.get("weight_offset", 0.0)
    ctx.save_for_backward(*tensors)
    ctx.set_materialize_grads(False)


class _Backward(torch.autograd.Function):
    """The gradients, where they are themselves to be differentiated: that raises an error."""

    @staticmethod
    def forward(ctx, *arguments):
        return torch.ops.rms_norm.backward(*arguments)

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError("rms_norm has no second derivative; torch.nn.functional.rms_norm has one")


def _gradients(ctx, dy, dsum, x, weight):
    """dx in x's type, and dweight or None. What autograd hands over may be expanded or transposed: it is made dense."""
    wants_dweight = weight is not None and ctx.needs_input_grad[ctx.weight_at]
    dsum = None if dsum is None else dsum.contiguous()
    backward = _Backward.apply if is_grad_enabled() else torch.ops.rms_norm.backward  # with create_graph, or without
    dx, dweight = backward(dy.contiguous(), dsum, x.contiguous(), weight, ctx.eps, ctx.weight_offset, wants_dweight)
    return dx, dweight if wants_dweight else None


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps, options):
        _save(ctx, 1, eps, options, x, weight)
        return _below_autograd(torch.ops.rms_norm._rms_norm, _norm, (x, weight), eps, options)

    @staticmethod
    def backward(ctx, dy):
        if dy is None:
            return None, None, None, None
        return *_gradients(ctx, dy, None, *ctx.saved_tensors), None, None


class _FusedAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight, eps, options):
        operator = torch.ops.rms_norm._fused_add_rms_norm
        y, total = _below_autograd(operator, _fused_add_rms_norm, (x, residual, weight), eps, options)
        _save(ctx, 2, eps, options, total, weight)
        ctx.x_type = x.dtype
        return y, total

    @staticmethod
    def backward(ctx, dy, dsum):
        total, weight = ctx.saved_tensors
        if dy is None:
            return None if dsum is None else dsum.to(ctx.x_type), dsum, None, None, None
        dtotal, dweight = _gradients(ctx, dy, dsum, total, weight)
        return dtotal.to(ctx.x_type), dtotal, dweight, None, None


def _register_gradients(name, tensors, kernel, function):
    """What PyTorch calls where a tensor could want gradients. If none does, the kernel is called at once: `function` goes
    through PyTorch's dispatcher a second time, which takes the host longer."""

    def call(*arguments, **options):
        given = arguments[:tensors]
        if _is_direct(*given):
            return kernel(*arguments, **options)
        if _is_transformed():
            raise NotImplementedError("rms_norm has no rules for torch.func; torch.nn.functional.rms_norm has them")
        eps = arguments[tensors] if len(arguments) > tensors else 1e-6
        return function.apply(*given, eps, options)

    _library.impl(name, call, "Autograd")


_register_gradients("rms_norm", 2, _norm, _Norm)
_register_gradients("fused_add_rms_norm", 3, _fused_add_rms_norm, _FusedAdd)

# --- Functions ------------------------------------------------------------------------------------------------------


_EPS = torch.finfo(torch.float32).eps
_DEFAULTS = dict(weight_offset=0.0, rounding="gemma", dependent_launch=False, cache="tuned")


def _unusual(options):
    """Those that are not the defaults: an operator takes longer to be called, the more it is given."""
    return {} if options == _DEFAULTS else {name: value for name, value in options.items() if value != _DEFAULTS[name]}


def _number(eps):
    """eps for an operator, which would make a number of a tensor."""
    if eps is None or isinstance(eps, Tensor):
        raise TypeError(f"eps is {eps!r}, which is not a number")
    return eps


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
    if not is_dynamo_compiling() and _is_direct(x, weight):
        return _norm(x, weight, eps, weight_offset, rounding, dependent_launch, cache)
    options = dict(weight_offset=weight_offset, rounding=rounding, dependent_launch=dependent_launch, cache=cache)
    return torch.ops.rms_norm.rms_norm(x, weight, _number(eps), **_unusual(options))


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
    if not is_dynamo_compiling() and _is_direct(x, residual, weight):
        return _fused_add_rms_norm(x, residual, weight, eps, weight_offset, rounding, dependent_launch, cache)
    options = dict(weight_offset=weight_offset, rounding=rounding, dependent_launch=dependent_launch, cache=cache)
    return torch.ops.rms_norm.fused_add_rms_norm(x, residual, weight, _number(eps), **_unusual(options))


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
    options = dict(weight_offset=weight_offset, rounding=rounding, dependent_launch=dependent_launch, cache=cache)
    torch.ops.rms_norm.fused_add_rms_norm_(x, residual, weight, _number(eps), **_unusual(options))


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
        shape = (normalized_shape,) if isinstance(normalized_shape, Integral) else tuple(normalized_shape)
        if len(shape) != 1:
            raise ValueError(f"normalized_shape is {shape}; only the last dimension can be normalized")
        if shape[0] < 1:
            raise ValueError(f"normalized_shape is {shape}; the last dimension has one element or more")
        if eps is not None and not 0 <= eps < inf:
            raise ValueError(f"eps is {eps}; it must be finite and not negative")
        _options(rounding, cache)
        self.normalized_shape, self.eps, self.elementwise_affine = (int(shape[0]),), eps, elementwise_affine
        self.options = dict(
            weight_offset=weight_offset, rounding=rounding, dependent_launch=dependent_launch, cache=cache
        )
        weight = torch.empty(self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", None if weight is None else torch.nn.Parameter(weight))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fills the weight with what the norm multiplies by 1 with."""
        if self.weight is not None:
            torch.nn.init.constant_(self.weight, 1.0 - self.options["weight_offset"])

    @overload
    def forward(self, x: Tensor, residual: None = None) -> Tensor: ...

    @overload
    def forward(self, x: Tensor, residual: Tensor) -> Tuple[Tensor, Tensor]: ...

    def forward(self, x, residual=None):
        """The norm of x; or, with a residual, the norm of the sum and the sum."""
        weight, eps = self.weight, _EPS if self.eps is None else self.eps
        if weight is None and x.shape[-1:] != self.normalized_shape:
            raise ValueError(f"x has the shape {tuple(x.shape)}; its last dimension must be {self.normalized_shape[0]}")
        if residual is None:
            return rms_norm(x, weight, eps, **self.options)
        return fused_add_rms_norm(x, residual, weight, eps, **self.options)

    def extra_repr(self) -> str:
        words = [f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"]
        return ", ".join(words + [f"{name}={value!r}" for name, value in _unusual(self.options).items()])
