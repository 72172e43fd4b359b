"""Which modules patch_transformers() knows: by what they compute, whatever they are called."""

import copy
import importlib
import os
import pathlib
import sys
import types

import pytest
from conftest import run
from python_package import BACKEND, SITE, install, pip_install

torch = pytest.importorskip("torch")

install()
import rms_norm
import rms_norm.torch as ours
from rms_norm import _recognize, layers

functional = torch.nn.functional
LLAMA, GEMMA, OLMO2 = {"rounding": "llama"}, {"weight_offset": 1.0}, {}


@pytest.fixture(autouse=True)
def start():
    torch.set_default_device("cuda" if BACKEND == "cuda" else "cpu")
    torch.manual_seed(1)
    yield
    torch.set_default_device(None)


class Norm(torch.nn.Module):
    def __init__(self, cols=64, eps=1e-6):
        super().__init__()
        self.weight, self.variance_epsilon = torch.nn.Parameter(torch.randn(cols)), eps

    def forward(self, hidden_states):
        wide = hidden_states.to(torch.float32)
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * normed.to(hidden_states.dtype)


# --- Norms that are known ---------------------------------------------------------------------------------------


class OtherNames(torch.nn.Module):
    """As code that a model brings along has it: names and steps of its own."""

    def __init__(self):
        super().__init__()
        self.scale, self.layer_norm_eps = torch.nn.Parameter(torch.randn(64)), 1e-3

    def _norm(self, x):
        return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + self.layer_norm_eps)

    def forward(self, x):
        """Of any shape."""
        return self._norm(x.float()).type_as(x) * self.scale


class Powers(Norm):
    def forward(self, x):
        return (torch.pow(x.float().square().mean([-1], True) + 1e-5, -0.5) * x.float() * self.weight.float()).to(x)


class OfOne(Norm):
    def forward(self, x):
        x, kind = x.float(), x.dtype
        x = x.mul(x.pow(2).mean(-1, keepdim=True).add(self.variance_epsilon).rsqrt())
        return ((1 + self.weight.float()) * x).to(dtype=kind)


class Flagged(Norm):
    def __init__(self, with_scale):
        super().__init__()
        self.with_scale = with_scale
        if not with_scale:
            del self.weight

    def forward(self, x):
        normed = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return (normed * self.weight if self.with_scale else normed).type_as(x)


class OfT5(Norm):
    def forward(self, hidden_states):
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        if self.weight.dtype in [torch.float16, torch.bfloat16]:
            hidden_states = hidden_states.to(self.weight.dtype)
        return self.weight * hidden_states


class Subclass(Norm):
    """Of another name, and with more in it."""

    layers_before = 3


def of_torch(**options):
    norm = torch.nn.RMSNorm(64, **options)
    torch.nn.init.normal_(norm.weight)
    return norm


KNOWN = {
    "llama": (Norm, LLAMA),
    "subclass": (Subclass, LLAMA),
    "other names": (OtherNames, LLAMA),
    "powers": (Powers, OLMO2),
    "one and weight": (OfOne, GEMMA),
    "with a scale": (lambda: Flagged(True), OLMO2),
    "without a scale": (lambda: Flagged(False), {}),
    "T5": (OfT5, LLAMA),
    "of torch": (of_torch, OLMO2),
    "of torch, with an eps": (lambda: of_torch(eps=0.1), OLMO2),
}


def kernel_calls(call):
    """What it returns, and how often it calls a kernel."""
    counted, kernel = [], rms_norm._arrays.kernel
    rms_norm._arrays.kernel = lambda *given: (counted.append(given), kernel(*given))[1]
    try:
        with torch.no_grad():
            return call(), len(counted)
    finally:
        rms_norm._arrays.kernel = kernel


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_known(name, dtype):
    make, options = KNOWN[name]
    norm = make().to(dtype)
    assert _recognize.norm_of(norm).options == options
    x = torch.randn(2, 3, 64).to(dtype)
    with torch.no_grad():
        expected = norm(x)
    report = ours.patch_transformers(norm)
    got, calls = kernel_calls(lambda: norm(x))
    assert calls == 1 and list(report.patched) == [""] and not report.left
    torch.testing.assert_close(got, expected, rtol=2 * torch.finfo(dtype).eps + 1e-5, atol=1e-5)


def test_types_are_those_for_which_the_result_has_the_type_of_the_input():
    single, half, brain = _recognize.TYPES
    same = {(one, one) for one in _recognize.TYPES}
    narrow = {(single, half), (single, brain)}
    assert _recognize.norm_of(Norm()).types == same | narrow  # a wider weight widens Llama's result
    assert _recognize.norm_of(OfOne()).types == same | narrow | {(half, single), (brain, single)}
    assert _recognize.norm_of(OfT5()).types == same
    for make in (Norm, OfOne, OfT5):  # and the others are computed by the module itself
        for x_type in _recognize.TYPES:
            norm = make()
            x = torch.randn(3, 64).to(x_type)
            with torch.no_grad():
                expected = norm(x)
                ours.patch_transformers(norm)
                got = norm(x)
            assert got.dtype == expected.dtype
            torch.testing.assert_close(got, expected, rtol=0.02, atol=0.02)


# --- Norms that only look like them -----------------------------------------------------------------------------


class Bias(Norm):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(64))

    def forward(self, x):
        return super().forward(x) + self.bias


class BiasInABuffer(Norm):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.randn(64))

    def forward(self, x):
        return super().forward(x) + self.shift


class Groups(Norm):
    group_size = 32

    def forward(self, x):
        wide = x.float().view(*x.shape[:-1], -1, self.group_size)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.view(*x.shape).to(x.dtype)


class Gated(Norm):
    def forward(self, x, gate=None):
        return super().forward(x if gate is None else x * functional.silu(gate))


class CallsAround(Norm):
    def __call__(self, x):
        return 2 * super().__call__(x)


class Doubled(Norm):
    def forward(self, x):
        return 2 * super().forward(x)


class OutsideTheRoot(Norm):
    def forward(self, x):
        wide = x.float()
        normed = wide * (torch.rsqrt(wide.pow(2).mean(-1, keepdim=True)) + self.variance_epsilon)
        return self.weight * normed.to(x.dtype)


class MeanOfAll(Norm):
    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean() + self.variance_epsilon)).to(x.dtype)


class InItsOwnType(Norm):
    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


class WithoutGradients(Norm):
    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


class WithoutGradientsWithin(Norm):
    def forward(self, x):
        with torch.no_grad():
            scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * (x.float() * scale).to(x.dtype)


class Detached(Norm):
    def forward(self, x):
        return super().forward(x.detach())


class Noisy(Norm):
    def forward(self, x):
        return super().forward(functional.dropout(x, 0.1) if self.training else x)


class Counting(Norm):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


class CountingInABuffer(Norm):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


class InPlace(Norm):
    def forward(self, x):
        x.mul_(2.0)
        return super().forward(x)


class Clamped(Norm):
    def forward(self, x):
        return super().forward(x).clamp(-1, 1)


class LongRows(Norm):
    def forward(self, x):
        return super().forward(x) if x.shape[0] < 1000 else x


class HalfOnly(Norm):
    def forward(self, x):
        return super().forward(x) if x.dtype == torch.bfloat16 else super().forward(x) + 1


class EpsOfAConfiguration(Norm):
    def __init__(self):
        super().__init__()
        self.configuration = types.SimpleNamespace(eps=1e-6)
        del self.variance_epsilon

    def forward(self, x):
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.configuration.eps)
        return self.weight * normed.to(x.dtype)


class Guarded(Norm):
    """`except Exception` must not hide that its first way is not known."""

    def forward(self, x):
        try:
            return super().forward(x).clamp(-1, 1)
        except Exception:
            return super().forward(x)


class ATuple(Norm):
    def forward(self, x):
        return super().forward(x), x


def replaced():
    norm = Norm()
    norm.forward = lambda x: 2 * Norm.forward(norm, x)
    return norm


def parametrized():
    norm = Norm()
    torch.nn.utils.parametrize.register_parametrization(norm, "weight", torch.nn.Softplus())
    return norm


UNKNOWN = {
    "a bias": (Bias, "more than a weight: weight, bias"),
    "a bias in a buffer": (BiasInABuffer, "something else"),
    "groups": (Groups, "asks a tensor for (view|shape)"),
    "a gate": (Gated, "other arguments than one tensor"),
    "__call__": (CallsAround, "overrides __call__"),
    "a factor": (Doubled, "something else"),
    "eps outside the root": (OutsideTheRoot, "something else"),
    "the mean of all": (MeanOfAll, "mean over something else"),
    "16 bits": (InItsOwnType, "rounds otherwise in 16 bits"),
    "no gradients": (WithoutGradients, "wrapped"),
    "no gradients within": (WithoutGradientsWithin, "something else"),
    "detached": (Detached, "asks a tensor for detach"),
    "noise in training": (Noisy, r"calls dropout\(\)"),
    "a counter": (Counting, "changes the module"),
    "a counter in a buffer": (CountingInABuffer, "asks a tensor|changes the module|cannot be followed"),
    "in place": (InPlace, "asks a tensor for mul_"),
    "clamped": (Clamped, "asks a tensor for clamp"),
    "by the rows": (LongRows, "asks a tensor for shape"),
    "one type": (HalfOnly, "something else"),
    "eps elsewhere": (EpsOfAConfiguration, "neither an attribute nor a number"),
    "guarded": (Guarded, "asks a tensor for clamp"),
    "a tuple": (ATuple, "returns a tuple"),
    "replaced": (replaced, "replaced in the module itself"),
    "parametrized": (parametrized, "more than a weight"),
    "layer norm": (lambda: torch.nn.LayerNorm(64, bias=False), r"calls layer_norm\(\)"),
    "several dimensions": (lambda: torch.nn.RMSNorm((4, 16)), "has not one dimension"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown(name):
    make, reason = UNKNOWN[name]
    model = torch.nn.ModuleDict({"first": Norm(), "norm": make()})
    before = {key: value.clone() for key, value in model.state_dict().items()}
    kind, state = type(model["norm"]), vars(model["norm"]).copy()
    report = ours.patch_transformers(model)
    assert list(report.patched) == ["first"] and list(report.left) == ["norm"]
    with pytest.raises(ValueError, match=reason):
        raise ValueError(report.left["norm"])
    assert f"1 {report.left['norm']}" in str(report) and report.left["norm"].startswith(kind.__name__)
    assert type(model["norm"]) is kind and vars(model["norm"]) == state  # untouched, buffers too:
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_what_is_no_norm_is_not_reported():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), Norm(), torch.nn.SiLU(), torch.nn.Identity(), ours.RMSNorm(64))
    report = ours.patch_transformers(model)
    assert list(report.patched) == ["1"] and not report.left
    assert str(report).splitlines()[0] == "patched:" and str(report).splitlines()[-1] == "left as they are: none"


def test_the_hub_class_is_judged_anew_if_its_forward_is_replaced(monkeypatch):
    norm = Norm()
    assert _recognize.norm_of(norm).options == LLAMA
    monkeypatch.setattr(Norm, "forward", Doubled.forward.__get__(norm).__func__)
    with pytest.raises(_recognize.Unknown):
        _recognize.norm_of(norm)


# --- What a patched norm does -----------------------------------------------------------------------------------


def test_options_of_a_patch():
    norm = ours.patch_transformers(Norm(), dependent_launch=True, batch_invariant=True).model
    norm.variance_epsilon = 0.5
    options = norm._rms_norm_options
    assert options.dependent_launch and options.batch_invariant and (options.eps, options.rounding) == (0.5, "llama")


@pytest.mark.parametrize("make", [Norm, OtherNames, of_torch], ids=lambda make: make.__name__)
def test_an_eps_that_is_assigned_later_counts(make):
    norm = make()
    name = _recognize.norm_of(norm).eps
    patched = ours.patch_transformers(copy.deepcopy(norm)).model
    x = 0.1 * torch.randn(3, 64)
    for eps in (0.5, 0.25, torch.tensor(0.125), 0.0625):  # the kernels take no tensor, but the module does
        if make is of_torch and not isinstance(eps, float):
            continue
        setattr(norm, name, eps)
        setattr(patched, name, eps)
        with torch.no_grad():
            expected = norm(x)
        got, calls = kernel_calls(lambda: patched(x))
        assert calls == isinstance(eps, float)
        torch.testing.assert_close(got, expected)
    again = copy.deepcopy(patched)
    setattr(again, name, 0.5)
    assert patched._rms_norm_options.eps == 0.0625 and again._rms_norm_options.eps == 0.5


def test_a_norm_without_eps_has_the_eps_of_torch():
    norm = torch.nn.RMSNorm(64)
    patched = ours.patch_transformers(copy.deepcopy(norm)).model
    x = 1e-4 * torch.randn(3, 64)
    with torch.no_grad():
        torch.testing.assert_close(patched(x), norm(x))
        patched.eps = 0.5
        torch.testing.assert_close(patched(x), functional.rms_norm(x, (64,), norm.weight, 0.5))


def test_arguments_by_name_and_more_of_them_go_to_the_module():
    patched = ours.patch_transformers(Norm()).model
    x = torch.randn(3, 64)
    got, calls = kernel_calls(lambda: patched(hidden_states=x))
    torch.testing.assert_close(got, patched(x))
    assert calls == 0
    with pytest.raises(TypeError, match="positional argument"):
        patched(x, x)


def test_gradients_of_a_norm_without_a_weight():
    norm = Flagged(False)
    x = torch.randn(3, 64, requires_grad=True)
    norm(x).square().sum().backward()
    expected, x.grad = x.grad, None
    ours.patch_transformers(norm)
    norm(x).square().sum().backward()
    torch.testing.assert_close(x.grad, expected, rtol=1e-4, atol=1e-5)


# --- Decoder layers ---------------------------------------------------------------------------------------------


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.o = torch.nn.Linear(64, 64)

    def forward(self, hidden_states, mask, scale=1.0, **kwargs):
        assert "use_cache" not in kwargs
        return scale * self.o(hidden_states) + (0 if mask is None else mask), None


class Layer(torch.nn.Module):
    """As code that a model brings along may have it."""

    def __init__(self):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = Norm(), Norm()
        self.self_attn, self.mlp = Attention(), torch.nn.Linear(64, 64)

    def forward(self, x, mask=None, scale=0.5, use_cache=False, **rest):
        """Two residuals."""
        kept = x
        x = self.input_layernorm(x)
        x, _ = self.self_attn(hidden_states=x, mask=mask, scale=scale, **rest)
        x = kept + x
        kept = x
        x = self.post_attention_layernorm(x)
        x = self.mlp(x)
        x = x + kept
        return x


class ScaledLayer(Layer):
    def forward(self, x):
        kept = x
        x = self.input_layernorm(x)
        x, _ = self.self_attn(hidden_states=x, mask=None)
        x = kept + 0.5 * x
        kept = x
        x = self.post_attention_layernorm(x)
        x = self.mlp(x)
        x = kept + x
        return x


class LayerThatSubtracts(Layer):
    def forward(self, x):
        kept = x
        x = self.input_layernorm(x)
        x, _ = self.self_attn(hidden_states=x, mask=None)
        x = kept - x
        kept = x
        x = self.post_attention_layernorm(x)
        x = self.mlp(x)
        x = kept + x
        return x


class LayerThatHandsOver(Layer):
    def forward(self, x, mask=None):
        kept = x
        x = self.input_layernorm(x)
        x, _ = self.self_attn(hidden_states=x, mask=mask, scale=2.0)
        x = kept + x
        kept = x
        x = self.post_attention_layernorm(x)
        x = self.mlp(x)
        x = kept + x
        return x


class WrappedLayer(Layer):
    @torch.no_grad()
    def forward(self, x):
        kept = x
        x = self.input_layernorm(x)
        x, _ = self.self_attn(hidden_states=x, mask=None)
        x = kept + x
        kept = x
        x = self.post_attention_layernorm(x)
        x = self.mlp(x)
        x = kept + x
        return x


class Model(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers, self.norm = torch.nn.ModuleList([kind(), kind()]), Norm()

    def forward(self, x, *given, **named):
        for layer in self.layers:
            x = layer(x, *given, **named)
        return self.norm(x)


@pytest.mark.parametrize("given", [(), (0.1,), (None, 0.7), (None, 0.7, True)], ids=str)
def test_layers_of_other_code_are_fused(given):
    model, x = Model(Layer), torch.randn(2, 3, 64)
    with torch.no_grad():
        expected = model(x, *given)
    report = ours.patch_transformers(model)
    assert not report.left and len(report.patched) == 7
    got, calls = kernel_calls(lambda: model(x, *given))
    assert calls == 5
    with torch.no_grad():
        assert torch.equal(model.layers[0](x=x), model.layers[0](x))
    torch.testing.assert_close(got, expected)
    x.requires_grad_()
    got = torch.autograd.grad(model(x, *given).sum(), x)
    torch.testing.assert_close(got, torch.autograd.grad(ours.unpatch(model)(x, *given).sum(), x), rtol=1e-4, atol=1e-5)


LAYERS = {
    ScaledLayer: "adds a residual right before its second norm, and nothing else",
    LayerThatSubtracts: "adds a residual right before its second norm, and nothing else",
    LayerThatHandsOver: "hands other things to its attention than its arguments",
    WrappedLayer: "wrapped by a decorator",
}


@pytest.mark.parametrize("kind", LAYERS, ids=lambda kind: kind.__name__)
def test_layers_of_another_source_keep_it(kind):
    model, x = Model(kind), torch.randn(2, 3, 64)
    with torch.no_grad():
        expected = model(x)
    report = ours.patch_transformers(model)
    assert list(report.left) == ["layers.0", "layers.1"] and len(report.patched) == 5
    assert f"2 {kind.__name__}: only its norms are patched: " in str(report) and LAYERS[kind] in str(report)
    got, calls = kernel_calls(lambda: model(x))
    assert calls == 5 and type(model.layers[0]) is kind
    torch.testing.assert_close(got, expected)


def test_a_layer_whose_forward_changes_in_a_new_version_keeps_it(monkeypatch):
    modeling = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = importlib.import_module("transformers").LlamaConfig(
        hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2
    )

    class Changed(modeling.LlamaDecoderLayer):
        def forward(self, hidden_states, **kwargs):
            return 2 * super().forward(hidden_states, **kwargs)

    model = torch.nn.ModuleList([modeling.LlamaDecoderLayer(config, 0), Changed(config, 1)])
    report = ours.patch_transformers(model)
    assert list(report.left) == ["1"] and "only its norms are patched" in report.left["1"]
    assert {"0", "0.input_layernorm", "1.input_layernorm"} <= report.patched.keys() and "1" not in report.patched


# --- The layer for Hugging Face's kernels -----------------------------------------------------------------------


def test_the_layer_is_what_kernels_ask_for():
    """Without state or members of its own, and bound to modules of other classes."""
    kind = layers.Repository().load()
    assert kind.__init__ is torch.nn.Module.__init__ and not hasattr(kind, "weight")
    assert set(dir(kind)) - set(dir(torch.nn.Module)) <= {"can_torch_compile", "has_backward"}
    assert {name for name, devices in layers.MAPPING.items() if BACKEND in devices} >= {
        "RMSNorm",
        "RMSNormZeroCentered",
    }
    assert layers.Repository() == layers.Repository() and hash(layers.Repository()) == hash(layers.Repository())


@pytest.mark.parametrize("make", [Norm, OfOne, Powers, OfT5, Bias, Doubled, Noisy], ids=lambda make: make.__name__)
def test_the_layer_computes_what_the_class_does(make):
    norm, x = make().eval(), torch.randn(2, 3, 64)
    with torch.no_grad():
        expected = norm(x)
    norm.forward = types.MethodType(layers.RMSNorm.forward, norm)
    got, calls = kernel_calls(lambda: norm(x))
    assert calls == (make in (Norm, OfOne, Powers, OfT5))
    torch.testing.assert_close(got, expected)
    with torch.no_grad():
        norm.variance_epsilon = 0.5
        torch.testing.assert_close(norm(x), make.forward(norm, x))
    x.requires_grad_()
    assert torch.autograd.grad(norm(x).sum(), x)[0].isfinite().all()


def test_the_layer_compiles():
    norm, x = Norm(), torch.randn(3, 64)
    norm.forward = types.MethodType(layers.RMSNorm.forward, norm)
    layers._known.pop(Norm, None)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(norm, fullgraph=True)(x), Norm.forward(norm, x))


class Last(torch.nn.Module):
    def named(self, x):
        """Ends with o."""
        y = self.first(x)
        y = self.o(y)
        return y, None

    def at_once(self, x):
        return self.o(self.first(x))

    def added(self, x):
        return self.o(x) + x

    def twice(self, x):
        x = self.o(x)
        x = self.o(x)
        return x

    def earlier(self, x):
        if x is None:
            return x
        return self.o(x)

    def read_again(self, x):
        y = self.o(x)
        return y, y.sum()

    def not_its_own(self, x):
        return torch.relu(x)


@pytest.mark.parametrize("name", [name for name, value in vars(Last).items() if isinstance(value, types.FunctionType)])
def test_the_module_whose_result_a_forward_returns(name):
    kind = type("Kind", (torch.nn.Module,), {"forward": getattr(Last, name)})
    if name in ("named", "at_once"):
        assert _recognize.last_of(kind) == "o"
    else:
        with pytest.raises(_recognize.Unknown, match="ends with the result of one of its modules"):
            _recognize.last_of(kind)


HUB = """
import torch, kernels, rms_norm, transformers
from rms_norm import layers

counted, kernel = [], rms_norm._arrays.kernel
rms_norm._arrays.kernel = lambda *given: (counted.append(given), kernel(*given))[1]
sizes = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
for name in ("llama", "olmo2", "gemma2"):
    config = transformers.AutoConfig.for_model(name, **sizes, head_dim=16, vocab_size=128, pad_token_id=0, eos_token_id=1)
    model = transformers.AutoModelForCausalLM.from_config(config).to(DEVICE).eval()
    for kind in {type(module) for module in model.modules() if type(module).__name__.endswith("RMSNorm")}:
        kernels.replace_kernel_forward_from_hub(kind, "RMSNorm")  # as the decorator does where versions agree
    tokens = torch.arange(1, 8, device=DEVICE)[None]
    with torch.no_grad():
        before = model(tokens).logits
        with kernels.use_kernel_mapping(layers.MAPPING):
            kernels.kernelize(model, mode=kernels.Mode.INFERENCE | kernels.Mode.TORCH_COMPILE, device=DEVICE)
        counted.clear()
        torch.testing.assert_close(model(tokens).logits, before, rtol=1e-5, atol=1e-5)
    print(name, len(counted))
"""


@pytest.mark.full
def test_models_with_kernels_of_the_hub(tmp_path):
    """kernelize() of the package `kernels`, which does not download anything here."""
    made = pip_install("kernels==0.12.0", "--target", str(tmp_path))
    if made.returncode != 0:
        pytest.skip(f"pip cannot install kernels: {made.stderr.strip().splitlines()[-1:]}")
    device = "cuda" if BACKEND == "cuda" else "cpu"
    path = os.pathsep.join([str(SITE), str(tmp_path)])
    done = run(sys.executable, "-c", f"DEVICE = {device!r}{HUB}", timeout=600, PYTHONPATH=path)
    assert done.stdout.splitlines() == ["llama 5", "olmo2 9", "gemma2 9"], done.stdout + done.stderr


# --- Every norm of transformers ---------------------------------------------------------------------------------

FORMS = "LlamaRMSNorm Qwen3RMSNorm GemmaRMSNorm Olmo2RMSNorm GptOssRMSNorm Gemma3nRMSNorm PixtralRMSNorm".split()


def norms_of_transformers():
    """Every class of transformers whose name says that it is an RMSNorm, and that can be made of one number."""
    transformers = pytest.importorskip("transformers", minversion="5.0")
    folder = pathlib.Path(transformers.__file__).parent / "models"
    found = {}
    for path in sorted(folder.glob("*/modeling_*.py")):
        if "RMSNorm" in path.read_text(encoding="utf-8"):
            module = importlib.import_module(f"transformers.models.{path.parent.name}.{path.stem}")
            for name, kind in vars(module).items():
                if isinstance(kind, type) and "RMSNorm" in name and kind.__module__ == module.__name__:
                    found[name] = kind
    return found


@pytest.mark.full
def test_every_norm_of_transformers():
    known, left = {}, {}
    for name, kind in norms_of_transformers().items():
        try:
            norm = kind(64)
        except (AttributeError, TypeError):  # it wants a configuration, or more numbers
            left[name] = "more arguments"
            continue
        with torch.no_grad():
            for parameter in norm.parameters():
                parameter.copy_(torch.randn_like(parameter))
        try:
            known[name] = tuple(sorted(_recognize.norm_of(norm).options.items()))
        except _recognize.Unknown as unknown:
            left[name] = str(unknown)
            continue
        for dtype in _recognize.TYPES:
            x = torch.randn(2, 3, 64).to(dtype)
            plain = copy.deepcopy(norm).to(dtype)
            patched = ours.patch_transformers(copy.deepcopy(plain)).model
            with torch.no_grad():
                expected = plain(x)
            got, calls = kernel_calls(lambda: patched(x))
            assert calls == 1, name
            torch.testing.assert_close(got, expected, rtol=2 * torch.finfo(dtype).eps + 1e-5, atol=1e-5)
    assert set(FORMS) <= known.keys() and len(known) >= 170
    assert sum(options == (("rounding", "llama"),) for options in known.values()) >= 140
    for name in ("MambaRMSNormGated", "Qwen3NextRMSNormGated", "FalconH1RMSNormGated"):
        assert name in left
