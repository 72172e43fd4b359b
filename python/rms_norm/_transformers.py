"""The norms of Hugging Face models, replaced in place: each module gets a class derived from its own."""

import torch
from torch.compiler import is_dynamo_compiling

from . import _arrays, _options
from . import torch as ours  # it imports this module, and has its functions by the time that a model is patched

# By the name of a module's class: where its eps is, and the options of its norm.
LLAMA = ("variance_epsilon", {"rounding": "llama"})
GEMMA = ("eps", {"weight_offset": 1.0})
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


class Ahead:
    """A norm that was computed with the addition before it, until the module whose norm it is asks for it."""

    def __init__(self):
        self.total = self.normed = None

    def put(self, total, normed):
        self.total, self.normed = total, normed

    def take(self, total):
        """The norm of this very tensor, or None."""
        is_it, normed = self.total is total, self.normed
        self.total = self.normed = None
        return normed if is_it and total is not None else None


def _is_ours(norm, weight, *tensors):
    """Whether the kernels give the type that the module gives: a wider weight widens its result, not ours."""
    dtype = tensors[0].dtype
    if tensors[-1].dtype != dtype:
        return False
    if weight.dtype == dtype or norm._rms_norm_options.get("weight_offset"):
        return True
    return torch.promote_types(weight.dtype, dtype) == dtype


def _direct_weight(norm, x, residual=None):
    """The weight, where the kernel may be called at once with it, without the time that an operator takes; else None."""
    if is_dynamo_compiling():
        return None
    weight = norm._parameters.get("weight")
    if weight is None or not ours._is_direct(x, weight, residual):
        return None
    if weight.dtype is x.dtype and (residual is None or residual.dtype is x.dtype):
        return weight
    return weight if _is_ours(norm, weight, x, x if residual is None else residual) else None


def _add_and_norm(norm, x, residual, in_place=False):
    """The norm of x + residual, and the sum, which in_place lets take the place of the residual."""
    weight = _direct_weight(norm, x, residual)
    if weight is not None:
        y, total = torch.empty_like(x), residual if in_place else torch.empty_like(residual)
        _arrays.kernel(x, residual, total, weight, y, *norm._rms_norm_direct)
        return y, total
    if _is_ours(norm, norm.weight, x, residual):
        return ours.fused_add_rms_norm(x, residual, norm.weight, norm._rms_norm_eps, **norm._rms_norm_options)
    total = residual + x
    return norm(total), total


class NormForward:
    def forward(self, hidden_states):
        if self._rms_norm_ahead is not None:
            normed = self._rms_norm_ahead.take(hidden_states)
            if normed is not None:
                return normed
        weight = _direct_weight(self, hidden_states)
        if weight is not None:
            y = torch.empty_like(hidden_states)
            _arrays.kernel(hidden_states, None, None, weight, y, *self._rms_norm_direct)
            return y
        if _is_ours(self, self.weight, hidden_states):
            return ours.rms_norm(hidden_states, self.weight, self._rms_norm_eps, **self._rms_norm_options)
        return super().forward(hidden_states)


class LayerForward:
    """What a decoder layer of transformers 5 computes. Its last addition is done together with the norm that follows
    it, the next layer's first one or the model's last, which finds its result in an Ahead."""

    def forward(self, hidden_states, **kwargs):
        modules, residual = self._modules, hidden_states  # faster than attributes of a module
        hidden_states = modules["input_layernorm"](hidden_states)
        hidden_states, _ = modules["self_attn"](hidden_states=hidden_states, **kwargs)
        second = self._rms_norm_second
        has_post_norms = second == "pre_feedforward_layernorm"
        if has_post_norms:
            hidden_states = modules["post_attention_layernorm"](hidden_states)
        norm = modules[second]
        has_hooks = bool(norm._forward_hooks or norm._forward_pre_hooks)
        if has_hooks:  # they are called with the sum
            residual = residual + hidden_states
            hidden_states = norm(residual)
        else:
            hidden_states, residual = _add_and_norm(norm, hidden_states, residual)
        hidden_states = modules["mlp"](hidden_states)
        if has_post_norms:
            hidden_states = modules["post_feedforward_layernorm"](hidden_states)
        following = self._rms_norm_following[0]
        if following is None or torch.is_grad_enabled():  # in training, a layer may be computed a second time
            return residual + hidden_states
        in_place = not has_hooks  # then nobody else has this sum
        normed, total = _add_and_norm(following, hidden_states, residual, in_place)
        following._rms_norm_ahead.put(total, normed)
        return total


_derived = {}


def _derive(module, base):
    kind = type(module)
    if kind not in _derived:
        _derived[kind] = type(kind.__name__, (base, kind), {"_rms_norm_original": kind, "__module__": kind.__module__})
    module.__class__ = _derived[kind]


def _is_patched(module):
    return hasattr(type(module), "_rms_norm_original")


def patch_transformers(model: torch.nn.Module, *, dependent_launch: bool = False) -> torch.nn.Module:
    """Has the RMSNorm modules of a Hugging Face model computed by this package, in place.

    Known are those of Llama, Mistral, Qwen2, Qwen3 (with the norms of queries and keys), Qwen3-VL, Gemma 2 and 3. With
    transformers 5, the residual additions before norms are fused into them; across layers, where no gradients are
    needed. Weights stay where they are, and hidden states, outputs and hooks are those of the model. A norm whose
    weight has a wider type than its input keeps its own code, since its result is wider too.

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
    modules = [module for module in model.modules() if not _is_patched(module)]
    norms = [module for module in modules if type(module).__name__ in NORMS]
    if not norms and not any(_is_patched(module) for module in model.modules()):
        raise ValueError(f"the model has no module of {', '.join(NORMS)}")
    for norm in norms:
        eps_name, options = NORMS[type(norm).__name__]
        norm._rms_norm_eps, norm._rms_norm_ahead = getattr(norm, eps_name), None
        norm._rms_norm_options = {**options, "dependent_launch": dependent_launch}
        llama, cache = _options(options.get("rounding", "gemma"), "tuned")
        offset = options.get("weight_offset", 0.0)
        norm._rms_norm_direct = (norm._rms_norm_eps, offset, llama, dependent_launch, cache)
        _derive(norm, NormForward)
    if _transformers_major() >= 5:
        for module in modules:
            if type(module).__name__ in LAYERS:
                module._rms_norm_second = LAYERS[type(module).__name__]
                module._rms_norm_following = (None,)  # in a tuple, since it is no submodule
                _derive(module, LayerForward)
        for module in modules:
            _chain(module)
    return model


def _chain(module):
    """Has the layers of a model know the norms that follow them."""
    layers, last = getattr(module, "layers", None), getattr(module, "norm", None)
    if not isinstance(layers, torch.nn.ModuleList) or not layers:
        return
    if not all(isinstance(layer, LayerForward) for layer in layers) or not isinstance(last, NormForward):
        return
    for layer, following in zip(layers, [*(layer.input_layernorm for layer in layers[1:]), last]):
        following._rms_norm_ahead = Ahead()
        layer._rms_norm_following = (following,)


def _transformers_major():
    try:
        import transformers
    except ImportError:
        return 0
    return int(transformers.__version__.partition(".")[0])


def unpatch(model: torch.nn.Module) -> torch.nn.Module:
    """Undoes patch_transformers(). Returns the model."""
    for module in model.modules():
        if _is_patched(module):
            module.__class__ = type(module)._rms_norm_original
            for name in [name for name in vars(module) if name.startswith("_rms_norm_")]:
                delattr(module, name)
    return model
