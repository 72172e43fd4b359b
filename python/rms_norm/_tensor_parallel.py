"""Layers of Hugging Face models whose matrices transformers has split over GPUs: each sum over the ranks is left to the
norm that follows it."""

import inspect
from typing import Any, Dict, Tuple

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate

from . import _recognize, _transformers, distributed
from ._recognize import Unknown
from ._transformers import ALL_HOOKS, LayerForward, NormForward, Report


class Product:
    """The forward of a product by a matrix whose columns are split: the sum over the ranks, as transformers computes it, or
    while `is_part`, this rank's part of the sum."""

    is_part = False

    def __init__(self, module, forward, style, mesh, of_linear):
        self._rms_norm_whole = forward  # by which unpatch() knows it
        self.module, self.style, self.mesh, self.of_linear = module, style, mesh, of_linear
        self.group = mesh.get_group()

    def __call__(self, *given, **named):
        if not self.is_part:
            return self._rms_norm_whole(*given, **named)
        given, named = self.style.transform_inputs_pre_forward(self.module, given, named, self.mesh)
        with self.style.context_around_forward(self.module, self.mesh):
            return self.of_linear(*given, **named)

    def part_of(self, block, *given, **named):
        """What the block returns, whose last step this is, without the sum over the ranks."""
        self.is_part = True
        try:
            return block(*given, **named)
        finally:
            self.is_part = False


def _reads_weights(hook):
    """Whether transformers collects an attention's weights with it, which are the second one of its results."""
    names = hook.__code__.co_freevars if _transformers._only_read({0: hook}) else ()
    return "index" in names and hook.__closure__[names.index("index")].cell_contents != 0


def _is_seen(block, last, of_attention=False):
    """Whether hooks would see a part in place of the sum."""
    hooks = block._forward_hooks.values()
    return any(ALL_HOOKS) or bool(last._forward_hooks) or not all(of_attention and _reads_weights(one) for one in hooks)


def _sum_and_norm(norm, part, residual, group):
    """The norm of the sum of the ranks' parts and the residual, and the sum."""
    known, options = norm._rms_norm_known, norm._rms_norm_options
    weight = None if known.weight is None else norm._parameters.get(known.weight)
    is_known = options is not None and (part.dtype, None if weight is None else weight.dtype) in known.types
    if not is_known or residual.dtype != part.dtype:
        dist.all_reduce(part, group=group)
        return _transformers._add_and_norm(norm, part, residual)
    more = {"weight_offset": options.weight_offset, "rounding": options.rounding}
    more["dependent_launch"] = options.dependent_launch
    return distributed.all_reduce_fused_add_rms_norm(part, residual, weight, options.eps, group=group, **more)


class SplitLayerForward(LayerForward):
    """What a decoder layer computes. Both sums over the ranks are done together with the addition and the norm that follow
    them, unless a hook would see what is left out."""

    _rms_norm_products: Tuple[Product, Product]  # the last ones of the attention and of the MLP

    def forward(self, *arguments, **kwargs):
        layer = self._rms_norm_layer
        modules: Dict[str, Any] = self._modules
        _check(arguments[0] if arguments else kwargs.get(layer.x))
        residual, kwargs = self._before_attention(arguments, kwargs)
        attention, mlp, norm = modules[layer.attention], modules[layer.mlp], modules[layer.second]
        of_attention, of_mlp = self._rms_norm_products
        if not _transformers._is_plain(norm) or _is_seen(attention, of_attention.module, True):
            hidden_states, _ = attention(**kwargs)
            residual = residual + hidden_states
            hidden_states = norm(residual)
        else:
            part, _ = of_attention.part_of(attention, **kwargs)
            hidden_states, residual = _sum_and_norm(norm, part, residual, of_attention.group)
        following = self._next_norm(residual)
        if following is None or _is_seen(mlp, of_mlp.module):
            return residual + mlp(hidden_states)
        part = of_mlp.part_of(mlp, hidden_states)
        normed, total = _sum_and_norm(following, part, residual, of_mlp.group)
        following._rms_norm_ahead.put(total, normed)
        return total


def _check(hidden_states):
    if torch.is_grad_enabled():
        raise ValueError(
            "the sums over GPUs that rms_norm.distributed.patch_transformers() has put into this model have no gradients: "
            "call the model under torch.no_grad(), or undo the patch with rms_norm.torch.unpatch()"
        )
    if isinstance(hidden_states, DTensor):
        raise TypeError(
            f"the hidden states are a DTensor with the placements {hidden_states.placements}; a layer that "
            "rms_norm.distributed.patch_transformers() has patched takes plain tensors that are the same on every rank"
        )


def _product_of(layer, name):
    """The last product of a part of a layer, with the pieces that transformers' forward of it is made of."""
    block = layer._modules[name]
    if "forward" in vars(block):
        raise Unknown(f"the forward of its {name} was replaced in the module itself")
    try:
        last = _recognize.last_of(type(block))
    except Unknown as unknown:
        raise Unknown(f"{unknown}, which is its {name}'s") from None
    place = f"{name}.{last}"
    module = getattr(block, last)
    forward = vars(module).get("forward") if isinstance(module, torch.nn.Module) else None
    if isinstance(forward, Product):
        return forward
    try:
        from transformers.distributed.tensor_parallel import RowwiseParallel
    except ImportError:
        raise Unknown("the installed transformers does not split matrices as 5.23 does") from None
    pieces = inspect.getclosurevars(forward).nonlocals if inspect.isfunction(forward) else {}
    style: Any = pieces.get("self")
    owner: Any = pieces.get("module")
    if type(style) is not RowwiseParallel or type(module) is not torch.nn.Linear or module is not owner:
        raise Unknown(f"its {place} is no matrix of torch.nn.Linear that transformers has split by columns (rowwise)")
    if not isinstance(style.output_layouts, Replicate) or pieces["mesh"].ndim != 1:
        raise Unknown(f"the result of its {place} is not the same on every rank")
    if module._parameters.get("bias") is not None:
        raise Unknown(f"its {place} has a bias, which is added after the sum")
    return Product(module, forward, style, pieces["mesh"], pieces["original_forward"])


def _patch_layer(layer):
    known: _recognize.Layer = layer._rms_norm_layer
    if known.after_attention is not None or known.after_mlp is not None:
        raise Unknown("between a sum over the ranks and the addition of the residual, it calls another module")
    if not isinstance(layer._modules[known.second], NormForward):
        raise Unknown(f"its {known.second} is not patched")
    if any(
        isinstance(one, DTensor) for name in (known.first, known.second) for one in layer._modules[name].parameters()
    ):
        raise Unknown("the weights of its norms are DTensors")
    products = _product_of(layer, known.attention), _product_of(layer, known.mlp)
    layer.__class__ = _transformers._derived(type(layer)._rms_norm_original, SplitLayerForward)
    layer._rms_norm_products = products
    for product in products:
        product.module.forward = product


def patch(model: torch.nn.Module, dependent_launch: bool) -> Report:
    was_patched = any(map(_transformers._is_patched, model.modules()))
    report = _transformers.patch_transformers(model, dependent_launch=dependent_launch)
    patched, left = dict(report.patched), dict(report.left)
    is_any = False
    for name, layer in model.named_modules():
        if isinstance(layer, LayerForward):
            try:
                _patch_layer(layer)
            except Unknown as unknown:
                left[name] = f"{type(layer).__name__}: its sums over the ranks are not patched: {unknown}"
            else:
                is_any = True
                patched[name] = f"{type(layer).__name__}: its sums over the ranks, with the norms that follow"
    report = Report(model, patched, left)
    if not is_any:
        if not was_patched:
            _transformers.unpatch(model)
        raise ValueError(f"the model has no layer whose sums over the ranks are known\n{report}")
    return report
