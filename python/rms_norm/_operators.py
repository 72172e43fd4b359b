"""PyTorch's operators rms_norm::*, and the choice between them and a direct call of the kernels.

A direct call takes the host the least time, and PyTorch does not see it. So it is made where nothing has to be seen:
without gradients, tracers and modes. Everything else goes through the operators. Those of PyTorch 2.10 and newer are
C++ (binding/operators.cu); what C++ does not implement is the direct call, registered under the operator's name.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor, is_grad_enabled
from torch.compiler import is_dynamo_compiling

from . import _arrays, _options
from ._options import remembered
from ._watched import is_watched

# --- Direct calls ---------------------------------------------------------------------------------------------------

TYPES = frozenset({torch.float32, torch.float16, torch.bfloat16})
_USUAL = {Tensor, torch.nn.Parameter}
_USUAL_OR_NONE = {*_USUAL, type(None)}
_any_requires_grad, _is_transformed = torch._C._any_requires_grad, torch._C._are_functorch_transforms_active


def is_direct(x, second, third=None):
    """Whether the kernel may be called at once: the tensors are usual ones, nobody wants gradients, and nothing listens
    to operators, as tracers and modes of PyTorch do. What is no tensor may be, since it is then refused."""
    if type(x) not in _USUAL or type(second) not in _USUAL_OR_NONE or type(third) not in _USUAL_OR_NONE:
        return not (isinstance(x, Tensor) and all(isinstance(other, (Tensor, type(None))) for other in (second, third)))
    if x.is_neg() or second is not None and second.is_neg() or third is not None and third.is_neg():
        return False  # PyTorch resolves its negative bit before it calls an operator
    return not (x.is_meta or is_watched() or is_grad_enabled() and _any_requires_grad(x, second, third))


def _like(x, name="x"):
    """empty_like(), and a sentence for what is no tensor."""
    try:
        return torch.empty_like(x)
    except TypeError:
        raise TypeError(f"{name} is a {type(x).__name__}; it must be a PyTorch tensor") from None


def direct_norm(x, weight, options):
    y = _like(x)
    try:
        _arrays.kernel(x, None, None, weight, y, *options.numbers, None)
    except _arrays.REFUSALS as refused:
        raise _arrays.explained(refused, (x, None, None, weight, y)) from None
    return y


def direct_fused_add(x, residual, weight, options, in_place=False):
    """The norm of the sum, and the sum, which in_place lets take the place of the residual."""
    y, total = _like(x), residual if in_place else _like(residual, "residual")
    try:
        _arrays.kernel(x, residual, total, weight, y, *options.numbers, None)
    except _arrays.REFUSALS as refused:
        raise _arrays.explained(refused, (x, residual, total, weight, y)) from None
    return y, total


def norm(x, weight, options):
    if not is_dynamo_compiling() and is_direct(x, weight):
        return direct_norm(x, weight, options)
    return torch.ops.rms_norm.rms_norm(x, weight, options.eps, **options.unusual)  # the fewer arguments, the faster


def fused_add(x, residual, weight, options):
    if not is_dynamo_compiling() and is_direct(x, residual, weight):
        return direct_fused_add(x, residual, weight, options)
    return torch.ops.rms_norm.fused_add_rms_norm(x, residual, weight, options.eps, **options.unusual)


def norm_out(x, residual, residual_out, weight, out, options):
    """What the package's functions do, by an operator, where PyTorch has to see one."""
    operators = torch.ops.rms_norm
    if residual is None:
        operators.rms_norm_out(out, x, weight, options.eps, **options.unusual)
    elif out is x and residual_out is residual:
        operators.fused_add_rms_norm_(x, residual, weight, options.eps, **options.unusual)
    else:
        operators.fused_add_rms_norm_out(out, residual_out, x, residual, weight, options.eps, **options.unusual)


def rope(arrays, numbers, options):
    torch.ops.rms_norm.qk_norm_rope_(*arrays, *numbers, options.eps, **options.unusual)


def quantized(arrays, block, options):
    x, residual, residual_out, weight, *others = arrays
    if residual_out is not residual:
        raise ValueError("residual_out is another tensor than residual, which is written in place")
    torch.ops.rms_norm.rms_norm_quantized_(x, residual, weight, *others, block, options.eps, **options.unusual)


# torch.compile does not look into the package's functions on its own: here it learns how they call an operator.
_options.is_compiling = is_dynamo_compiling
_arrays.of_compiled_code = _arrays.Torch()

# --- The operators --------------------------------------------------------------------------------------------------

_OPTIONS = (
    "float eps=1e-06, *, float weight_offset=0.0, str rounding='gemma', bool dependent_launch=False, str cache='tuned', "
    "bool batch_invariant=False"
)
_namespace = vars(torch.ops.rms_norm)
if "_library" in _namespace:  # this module is loaded again
    _namespace["_library"]._destroy()
_library = _namespace["_library"] = torch.library.Library("rms_norm", "DEF")
for _prefix in ("", "_"):  # with gradients; and without, which is what is left of a call in code that is compiled
    _library.define(f"{_prefix}rms_norm(Tensor x, Tensor? weight, {_OPTIONS}) -> Tensor")
    _library.define(
        f"{_prefix}fused_add_rms_norm(Tensor x, Tensor residual, Tensor? weight, {_OPTIONS}) -> (Tensor, Tensor)"
    )
_library.define(f"fused_add_rms_norm_(Tensor(a!) x, Tensor(b!) residual, Tensor? weight, {_OPTIONS}) -> ()")
_library.define(f"rms_norm_out(Tensor(a!) out, Tensor x, Tensor? weight, {_OPTIONS}) -> ()")
_library.define(
    "fused_add_rms_norm_out(Tensor(a!) out, Tensor(b!) residual_out, Tensor x, Tensor residual, Tensor? weight,"
    f" {_OPTIONS}) -> ()"
)
_library.define(
    "qk_norm_rope_(Tensor(a!) qkv, Tensor? q_weight, Tensor? k_weight, Tensor cos_sin, Tensor positions,"
    f" int q_heads, int kv_heads, int head_dim, bool neighbours, {_OPTIONS}) -> ()"
)
_library.define(
    "rms_norm_quantized_(Tensor x, Tensor(a!)? residual, Tensor? weight, Tensor(b!) out, Tensor(c!)? y, Tensor? scale,"
    f" Tensor(d!)? scales, Tensor? upper_bound, int block, {_OPTIONS}) -> ()"
)
# The norm, the sum if there is a residual, and each row's rstd, of the shape of x without its last dimension, for:
_library.define(f"_norm_with_rstd(Tensor x, Tensor? residual, Tensor? weight, {_OPTIONS}) -> (Tensor, Tensor, Tensor)")
_library.define(
    # wants_dweight is no bool: of the calls that it has seen, DTensor tells those apart that have other ints. What is new
    # comes last, with a default, since torch.compile keeps graphs on disk, whose calls are those of an older version.
    "backward(Tensor dy, Tensor? dsum, Tensor x, Tensor? weight, float eps, float weight_offset, int wants_dweight,"
    " Tensor? rstd=None) -> (Tensor, Tensor)"
)


def _with_options(function, tensors):
    """A function of tensors and Options, as an operator calls it."""

    def call(*arguments, **named):
        return function(*arguments[:tensors], remembered(*arguments[tensors:], **named))

    return call


def _norm_out(out, x, weight, options):
    _arrays.norm(x, None, None, weight, out, options)
    torch.autograd.graph.increment_version((out,))


def _fused_add_out(out, residual_out, x, residual, weight, options):
    if residual is None:  # which PyTorch lets through as a tensor that is not defined
        raise TypeError("residual is None; rms_norm() is the norm without one")
    _arrays.norm(x, residual, residual_out, weight, out, options)
    torch.autograd.graph.increment_version((out, residual_out))


def _fused_add_in_place(x, residual, weight, options):
    _fused_add_out(x, residual, x, residual, weight, options)


def _rope_in_place(qkv, q_weight, k_weight, cos_sin, positions, q_heads, kv_heads, head_dim, neighbours, options):
    arrays = qkv, q_weight, k_weight, cos_sin, positions
    _arrays.check_rope(arrays, q_heads, kv_heads, head_dim)
    _arrays.rope(arrays, (q_heads, kv_heads, head_dim, neighbours, *options.of_rope))
    torch.autograd.graph.increment_version((qkv,))


def _quantized_in_place(x, residual, weight, out, y, scale, scales, upper_bound, block, options):
    arrays = x, residual, residual, weight, out, y, scale, scales, upper_bound
    _arrays.check_quantized(arrays, block)
    code = _arrays.name_of_code(out.dtype)
    _arrays.quantized((*arrays[:4], out.view(torch.uint8), *arrays[5:]), code, block, options)
    torch.autograd.graph.increment_version([t for t in (residual, out, y, scales) if t is not None])


# By the operators' names: the call, how many arguments come before its options, and how many of these are tensors.
_WRITING = {
    "fused_add_rms_norm_": (_fused_add_in_place, 3, 3),
    "rms_norm_out": (_norm_out, 3, 3),
    "fused_add_rms_norm_out": (_fused_add_out, 5, 5),
    "qk_norm_rope_": (_rope_in_place, 9, 5),
    "rms_norm_quantized_": (_quantized_in_place, 9, 8),
}


def _norm_with_rstd(x, residual, weight, options):
    x = x.contiguous()  # rstd is in the order of the rows
    y, rstd = torch.empty_like(x), x.new_empty(x.shape[:-1], dtype=torch.float32)
    total = None
    if residual is not None:
        residual = residual.contiguous()
        total = torch.empty_like(residual)
    try:
        _arrays.norm_with_rstd(x, residual, total, weight, y, rstd, *options.numbers)
    except _arrays.REFUSALS as refused:
        raise _arrays.explained(refused, (x, residual, total, weight, y)) from None
    return y, x.new_empty(0) if total is None else total, rstd


def _backward(dy, dsum, x, weight, eps, weight_offset, wants_dweight, rstd=None):
    dx = torch.empty_like(x)
    if not wants_dweight:
        _arrays.backward(dy, dsum, x, weight, rstd, dx, None, None, eps, weight_offset)
        return dx, x.new_empty(0)
    rows = x.numel() // x.shape[-1]
    workspace = x.new_empty(_arrays.backward_workspace_bytes(rows, x.shape[-1]), dtype=torch.uint8)
    dweight = torch.empty_like(weight)
    _arrays.backward(dy, dsum, x, weight, rstd, dx, dweight, workspace, eps, weight_offset)
    return dx, dweight


_in_python = {name: _with_options(call, count) for name, (call, count, _) in _WRITING.items()}
_in_python["_norm_with_rstd"] = _with_options(_norm_with_rstd, 3)
_in_python["backward"] = _backward
if not _arrays.register_operators():  # PyTorch before 2.10 does not have what C++ needs
    for _prefix in ("", "_"):
        _in_python[f"{_prefix}rms_norm"] = _with_options(direct_norm, 2)
        _in_python[f"{_prefix}fused_add_rms_norm"] = _with_options(direct_fused_add, 3)
for _name, _function in _in_python.items():
    for _key in ("CPU", "CUDA"):
        _library.impl(_name, _function, _key)


def _refuse_negated(*arguments, **options):
    raise ValueError("a tensor has PyTorch's negative bit, and this writes tensors: give what resolve_neg() returns")


for _name in _WRITING:  # for the others, PyTorch resolves it
    _library.impl(_name, _refuse_negated, "Negative")

# --- What they return, for torch.compile ----------------------------------------------------------------------------


def _check_devices(tensors, names):
    """All must lie where the first one does. PyTorch computes nothing if one of them is a meta tensor: without this, a
    call with a weight that was never loaded would leave the others as they are."""
    for name, tensor in zip(names, tensors):
        if tensor is not None and tensor.device != tensors[0].device:
            places = f"{names[0]} lies on {tensors[0].device} and {name} on {tensor.device}"
            raise ValueError(f"{places}; move one of them, or load it if it is a meta tensor")


def _check(x, weight, **others):
    """Refuses what the kernels refuse, of what is known without memory. The others have the shape of x."""
    _check_devices((x, weight, *others.values()), ("x", "weight", *others))
    for name, tensor in (("x", x), ("weight", weight), *others.items()):
        if tensor is not None and tensor.dtype not in TYPES:
            known = "float32, float16 and bfloat16 are known"
            raise TypeError(f"{name} has elements of type {str(tensor.dtype)[6:]}; {known}")
    if x.ndim == 0:
        raise ValueError("x has no dimension; the last one is normalized")
    for name, tensor in (("weight", weight), *others.items()):
        wanted = x.shape[-1:] if name == "weight" else x.shape
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
    _check(x, weight, residual=residual)
    return torch.empty_like(x), torch.empty_like(residual)


@torch.library.register_fake("rms_norm::fused_add_rms_norm_", lib=_library)
def _(x, residual, weight, eps=1e-6, **options):
    _check(x, weight, residual=residual)


@torch.library.register_fake("rms_norm::rms_norm_out", lib=_library)
def _(out, x, weight, eps=1e-6, **options):
    _check(x, weight, out=out)


@torch.library.register_fake("rms_norm::fused_add_rms_norm_out", lib=_library)
def _(out, residual_out, x, residual, weight, eps=1e-6, **options):
    _check(x, weight, residual=residual, residual_out=residual_out, out=out)


@torch.library.register_fake("rms_norm::qk_norm_rope_", lib=_library)
def _(qkv, q_weight, k_weight, cos_sin, positions, q_heads, kv_heads, head_dim, *rest, **options):
    arrays = qkv, q_weight, k_weight, cos_sin, positions
    _check_devices(arrays, _arrays.NAMES_OF_ROPE)
    _arrays.check_rope(arrays, q_heads, kv_heads, head_dim)


@torch.library.register_fake("rms_norm::rms_norm_quantized_", lib=_library)
def _(x, residual, weight, out, y, scale, scales, upper_bound, block, eps=1e-6, **options):
    arrays = x, residual, residual, weight, out, y, scale, scales, upper_bound
    _check(x, weight)
    _check_devices(arrays, _arrays.NAMES_OF_QUANTIZED)
    _arrays.name_of_code(out.dtype)
    _arrays.check_quantized(arrays, block)


@torch.library.register_fake("rms_norm::_norm_with_rstd", lib=_library)
def _(x, residual, weight, eps=1e-6, **options):
    _check(x, weight, residual=residual)
    total = x.new_empty(0) if residual is None else torch.empty_like(residual)
    return torch.empty_like(x), total, x.new_empty(x.shape[:-1], dtype=torch.float32)


@torch.library.register_fake("rms_norm::backward", lib=_library)
def _(dy, dsum, x, weight, eps, weight_offset, wants_dweight, rstd=None):
    return torch.empty_like(x), torch.empty_like(weight) if wants_dweight else x.new_empty(0)


# --- Their gradients ------------------------------------------------------------------------------------------------


_is_sharding_known = False


def _has_dtensor(*tensors):
    """Whether there is a DTensor. The first one lets PyTorch know how the operators may be distributed."""
    global _is_sharding_known
    distributed = sys.modules.get("torch.distributed.tensor")
    if distributed is None or not any(isinstance(tensor, distributed.DTensor) for tensor in tensors):
        return False
    if not _is_sharding_known:
        from . import _sharding

        _sharding.register()
        _is_sharding_known = True
    return True


def _below_autograd(operator, direct, tensors, options):
    if is_direct(*tensors):
        return direct(*tensors, options)
    with torch._C._AutoDispatchBelowAutograd():
        return operator(*tensors, options.eps, **options.unusual)


def _save(ctx, weight_at, options, *tensors):
    ctx.weight_at, ctx.options = weight_at, options
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


# For shorter rows, computing rstd again takes less time than reading it: include/rms_norm/README.md.
_BYTES_OF_ROW = 4096


def _wants_rstd(x, *others):
    """Whether the forward pass stores each row's rstd for the backward pass: where that pays, and where it is compiled,
    which is for tensors of one type."""
    return (
        is_grad_enabled()
        and _any_requires_grad(x, *others)
        and "gradients" in _arrays.BUILT
        and x.ndim > 0
        and x.shape[-1] * x.element_size() >= _BYTES_OF_ROW
        and all(t is None or t.dtype == x.dtype and t.is_contiguous() for t in (x, *others))
    )


def _gradients(ctx, dy, dsum, x, weight, rstd):
    """dx in x's type, and dweight or None. What autograd hands over may be expanded or transposed: it is made dense."""
    wants_dweight = weight is not None and ctx.needs_input_grad[ctx.weight_at]
    dsum = None if dsum is None else dsum.contiguous()
    backward = _Backward.apply if is_grad_enabled() else torch.ops.rms_norm.backward  # with create_graph, or without
    numbers = ctx.options.eps, ctx.options.weight_offset
    dx, dweight = backward(dy.contiguous(), dsum, x.contiguous(), weight, *numbers, int(wants_dweight), rstd)
    return dx, dweight if wants_dweight else None


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, options, wants_rstd):
        if wants_rstd:
            y, _, rstd = _below_autograd(
                torch.ops.rms_norm._norm_with_rstd, _norm_with_rstd, (x, None, weight), options
            )
        else:
            y, rstd = _below_autograd(torch.ops.rms_norm._rms_norm, direct_norm, (x, weight), options), None
        _save(ctx, 1, options, x, weight, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        if dy is None:
            return None, None, None, None
        return *_gradients(ctx, dy, None, *ctx.saved_tensors), None, None


class _FusedAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight, options, wants_rstd):
        operators = torch.ops.rms_norm
        tensors = x, residual, weight
        if wants_rstd:
            y, total, rstd = _below_autograd(operators._norm_with_rstd, _norm_with_rstd, tensors, options)
        else:
            y, total = _below_autograd(operators._fused_add_rms_norm, direct_fused_add, tensors, options)
            rstd = None
        _save(ctx, 2, options, total, weight, rstd)
        ctx.x_type = x.dtype
        return y, total

    @staticmethod
    def backward(ctx, dy, dsum):
        total, weight, rstd = ctx.saved_tensors
        if dy is None:
            return None if dsum is None else dsum.to(ctx.x_type), dsum, None, None, None
        dtotal, dweight = _gradients(ctx, dy, dsum, total, weight, rstd)
        return dtotal.to(ctx.x_type), dtotal, dweight, None, None


def _with_gradients(tensors, direct, function):
    """What PyTorch calls where a tensor could want gradients. If none does, the kernel is called at once: `function` goes
    through PyTorch's dispatcher a second time, which takes the host longer."""

    def call(*arguments, **named):
        given, options = arguments[:tensors], remembered(*arguments[tensors:], **named)
        if is_direct(*given):
            return direct(*given, options)
        _has_dtensor(*given)
        if _is_transformed():
            raise NotImplementedError("rms_norm has no rules for torch.func; torch.nn.functional.rms_norm has them")
        return function.apply(*given, options, _wants_rstd(*given))

    return call


def _without_gradients(name, direct, leading, tensors):
    """What PyTorch calls first of an operator that writes its results. Where torch.compile traces, too, it refuses
    tensors that require grad: whoever asked for a gradient would get none."""

    def call(*arguments, **named):
        given = arguments[:tensors]
        if is_grad_enabled() and _any_requires_grad(*given):
            raise ValueError(
                "a tensor requires grad, and an operator that writes its result has no backward: call rms_norm or "
                "fused_add_rms_norm of rms_norm.torch, or this one under torch.no_grad()"
            )
        if all(tensor is None or is_direct(tensor, None) for tensor in given):
            return direct(*arguments[:leading], remembered(*arguments[leading:], **named))
        if _has_dtensor(*given):
            raise ValueError(
                "an operator that writes its result takes no DTensor: call rms_norm or fused_add_rms_norm of "
                "rms_norm.torch, whose results are new, or give what to_local() returns"
            )
        with torch._C._AutoDispatchBelowAutograd():
            return getattr(torch.ops.rms_norm, name)(*arguments, **named)

    return call


for _name, _call in _WRITING.items():
    _library.impl(_name, _without_gradients(_name, *_call), "Autograd")
_library.impl("rms_norm", _with_gradients(2, direct_norm, _Norm), "Autograd")
_library.impl("fused_add_rms_norm", _with_gradients(3, direct_fused_add, _FusedAdd), "Autograd")
