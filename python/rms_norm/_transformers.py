"""The norms of Hugging Face models, replaced in place: each module gets a class derived from its own."""

import functools
import inspect
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch.compiler import is_dynamo_compiling
from torch.nn.modules import module as modules_of_torch

from . import _operators
from ._options import Options

# By the name of a module's class: where its eps is, and the options of its norm.
Norm = Tuple[str, Dict[str, Any]]
LLAMA: Norm = ("variance_epsilon", {"rounding": "llama"})
GEMMA: Norm = ("eps", {"weight_offset": 1.0})
NORMS = {
    "LlamaRMSNorm": LLAMA,
    "MistralRMSNorm": LLAMA,
    "Qwen2RMSNorm": LLAMA,
    "Qwen3RMSNorm": LLAMA,
    "Qwen3VLTextRMSNorm": LLAMA,
    "Gemma2RMSNorm": GEMMA,
    "Gemma3RMSNorm": GEMMA,
}
# Layers in which a residual is added right before a norm: that norm.
LAYERS = {
    "LlamaDecoderLayer": "post_attention_layernorm",
    "MistralDecoderLayer": "post_attention_layernorm",
    "Qwen2DecoderLayer": "post_attention_layernorm",
    "Qwen3DecoderLayer": "post_attention_layernorm",
    "Qwen3VLTextDecoderLayer": "post_attention_layernorm",
    "Gemma2DecoderLayer": "pre_feedforward_layernorm",
    "Gemma3DecoderLayer": "pre_feedforward_layernorm",
}


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


def _is_ours(norm, weight, x, residual=None):
    """Whether the kernels take these tensors and give the type that the module gives: a wider weight widens its result,
    not ours."""
    dtype = x.dtype
    types = _operators.TYPES
    if dtype not in types or weight.dtype not in types or x.shape[-1:] != weight.shape or x.stride(-1) != 1:
        return False
    if residual is not None and (residual.dtype != dtype or residual.shape != x.shape or residual.stride(-1) != 1):
        return False
    if weight.dtype == dtype or norm._rms_norm_options.weight_offset:
        return True
    return torch.promote_types(weight.dtype, dtype) == dtype


def _direct_weight(norm, x, residual=None):
    """The weight, where the kernel may be called at once with it, without the time that an operator takes; else None."""
    if is_dynamo_compiling():
        return None
    weight = norm._parameters.get("weight")
    if weight is None or not _operators.is_direct(x, weight, residual):
        return None
    dtype = x.dtype
    if weight.dtype is dtype and (residual is None or residual.dtype is dtype):
        return weight if dtype in _operators.TYPES else None
    return weight if _is_ours(norm, weight, x, residual) else None


def _add_and_norm(norm, x, residual, in_place=False):
    """The norm of x + residual, and the sum, which in_place lets take the place of the residual."""
    weight = _direct_weight(norm, x, residual)
    try:
        if weight is not None:
            return _operators.direct_fused_add(x, residual, weight, norm._rms_norm_options, in_place)
        if _is_ours(norm, norm.weight, x, residual):
            return _operators.fused_add(x, residual, norm.weight, norm._rms_norm_options)
    except REFUSALS:
        pass
    total = residual + x
    return norm(total), total


class Patched(torch.nn.Module):
    """A module whose class is derived from that of its model, by which it is pickled and copied."""

    _rms_norm_original: type

    def __reduce_ex__(self, protocol):
        reduced: Any = super().__reduce_ex__(max(protocol, 2))
        _, (kind, *arguments), *state = reduced
        return _new, (kind._rms_norm_original, *arguments), *state


class NormForward(Patched):
    weight: torch.nn.Parameter
    _rms_norm_options: Options
    _rms_norm_ahead: Optional[Ahead]

    def forward(self, hidden_states):
        if self._rms_norm_ahead is not None:
            normed = self._rms_norm_ahead.take(hidden_states)
            if normed is not None:
                return normed
        weight = _direct_weight(self, hidden_states)
        try:
            if weight is not None:
                return _operators.direct_norm(hidden_states, weight, self._rms_norm_options)
            if _is_ours(self, self.weight, hidden_states):
                return _operators.norm(hidden_states, self.weight, self._rms_norm_options)
        except REFUSALS:
            pass
        return super().forward(hidden_states)


# The norm after a layer, and the hooks that see the sum before it; in a tuple, since the norm is no submodule.
Following = Tuple[Optional[NormForward], Dict[int, Any]]
NOTHING_FOLLOWS: Following = None, {}


class LayerForward(Patched):
    """What a decoder layer of transformers 5 computes. Its last addition is done together with the norm that follows
    it, the next layer's first one or the model's last, which finds its result in an Ahead."""

    _rms_norm_second: str
    _rms_norm_following: Following

    def forward(self, hidden_states, *arguments, **kwargs):
        if arguments:
            kwargs.update(zip(_names(type(self)._rms_norm_original), arguments))
        modules: Dict[str, Any] = self._modules  # faster than attributes of a module
        residual = hidden_states
        hidden_states = modules["input_layernorm"](hidden_states)
        hidden_states, _ = modules["self_attn"](hidden_states=hidden_states, **kwargs)
        second = self._rms_norm_second
        has_post_norms = second == "pre_feedforward_layernorm"
        if has_post_norms:
            hidden_states = modules["post_attention_layernorm"](hidden_states)
        norm = modules[second]
        in_place = _is_plain(norm)  # then nobody else has the sum
        if in_place:
            hidden_states, residual = _add_and_norm(norm, hidden_states, residual)
        else:
            residual = residual + hidden_states
            hidden_states = norm(residual)
        hidden_states = modules["mlp"](hidden_states)
        if has_post_norms:
            hidden_states = modules["post_feedforward_layernorm"](hidden_states)
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
        weight = following._parameters.get("weight")
        return following if weight is not None and weight.device == x.device else None


@functools.cache
def _names(kind):
    """Of the arguments of a layer after the hidden states."""
    parameters = list(inspect.signature(kind.forward).parameters.values())[2:]
    return [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]


def _derive(kind: type) -> type:
    base = LayerForward if kind.__name__ in LAYERS else NormForward
    return type(kind.__name__, (base, kind), {"_rms_norm_original": kind, "__module__": kind.__module__})


_derived: Callable[[type], Any] = functools.cache(_derive)


def _new(original):
    """A patched module without its state, for pickle and copy."""
    kind = _derived(original)
    return kind.__new__(kind)


def _is_patched(module):
    return hasattr(type(module), "_rms_norm_original")


def _is_one_of(module, names):
    kind = type(module)
    return kind.__name__ in names and kind.__module__.startswith("transformers.models.")


def patch_transformers(model: torch.nn.Module, *, dependent_launch: bool = False) -> torch.nn.Module:
    """Has the RMSNorm modules of a Hugging Face model computed by this package, in place.

    Known are those of Llama, Mistral, Qwen2, Qwen3 (with the norms of queries and keys), Qwen3-VL, Gemma 2 and 3. With
    transformers 5, the residual additions before norms are fused into them; across layers, where no gradients are
    needed. Weights stay where they are, and hidden states, outputs and hooks are those of the model: where hooks are
    registered, nothing is fused that they would see. A norm keeps its own code for what the kernels do not take, and if
    its weight has a wider type than its input, since its result is wider too; and a norm whose `forward` was replaced,
    as accelerate does to move weights, before or after the patch, is called as it is. A patched model can be copied and
    pickled; to load it, the package must be installed.

    Args:
        model: the model, or a part of it.
        dependent_launch: as in rms_norm(): each norm starts while the kernel before it still runs, and reads its weight
            at once. A forward pass writes no weight; what writes one on the same stream, such as an optimizer's step,
            must not be the last kernel before a norm.

    Returns:
        The model, whose norms keep the options of the call that patched them first.

    Raises:
        ValueError: there is no module that is known.
    """
    modules: List[Any] = [module for module in model.modules() if not _is_patched(module)]
    norms = [module for module in modules if _is_one_of(module, NORMS)]
    if not norms and not any(_is_patched(module) for module in model.modules()):
        raise ValueError(f"the model has no module of {', '.join(NORMS)} of transformers")
    for norm in norms:
        eps_name, options = NORMS[type(norm).__name__]
        norm._rms_norm_options = Options(getattr(norm, eps_name), dependent_launch=dependent_launch, **options)
        norm._rms_norm_ahead = None
        norm.__class__ = _derived(type(norm))
    if _transformers_major() >= 5:
        for module in modules:
            if _is_one_of(module, LAYERS):
                module._rms_norm_second = LAYERS[type(module).__name__]
                module._rms_norm_following = NOTHING_FOLLOWS
                module.__class__ = _derived(type(module))
        for module in modules:
            _chain(module)
    return model


def _chain(module):
    """Has the layers of a model know the norms that follow them."""
    found, last = getattr(module, "layers", None), getattr(module, "norm", None)
    layers: List[Any] = list(found) if isinstance(found, torch.nn.ModuleList) else []
    if not layers:
        return
    if not all(isinstance(layer, LayerForward) for layer in layers) or not isinstance(last, NormForward):
        return
    norms: List[Any] = [layer._modules["input_layernorm"] for layer in layers[1:]] + [last]
    for layer, norm, hooks in zip(layers, norms, [*(layer._forward_pre_hooks for layer in layers[1:]), {}]):
        if isinstance(norm, NormForward):
            norm._rms_norm_ahead = Ahead()
            layer._rms_norm_following = norm, hooks


def _transformers_major():
    try:
        import transformers
    except ImportError:
        return 0
    return int(transformers.__version__.partition(".")[0])


def unpatch(model: torch.nn.Module) -> torch.nn.Module:
    """Undoes patch_transformers(). Returns the model."""
    modules: List[Any] = list(model.modules())
    for module in modules:
        if _is_patched(module):
            module.__class__ = type(module)._rms_norm_original
            for name in [name for name in vars(module) if name.startswith("_rms_norm_")]:
                delattr(module, name)
    return model
