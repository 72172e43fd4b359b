"""Tiny models with random weights, before and after patch_transformers(). It is a script, too, so that another version
of transformers can be tried: PYTHONPATH=… python3 tests/python/families.py llama gemma2, or all of them without names.
"""

import sys

import torch

SIZES = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
SIZES.update(head_dim=16, vocab_size=128, pad_token_id=0, bos_token_id=1, eos_token_id=2)
EXPERTS = dict(SIZES, num_experts=4, num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=48)
DEEPSEEK = dict(EXPERTS, n_routed_experts=4, n_shared_experts=1, n_group=1, topk_group=1, first_k_dense_replace=1)
DEEPSEEK.update(head_dim=8, q_lora_rank=24, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=16)
IMAGES = dict(model_type="pixtral", hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2)
IMAGES.update(head_dim=16, image_size=32, patch_size=8, num_channels=3)
MISTRAL3 = dict(text_config=dict(SIZES, model_type="mistral"), vision_config=IMAGES, image_token_index=3)
T5 = dict(d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, vocab_size=128, decoder_start_token_id=0)

# The configuration, and which classes are patched: the norms, and with transformers 5 the layers whose additions are
# fused with them.
FAMILIES = {
    "apertus": (SIZES, "ApertusRMSNorm", "ApertusDecoderLayer"),
    "arcee": (SIZES, "ArceeRMSNorm", "ArceeDecoderLayer"),
    "deepseek_v3": (DEEPSEEK, "DeepseekV3RMSNorm", "DeepseekV3DecoderLayer"),
    "ernie4_5": (SIZES, "Ernie4_5RMSNorm", "Ernie4_5DecoderLayer"),
    "exaone4": (SIZES, "Exaone4RMSNorm", ""),
    "gemma": (SIZES, "GemmaRMSNorm", "GemmaDecoderLayer"),
    "gemma2": (SIZES, "Gemma2RMSNorm", "Gemma2DecoderLayer"),
    "gemma3_text": (SIZES, "Gemma3RMSNorm", "Gemma3DecoderLayer"),
    "glm": (SIZES, "GlmRMSNorm", "GlmDecoderLayer"),
    "glm4": (SIZES, "Glm4RMSNorm", "Glm4DecoderLayer"),
    "gpt_oss": (EXPERTS, "GptOssRMSNorm", ""),
    "granite": (SIZES, "GraniteRMSNorm", ""),
    "helium": (SIZES, "HeliumRMSNorm", "HeliumDecoderLayer"),
    "llama": (SIZES, "LlamaRMSNorm", "LlamaDecoderLayer"),
    "mistral": (SIZES, "MistralRMSNorm", "MistralDecoderLayer"),
    "mistral3": (
        MISTRAL3,
        "Mistral3RMSNorm MistralRMSNorm PixtralRMSNorm",
        "MistralDecoderLayer PixtralAttentionLayer",
    ),
    "mixtral": (EXPERTS, "MixtralRMSNorm", "MixtralDecoderLayer"),
    "olmo2": (SIZES, "Olmo2RMSNorm", ""),
    "olmo3": (SIZES, "Olmo3RMSNorm", ""),
    "olmoe": (EXPERTS, "OlmoeRMSNorm", "OlmoeDecoderLayer"),
    "phi3": (SIZES, "Phi3RMSNorm", ""),
    "qwen2": (SIZES, "Qwen2RMSNorm", "Qwen2DecoderLayer"),
    "qwen2_moe": (dict(EXPERTS, shared_expert_intermediate_size=48), "Qwen2MoeRMSNorm", "Qwen2MoeDecoderLayer"),
    "qwen3": (SIZES, "Qwen3RMSNorm", "Qwen3DecoderLayer"),
    "qwen3_moe": (EXPERTS, "Qwen3MoeRMSNorm", "Qwen3MoeDecoderLayer"),
    "seed_oss": (SIZES, "SeedOssRMSNorm", "SeedOssDecoderLayer"),
    "smollm3": (SIZES, "SmolLM3RMSNorm", "SmolLM3DecoderLayer"),
    "t5": (T5, "T5LayerNorm", ""),
}
KINDS = {"mistral3": "AutoModelForImageTextToText", "t5": "AutoModelForSeq2SeqLM"}


def made(name, dtype=torch.float32):
    """A model, and what its forward is given."""
    import rms_norm
    import transformers

    torch.manual_seed(1)
    with torch.device("cuda" if rms_norm.BACKEND == "cuda" else "cpu"):
        config = transformers.AutoConfig.for_model(name, **FAMILIES[name][0])
        model = getattr(transformers, KINDS.get(name, "AutoModelForCausalLM")).from_config(config).to(dtype).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 1:  # the weights of norms, which begin all alike
                    parameter.add_(0.1 * torch.randn_like(parameter))
        tokens = torch.randint(4, 128, (2, 7))
        given = dict(input_ids=tokens, labels=tokens)
        if name == "mistral3":  # an image of 4 × 4 patches, 2 × 2 of which are a token
            given["input_ids"] = torch.cat([torch.full((2, 4), 3), tokens], 1)
            given.update(labels=given["input_ids"], pixel_values=torch.randn(2, 3, 32, 32, dtype=dtype))
            given["image_sizes"] = torch.tensor([[32, 32], [32, 32]])
    return model, given


def check(name):
    """Logits and gradients with the model's own norms and with patched ones. Returns how far they are apart, as a part
    of the largest logit, and of the norm of each gradient."""
    import rms_norm.torch as ours
    import transformers
    from rms_norm import _arrays

    model, given = made(name)
    norms = [module for module in model.modules() if type(module).__name__ in FAMILIES[name][1].split()]
    calls, kernels, plain_kernel = [], [], _arrays.kernel
    hooks = [norm.register_forward_hook(lambda module, *rest: calls.append(module)) for norm in norms]

    def counted(*arguments):
        kernels.append(arguments)
        return plain_kernel(*arguments)

    def passed():
        with torch.no_grad():
            logits = model(**given).logits
        model.zero_grad()
        model(**given).loss.backward()
        return logits, [None if one.grad is None else one.grad.clone() for one in model.parameters()]

    with torch.no_grad():
        model(**given)
    for hook in hooks:
        hook.remove()
    logits, gradients = passed()
    report = ours.patch_transformers(model)
    layers = FAMILIES[name][2] if int(transformers.__version__.partition(".")[0]) >= 5 else ""
    expected, optional = {*FAMILIES[name][1].split(), *layers.split()}, {"PixtralAttentionLayer"}  # not that of 5.0
    assert expected - optional <= {what.partition(":")[0] for what in report.patched.values()} <= expected
    left = {what for what in report.left.values() if "only its norms are patched" not in what}
    assert left <= {"LayerNorm: its forward calls layer_norm()"}, left
    _arrays.kernel = counted
    try:
        with torch.no_grad():
            model(**given)
    finally:
        _arrays.kernel = plain_kernel
    assert len(kernels) == len(calls) >= len(norms) > 0, f"{len(kernels)} kernels for {len(calls)} norms"
    assert any(one[1] is not None for one in kernels) == bool(layers)  # one of them adds a residual
    new_logits, new_gradients = passed()
    far = ((new_logits - logits).abs().max() / logits.abs().max()).item()
    scale = max(one.norm() for one in gradients if one is not None)
    apart = [(one is None) != (new is None) for one, new in zip(gradients, new_gradients)]
    far_gradients = max(
        ((new - one).norm() / (one.norm() + 1e-3 * scale)).item()
        for one, new in zip(gradients, new_gradients)
        if one is not None
    )
    assert far < 1e-5 and far_gradients < 1e-4 and not any(apart), (far, far_gradients)
    ours.unpatch(model)
    with torch.no_grad():
        assert torch.equal(model(**given).logits, logits)
        model, given = made(name, torch.bfloat16)
        logits = model(**given).logits
        ours.patch_transformers(model)
        torch.testing.assert_close(model(**given).logits, logits, rtol=0.02, atol=0.02)
    return far, far_gradients


if __name__ == "__main__":
    import transformers

    print("transformers", transformers.__version__)
    for one in sys.argv[1:] or FAMILIES:
        print(one, *(f"{number:.1e}" for number in check(one)), flush=True)
