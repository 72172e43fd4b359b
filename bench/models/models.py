"""The models of end_to_end.py: published architectures with random weights, and what is timed of them.

Everything that is not a norm is the same code for all variants. Three things differ from a plain call of the model, for
all variants alike: attention masks are prepared outside of the model, as generate() prepares them for compiled models;
only the last position's logits are computed, as generate() does; and the positions of an image's tokens are known on
the host, so that a CUDA graph can be captured.
"""

import contextlib
import functools
import sys

import torch
import transformers

GRID = 22  # an image of 704 × 704 pixels: patches of 16 × 16, four of which become one of 22 × 22 tokens
CACHED, CACHE_LENGTH = 128, 256  # tokens before a decode step, and the length of its static cache


def rope(theta, **more):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, **more}}


def sizes(vocabulary, hidden, intermediate, layers, heads, kv_heads, eps=1e-6):
    return {
        **{"vocab_size": vocabulary, "hidden_size": hidden, "intermediate_size": intermediate},
        **{"num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads},
        **{"head_dim": hidden // heads, "rms_norm_eps": eps, "max_position_embeddings": 32768},
        **{"tie_word_embeddings": False, "pad_token_id": None, "bos_token_id": None, "eos_token_id": None},
    }


# From the models' config.json: the title, transformers' name of the architecture, and its configuration.
ARCHITECTURES = {
    "qwen3-8b": ("Qwen3-8B", "qwen3", {**sizes(151936, 4096, 12288, 36, 32, 8), **rope(1e6)}),
    "qwen2.5-7b": ("Qwen2.5-7B", "qwen2", {**sizes(152064, 3584, 18944, 28, 28, 4), **rope(1e6)}),
    "llama-3-8b": ("Llama-3-8B", "llama", {**sizes(128256, 4096, 14336, 32, 32, 8, 1e-5), **rope(5e5)}),
    "gemma-7b": (
        *("Gemma-7B", "gemma"),
        {**sizes(256000, 3072, 24576, 28, 16, 16), "head_dim": 256, "tie_word_embeddings": True, **rope(1e4)},
    ),
    "qwen3-vl-8b": (
        *("Qwen3-VL-8B", "qwen3_vl"),
        {
            "text_config": {
                **sizes(151936, 4096, 12288, 36, 32, 8),
                **rope(5e6, mrope_section=[24, 20, 20], mrope_interleaved=True),
            },
            "vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "out_hidden_size": 4096},
        },
    ),
}
TITLES = {name: title for name, (title, *_) in ARCHITECTURES.items()}
TINY = sizes(128, 64, 96, 3, 4, 2)
TINY_VISION = {
    **{"depth": 3, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "out_hidden_size": 64},
    **{"num_position_embeddings": 16, "deepstack_visual_indexes": [0, 1]},
}
# How the types of weights, activations and norms go together.
TYPES = {
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float32": "float32",
    "mixed": "float32 activations, float16 weights",
    "float8": "bfloat16, and products of the layers in float8",
}
MADE_IN = {"mixed": "float16", "float8": "bfloat16"}  # the weights' type, where TYPES names another


def configuration(name, tiny, layers):
    _, architecture, values = ARCHITECTURES[name]
    changed = {**(TINY if tiny else {}), **({"num_hidden_layers": layers} if layers else {})}
    if "text_config" not in values:
        values = {**values, **changed}
    elif tiny:
        text = {**values["text_config"], **changed, **rope(5e6, mrope_section=[4, 2, 2], mrope_interleaved=True)}
        values = {"text_config": text, "vision_config": TINY_VISION}
    else:
        values = {**values, "text_config": {**values["text_config"], **changed}}
    return transformers.AutoConfig.for_model(architecture, **values)


class HalfLinear(torch.nn.Linear):
    """A product in the weight's type for wider activations: the place of a quantized product, whose time differs."""

    def forward(self, x):
        return super().forward(x.to(self.weight.dtype)).to(x.dtype)


def quantized(x):
    """x in e4m3, with a scale of each row."""
    wide = x.flatten(0, -2).float()
    scale = (wide.abs().amax(dim=-1, keepdim=True) / 448).clamp(min=1 / (448 * 512))
    return (wide * scale.reciprocal()).clamp(-448, 448).to(torch.float8_e4m3fn), scale


class Float8Linear(torch.nn.Linear):
    """A product in e4m3 by cuBLASLt, with a scale of each row of both matrices. What several of them read is quantized
    once, by torch.compile, unless a norm has done it: see norms_that_quantize()."""

    compiled = staticmethod(torch.compile(quantized, dynamic=False))

    def quantize_weight(self):
        codes, self.scale = quantized(self.weight)
        self.scale, self.weight = self.scale.t(), torch.nn.Parameter(codes, requires_grad=False)

    def forward(self, x):
        if not hasattr(x, "codes"):
            x.codes = self.compiled(x)
        codes, scale = x.codes
        y = torch._scaled_mm(codes, self.weight.t(), scale, self.scale, out_dtype=x.dtype, use_fast_accum=True)
        return y.view(*x.shape[:-1], -1)


class WideEmbedding(torch.nn.Embedding):
    def forward(self, tokens):
        return super().forward(tokens).float()


def without_initialization():
    """Weights get their values in randomize()."""
    try:
        from transformers.initialization import no_init_weights
    except ImportError:  # another transformers, which initializes them first
        return contextlib.nullcontext()
    return no_init_weights()


def randomize(model, layers):
    """Numbers whose size stays the same from layer to layer, also without norms: the products that are added to the
    residual are as small as GPT-2 begins with, by the root of how many there are."""
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            is_norm = "norm" in name and name.endswith("weight")
            parameter.normal_(1.0 if is_norm else 0.0, 0.1 if is_norm else 0.02)
        elif name.endswith(("embed_tokens.weight", "pos_embed.weight")):
            parameter.normal_(0.0, 0.5)
        else:
            fan_in = parameter[0].numel()
            to_residual = name.endswith(("o_proj.weight", "down_proj.weight"))
            parameter.normal_(0.0, fan_in**-0.5 * ((2 * layers) ** -0.5 if to_residual else 1.0))


def given_mask(*_, attention_mask=None, **__):
    return attention_mask


def build(name, kind, device, tiny=False, layers=None, seed=1):
    """The model with random weights, its types as in TYPES[kind]."""
    config = configuration(name, tiny, layers)
    text = config.get_text_config()
    maker = transformers.AutoModelForCausalLM if text is config else transformers.AutoModelForImageTextToText
    with torch.device(device), without_initialization():
        dtype = getattr(torch, MADE_IN.get(kind, kind))
        model = maker.from_config(config, dtype=dtype, attn_implementation="sdpa").eval().requires_grad_(False)
    torch.manual_seed(seed)
    with torch.no_grad():
        randomize(model, text.num_hidden_layers)
    if kind == "mixed":
        for module in model.modules():
            if type(module) in (torch.nn.Linear, torch.nn.Embedding):
                module.__class__ = HalfLinear if type(module) is torch.nn.Linear else WideEmbedding
    if kind == "float8":
        for module in body_of(model).layers.modules():
            if type(module) is torch.nn.Linear:
                module.__class__ = Float8Linear
                module.quantize_weight()
    sys.modules[type(body_of(model)).__module__].create_causal_mask = given_mask
    return model


def body_of(model):
    """The layers of the language model, without its last product."""
    return getattr(model.model, "language_model", model.model)


# --- What is timed ----------------------------------------------------------------------------------------------


class Input:
    """One thing to time: step() computes logits or features; reset() comes before a few steps and is not timed."""

    def __init__(self, name, step, tokens, batch=1, reset=lambda: None, captures=""):
        self.name, self.step, self.tokens, self.batch, self.reset = name, step, tokens, batch, reset
        self.captures = captures  # why no CUDA graph can be captured


def last_logits(model, **arguments):
    body, head = body_of(model), model.lm_head
    return lambda: head(body(use_cache=True, **arguments).last_hidden_state[:, -1:])


def random_tokens(model, batch, count):
    vocabulary = model.config.get_text_config().vocab_size
    return torch.randint(vocabulary, (batch, count), device=model.device)


def prefill(model, count):
    positions = torch.arange(count, device=model.device)[None]
    step = last_logits(model, input_ids=random_tokens(model, 1, count), position_ids=positions)
    return Input(f"prefill_{count}", step, count)


def decode(model, batch):
    """A step for one more token of each sequence, after CACHED tokens."""
    cache = transformers.StaticCache(config=model.config, max_cache_len=CACHE_LENGTH)
    positions = torch.arange(CACHED, device=model.device)[None]
    body_of(model)(
        input_ids=random_tokens(model, batch, CACHED), position_ids=positions, past_key_values=cache, use_cache=True
    )

    def reset():
        for layer in cache.layers:
            layer.cumulative_length.fill_(CACHED)

    mask = (torch.arange(CACHE_LENGTH, device=model.device) <= CACHED).view(1, 1, 1, -1).expand(batch, -1, -1, -1)
    step = last_logits(
        model,
        input_ids=random_tokens(model, batch, 1),
        position_ids=torch.full((1, 1), CACHED, device=model.device),
        attention_mask=mask.contiguous(),
        past_key_values=cache,
    )
    return Input(f"decode_{batch}", step, 1, batch, reset)


def image(model, grid=GRID):
    """An image through the encoder."""
    visual, config = model.model.visual, model.config.vision_config
    merged = config.spatial_merge_size
    patches = (grid * merged) ** 2
    width = config.in_channels * config.temporal_patch_size * config.patch_size**2
    pixels = torch.randn(patches, width, device=model.device, dtype=next(visual.parameters()).dtype)
    shape = torch.tensor([[1, grid * merged, grid * merged]], device=model.device)
    reads = "the encoder reads the image's shape back from the GPU"
    return Input("image", lambda: visual(pixels, grid_thw=shape), grid * grid, captures=reads)


def add_at(places, hidden_states, visual_pos_masks, visual_embeds):
    """What Qwen3-VL's own does with a mask, which must be searched on the GPU and its count read back."""
    return hidden_states.index_add(1, places, visual_embeds[None].to(hidden_states.dtype))


def prefill_with_image(model, count, grid=GRID):
    """The language model's part of a prompt: text, an image's tokens, text."""
    body, features = body_of(model), image(model, grid).step()
    tokens, before = random_tokens(model, 1, count), (count - grid * grid) // 2
    embeds = body.embed_tokens(tokens)
    places = torch.arange(before, before + grid * grid, device=model.device)
    embeds[0, places] = features.pooler_output.to(embeds.dtype)
    across = torch.arange(grid, device=model.device)
    of_image = torch.stack([torch.zeros_like(places), across.repeat_interleave(grid), across.repeat(grid)]) + before
    after = torch.arange(count - before - grid * grid, device=model.device) + before + grid
    first = torch.arange(before, device=model.device)
    positions = torch.cat([first.expand(3, -1), of_image, after.expand(3, -1)], dim=1)[:, None]
    body._deepstack_process = functools.partial(add_at, places)
    step = last_logits(
        model,
        inputs_embeds=embeds,
        position_ids=positions,
        visual_pos_masks=torch.ones(1, 1, device=model.device, dtype=torch.bool),
        deepstack_visual_embeds=list(features.deepstack_features),
    )
    return Input(f"prefill_{count}", step, count)


TEXT_INPUTS = ["decode_1", "decode_32", "prefill_16", "prefill_512", "prefill_2048"]
IMAGE_INPUTS = ["image", "prefill_511", "decode_1"]
TINY_TEXT_INPUTS, TINY_IMAGE_INPUTS = ["decode_2", "prefill_16"], ["image", "prefill_16"]


def input_names(name, tiny):
    if tiny:
        return TINY_IMAGE_INPUTS if "vision_config" in ARCHITECTURES[name][2] else TINY_TEXT_INPUTS
    return IMAGE_INPUTS if "vision_config" in ARCHITECTURES[name][2] else TEXT_INPUTS


def make_input(model, name, tiny=False):
    kind, _, count = name.partition("_")
    grid = 2 if tiny else GRID
    if kind == "image":
        return image(model, grid)
    if kind == "decode":
        return decode(model, int(count))
    has_image = hasattr(model.model, "visual")
    return prefill_with_image(model, int(count), grid) if has_image else prefill(model, int(count))


# --- The variants -----------------------------------------------------------------------------------------------


def norms_of(model):
    return [module for module in model.modules() if type(module).__name__.endswith("RMSNorm")]


def formula_of(norm):
    """(eps, what is added to the weight) of Llama's norms, and of Gemma's."""
    return (norm.eps, 1.0) if type(norm).__name__.startswith("Gemma") else (norm.variance_epsilon, 0.0)


@contextlib.contextmanager
def forwards_of_norms(model, function):
    """Every RMSNorm computes function(norm, x)."""
    norms = norms_of(model)
    for norm in norms:
        norm.forward = functools.partial(function, norm)
    try:
        yield
    finally:
        for norm in norms:
            del norm.forward


def without_norms(model):
    """Every RMSNorm hands on what it gets; the additions to the residual stay."""
    return forwards_of_norms(model, lambda norm, x: x)


def exact_norms(model):
    """Every RMSNorm is computed in float64 and rounded once, to the type that the stock one returns."""

    def exact(norm, x):
        wide, (eps, offset) = x.double(), formula_of(norm)
        y = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps) * (offset + norm.weight.double())
        return y.to(x.dtype if offset else torch.promote_types(x.dtype, norm.weight.dtype))

    return forwards_of_norms(model, exact)


@contextlib.contextmanager
def patched(model, **options):
    import rms_norm.torch as ours

    ours.patch_transformers(model, **options)
    in_float8 = any(isinstance(module, Float8Linear) for module in model.modules())
    try:
        with norms_that_quantize(model, **options) if in_float8 else contextlib.nullcontext():
            yield
    finally:
        ours.unpatch(model)


@contextlib.contextmanager
def norms_that_quantize(model, **options):
    """The norms before float8 products end in float8: what they return is never read, and has the codes beside it."""
    from rms_norm import _transformers, rms_norm_quantized

    first = {
        id(norm) for layer in body_of(model).layers for norm in (layer.input_layernorm, layer.post_attention_layernorm)
    }
    stock = _transformers._computed

    def computed(norm, x, residual=None, in_place=False):
        if id(norm) not in first:
            return stock(norm, x, residual, in_place)
        codes, scale, *total = rms_norm_quantized(x, norm.weight, formula_of(norm)[0], residual=residual, **options)
        y = x.view_as(x)
        y.codes = codes.flatten(0, -2), scale.flatten(0, -2)
        return (y, *total) if total else y

    _transformers._computed = computed
    try:
        yield
    finally:
        _transformers._computed = stock


def liger_norms(model):
    """Every RMSNorm is Liger's, as its patch makes them: dx over dy, and the rounding of the model's own norms."""
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    def norm(module, x):
        eps, offset = formula_of(module)
        return LigerRMSNormFunction.apply(x, module.weight, eps, offset, "gemma" if offset else "llama", True)

    return forwards_of_norms(model, norm)


VARIANTS = {
    "stock": contextlib.nullcontext,
    "patched": patched,
    "patched_pdl": functools.partial(patched, dependent_launch=True),
    "without_norms": without_norms,
}
