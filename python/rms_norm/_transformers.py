"""The norms of Hugging Face models, replaced in place: each module gets a class derived from its own."""

import functools
from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch.compiler import is_dynamo_compiling
from torch.nn.modules import module as modules_of_torch

from . import _operators, _recognize
from ._options import Options
from ._recognize import Unknown

# Where hooks are that every module calls.
KINDS = "forward forward_pre backward backward_pre".split()
ALL_HOOKS = [getattr(modules_of_torch, f"_global_{kind}_hooks") for kind in KINDS]
REFUSALS = BufferError, TypeError, ValueError  # of the kernels, for arguments that the models' own code may take


class Ahead:
    """A norm that was computed with the addition before it, until the module whose norm it is asks for it. Nothing is
    used that was computed without gradients where they are recorded by then, as with reentrant checkpointing. After an
    exception in a forward pass it holds both tensors until the next pass."""

    held = None

    def put(self, total, normed):
        # Tensors of inference mode do not count how often they are written, and torch.compile sees it by itself.
        uncounted = is_dynamo_compiling() or total.is_inference()
        self.held = total, None if uncounted else total._version, normed

    def take(self, total):
        """The norm of this very tensor, if nobody has written to it since; else None."""
        held, self.held = self.held, None
        if held is None or held[0] is not total or torch.is_grad_enabled():
            return None
        return held[2] if held[1] is None or held[1] == total._version else None


def _is_plain(norm):
    """Whether the kernel may take the place of a call of the module: it is patched, has no hooks, and no forward of its
    own, such as accelerate gives the modules whose weights it moves."""
    if not isinstance(norm, NormForward) or "forward" in norm.__dict__:
        return False
    hooks = norm._forward_hooks or norm._forward_pre_hooks or norm._backward_hooks or norm._backward_pre_hooks
    return not (hooks or any(ALL_HOOKS))


def _only_read(hooks):
    """Whether the hooks leave what they see as it is: those with which transformers collects hidden states do."""
    return all(getattr(hook, "__module__", None) == "transformers.utils.output_capturing" for hook in hooks.values())


def _computed(norm, x, residual=None, in_place=False):
    """The norm of x; with a residual, that of the sum, and the sum, which in_place lets take the place of the residual.
    None where the module's own code must compute it: the kernels do not take these tensors, or give another type."""
    known, options, dtype = norm._rms_norm_known, norm._rms_norm_options, x.dtype
    weight = None if known.weight is None else norm._parameters.get(known.weight)
    if options is None or (dtype, None if weight is None else weight.dtype) not in known.types:
        return None
    if residual is not None and residual.dtype is not dtype:
        return None
    try:
        if not is_dynamo_compiling() and _operators.is_direct(x, weight, residual):
            if residual is None:
                return _operators.direct_norm(x, weight, options)
            return _operators.direct_fused_add(x, residual, weight, options, in_place)
        if x.stride(-1) != 1 or weight is not None and weight.shape != x.shape[-1:]:
            return None
        if residual is None:
            return _operators.norm(x, weight, options)
        if residual.shape == x.shape and residual.stride(-1) == 1:
            return _operators.fused_add(x, residual, weight, options)
    except REFUSALS:
        pass
    return None


def _add_and_norm(norm, x, residual, in_place=False):
    """The norm of x + residual, and the sum, which in_place lets take the place of the residual."""
    computed = _computed(norm, x, residual, in_place)
    if computed is not None:
        return computed
    total = residual + x
    return norm(total), total


class Patched(torch.nn.Module):
    """A module whose class is derived from that of its model, by which it is pickled and copied."""

    _rms_norm_original: type

    def __reduce_ex__(self, protocol):
        reduced: Any = super().__reduce_ex__(max(protocol, 2))
        _, (kind, *arguments), *state = reduced
        base = LayerForward if issubclass(kind, LayerForward) else NormForward
        return _new, (kind._rms_norm_original, base, *arguments), *state


class NormForward(Patched):
    _rms_norm_known: _recognize.Norm
    _rms_norm_launch: Dict[str, Any]  # the options that are not the model's
    _rms_norm_options: Optional[Options]  # None while its eps is none that the kernels know
    _rms_norm_ahead: Optional[Ahead]

    def forward(self, *given, **named):
        if len(given) != 1 or named:
            return super().forward(*given, **named)
        (hidden_states,) = given
        if self._rms_norm_ahead is not None:
            normed = self._rms_norm_ahead.take(hidden_states)
            if normed is not None:
                return normed
        computed = _computed(self, hidden_states)
        return super().forward(hidden_states) if computed is None else computed

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        known = vars(self).get("_rms_norm_known")
        if known is not None and name == known.eps:
            self._rms_norm_options = _options_of(known, value, self._rms_norm_launch)


def _options_of(known, eps, launch):
    try:
        return Options(_recognize.EPS if eps is None else eps, **known.options, **launch)
    except (TypeError, ValueError):
        return None


# The norm after a layer, and the hooks that see the sum before it; in a tuple, since the norm is no submodule.
Following = Tuple[Optional[NormForward], Dict[int, Any]]
NOTHING_FOLLOWS: Following = None, {}


class LayerForward(Patched):
    """What a decoder layer computes. Its last addition is done together with the norm that follows it, the next layer's
    first one or the model's last, which finds its result in an Ahead."""

    _rms_norm_layer: _recognize.Layer
    _rms_norm_following: Following

    def _before_attention(self, arguments, kwargs):
        """The residual, and what the attention is given."""
        layer = self._rms_norm_layer
        kwargs = {**layer.defaults, **dict(zip((layer.x, *layer.positional), arguments)), **kwargs}
        residual = kwargs.pop(layer.x)
        for name in layer.dropped:
            kwargs.pop(name, None)
        kwargs[layer.hidden_states] = self._modules[layer.first](residual)  # type: ignore[misc]
        return residual, kwargs

    def forward(self, *arguments, **kwargs):
        layer = self._rms_norm_layer
        modules: Dict[str, Any] = self._modules  # faster than attributes of a module
        residual, kwargs = self._before_attention(arguments, kwargs)
        hidden_states, _ = modules[layer.attention](**kwargs)
        if layer.after_attention is not None:
            hidden_states = modules[layer.after_attention](hidden_states)
        norm = modules[layer.second]
        in_place = _is_plain(norm)  # then nobody else has the sum
        if in_place:
            hidden_states, residual = _add_and_norm(norm, hidden_states, residual)
        else:
            residual = residual + hidden_states
            hidden_states = norm(residual)
        hidden_states = modules[layer.mlp](hidden_states)
        if layer.after_mlp is not None:
            hidden_states = modules[layer.after_mlp](hidden_states)
        following = self._next_norm(hidden_states)
        if following is None:
            return residual + hidden_states
        normed, total = _add_and_norm(following, hidden_states, residual, in_place)
        following._rms_norm_ahead.put(total, normed)
        return total

    def _next_norm(self, x):
        """The norm that follows, if it may be computed now: in training, a layer may be computed a second time, and a
        hook may change the sum before the norm is due."""
        following, hooks_before = self._rms_norm_following
        if following is None or torch.is_grad_enabled() or not _is_plain(following):
            return None
        if (self._forward_hooks or hooks_before) and not (_only_read(self._forward_hooks) and _only_read(hooks_before)):
            return None
        weight = following._parameters.get(following._rms_norm_known.weight or "")
        return following if weight is None or weight.device == x.device else None


def _derive(kind: type, base: type) -> type:
    more = {"_rms_norm_layer": _recognize.layer_of(kind)} if issubclass(base, LayerForward) else {}
    return type(kind.__name__, (base, kind), {"_rms_norm_original": kind, "__module__": kind.__module__, **more})


_derived: Callable[[type, type], Any] = functools.lru_cache(maxsize=None)(_derive)


def _new(original, base=NormForward):
    """A module without its state, for pickle and copy: a patched one, if the class is still one that can be."""
    try:
        kind = _derived(original, base)
    except Unknown:
        kind = original
    return kind.__new__(kind)


def _is_patched(module):
    return hasattr(type(module), "_rms_norm_original")


@dataclass(frozen=True)
class Report:
    """What patch_transformers() did: print it. Both dictionaries are by the names of the modules in the model."""

    model: torch.nn.Module
    patched: Dict[str, str]  # the class of each module, and what the kernels compute in its place
    left: Dict[str, str]  # the class of each norm and decoder layer that keeps its own code, and why

    def __str__(self) -> str:
        lines = []
        for title, modules in (("patched", self.patched), ("left as they are", self.left)):
            counts = Counter(modules.values())
            lines += [f"{title}:{'' if modules else ' none'}", *(f"  {n} {what}" for what, n in counts.items())]
        return "\n".join(lines)


def patch_transformers(
    model: torch.nn.Module, *, dependent_launch: bool = False, batch_invariant: bool = False
) -> Report:
    """Has the RMSNorm modules of a model computed by this package, in place.

    A module is known by what its forward computes, not by its name. It is called with symbols in place of tensors, and
    its formula must be one that the kernels have, in each type and with the same roundings; so the norms of Llama,
    Gemma, OLMo 2 and those like them are known, in transformers, in code that a model brings along, and as
    torch.nn.RMSNorm. Decoder layers are known by the source of their forward: where that adds a residual right before
    a norm, both are done by one kernel; across layers, where no gradients are needed.

    Weights stay where they are, and hidden states, outputs and hooks are those of the model: where hooks are
    registered, nothing is fused that they would see. A norm keeps its own code for what the kernels do not take, and
    for types whose result has another type than the input; and a norm whose `forward` was replaced, as accelerate does
    to move weights, before or after the patch, is called as it is. An eps that is assigned later counts from then on.
    A patched model can be copied and pickled; to load it, the package must be installed.

    Args:
        model: the model, or a part of it.
        dependent_launch: as in rms_norm(): each norm starts while the kernel before it still runs, and reads its weight
            at once. A forward pass writes no weight; what writes one on the same stream, such as an optimizer's step,
            must not be the last kernel before a norm.
        batch_invariant: as in rms_norm(): the bits of a row do not depend on the rows beside it.

    Returns:
        A Report of all modules that are patched now, and of the norms and layers that are not and why. Modules keep the
        options of the call that patched them first.

    Raises:
        ValueError: there is no module that is known; the message says why.
    """
    launch, left = {"dependent_launch": dependent_launch, "batch_invariant": batch_invariant}, {}
    for name, module in list(model.named_modules()):
        if not _is_patched(module) and not type(module).__module__.startswith("rms_norm."):
            try:
                _patch_norm(module, launch)
            except Unknown as unknown:
                if _looks_like_a_norm(name, module):
                    left[name] = str(unknown)
    layers = {id(layer) for modules in model.modules() if isinstance(modules, torch.nn.ModuleList) for layer in modules}
    for name, module in list(model.named_modules()):
        if not _is_patched(module) and any(isinstance(child, NormForward) for child in module.children()):
            try:
                _patch_layer(module)
            except Unknown as unknown:
                if id(module) in layers:
                    left[name] = f"only its norms are patched: {unknown}"
    for module in model.modules():
        _chain(module)
    named = dict(model.named_modules())
    patched = {name: _described(module) for name, module in named.items() if _is_patched(module)}
    left = {name: f"{type(named[name]).__name__}: {why}" for name, why in left.items()}
    report = Report(model, patched, left)
    if not patched:
        raise ValueError(f"the model has no RMSNorm that the kernels compute\n{report}")
    return report


def _looks_like_a_norm(name, module):
    """Whether a report says why the module is none: for its names, or since all that it has is a row of weights."""
    names = [name.rpartition(".")[2], *(kind.__name__ for kind in type(module).__mro__)]
    if any("norm" in one.lower() for one in names):
        return True
    parameters = [one for one in module._parameters.values() if one is not None]
    return not module._modules and len(parameters) == 1 and parameters[0].ndim == 1 and parameters[0].numel() > 1


def _patch_norm(module, launch):
    known = _recognize.norm_of(module)
    eps = known.constant if known.eps is None else getattr(module, known.eps)
    options = _options_of(known, eps, launch)
    if options is None:
        raise Unknown(f"its eps is {eps!r}")
    _change_class(module, NormForward)
    module._rms_norm_launch, module._rms_norm_options, module._rms_norm_ahead = launch, options, None
    module._rms_norm_known = known


def _patch_layer(module):
    if "forward" in vars(module):
        raise Unknown("its forward was replaced in the module itself")
    layer = _recognize.layer_of(type(module))
    missing = [name for name in layer[:6] if name is not None and module._modules.get(name) is None]
    if missing:
        raise Unknown(f"its {missing[0]} is no module")
    if not any(isinstance(module._modules[name], NormForward) for name in (layer.first, layer.second)):
        raise Unknown("its additions are before norms that are not patched")
    _change_class(module, LayerForward)
    module._rms_norm_following = NOTHING_FOLLOWS


def _change_class(module, base):
    try:
        module.__class__ = _derived(type(module), base)
    except TypeError as error:
        raise Unknown(f"no class can be derived from its own: {error}") from None


def _described(module):
    """The class of a patched module, and what the kernels compute."""
    if isinstance(module, LayerForward):
        return f"{type(module).__name__}: its additions, with the norms that follow"
    known = module._rms_norm_known
    weight = "no weight" if known.weight is None else "1 + weight" if "weight_offset" in known.options else "weight"
    rounding = ", by which the rounded value is multiplied" if "rounding" in known.options else ""
    return f"{type(module).__name__}: {weight}{rounding}"


def _chain(module):
    """Has the layers of a model know the norms that follow them."""
    found, last = getattr(module, "layers", None), getattr(module, "norm", None)
    layers: List[Any] = list(found) if isinstance(found, torch.nn.ModuleList) else []
    for layer, next_layer in zip(layers, [*layers[1:], None]):
        norm, hooks = last, {}
        if next_layer is not None:
            is_known = isinstance(next_layer, LayerForward)
            norm = next_layer._modules[next_layer._rms_norm_layer.first] if is_known else None
            hooks = next_layer._forward_pre_hooks
        if isinstance(layer, LayerForward) and isinstance(norm, NormForward):
            norm._rms_norm_ahead = Ahead()
            layer._rms_norm_following = norm, hooks


def unpatch(model: torch.nn.Module) -> torch.nn.Module:
    """Undoes patch_transformers() and rms_norm.distributed.patch_transformers(). Returns the model."""
    modules: List[Any] = list(model.modules())
    for module in modules:
        if hasattr(vars(module).get("forward"), "_rms_norm_whole"):  # of a product whose matrix is split
            module.forward = module.forward._rms_norm_whole
        if _is_patched(module):
            module.__class__ = type(module)._rms_norm_original
            for name in [name for name in vars(module) if name.startswith("_rms_norm_")]:
                delattr(module, name)
    return model
