"""The package with PyTorch: operators, gradients, torch.compile, and patched models.

make test TORCH=1 runs it on tensors in host memory, through the CPU device; scripts/check_python.sh on those of a GPU.
"""

import copy
import pickle
import sys
import threading
import typing

import pytest
from conftest import run
from python_package import BACKEND, SITE, install

torch = pytest.importorskip("torch")
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

install()
import rms_norm
import rms_norm.torch as ours
from rms_norm import _operators, flashinfer, vllm

TYPES = [torch.float32, torch.float16, torch.bfloat16]
OPERATORS = torch.ops.rms_norm
DEVICE = "cuda" if BACKEND == "cuda" else "cpu"
functional = torch.nn.functional


@pytest.fixture(autouse=True)
def start():
    torch.set_default_device(DEVICE)
    torch.manual_seed(1)
    yield
    torch.set_default_device(None)


def leaves(*shapes, dtype=torch.float32):
    return [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]


def close(got, expected, roundings=2):
    torch.testing.assert_close(got, expected, rtol=roundings * torch.finfo(got.dtype).eps + 1e-5, atol=1e-5)


def in_float64(x, weight, eps=1e-6):
    return functional.rms_norm(x.double(), x.shape[-1:], weight.double(), eps)


def test_norms_of_no_rows_that_end_in_8_bits():  # whose scales are nullptr
    x, residual, weight = torch.randn(0, 128), torch.randn(0, 128), torch.randn(128)
    for given in ({}, {"block": 64, "residual": residual}, {"scale": torch.ones(1)}):
        q, *_ = rms_norm.rms_norm_quantized(x, weight, **given)
        assert q.shape == (0, 128)
    q, scales = vllm.rms_norm_dynamic_per_token_quant(x, weight, 1e-6, torch.int8)
    assert q.shape == (0, 128) and scales.shape == (0, 1)


# --- Operators ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_answers(dtype):
    x, weight = torch.randn(2, 3, 257, dtype=dtype), torch.randn(257, dtype=dtype)
    expected = in_float64(x, weight).to(dtype)
    for y in (rms_norm.rms_norm(x, weight), ours.rms_norm(x, weight), OPERATORS.rms_norm(x, weight)):
        assert y.dtype == dtype
        close(y, expected)


def test_strided_tensors_are_not_copied():
    heads = torch.randn(5, 6, 64)[:, 1:4]
    close(ours.rms_norm(heads.transpose(0, 1)), in_float64(heads.transpose(0, 1), torch.ones(64)).float())
    with pytest.raises(ValueError, match="not contiguous"):
        ours.rms_norm(torch.randn(4, 4).T)


OPCHECKS = {
    "rms_norm": lambda: (OPERATORS.rms_norm, *leaves((3, 20), 20)),
    "without a weight": lambda: (OPERATORS.rms_norm, *leaves((3, 20)), None),
    "fused_add_rms_norm": lambda: (OPERATORS.fused_add_rms_norm, *leaves((3, 20), (3, 20), 20)),
    "fused_add_rms_norm_": lambda: (OPERATORS.fused_add_rms_norm_, *torch.randn(2, 3, 20), torch.randn(20)),
    "rms_norm_out": lambda: (OPERATORS.rms_norm_out, *torch.randn(2, 3, 20), torch.randn(20)),
    "fused_add_rms_norm_out": lambda: (OPERATORS.fused_add_rms_norm_out, *torch.randn(4, 3, 20), torch.randn(20)),
    "qk_norm_rope_": lambda: (
        *(OPERATORS.qk_norm_rope_, torch.randn(3, 40), torch.randn(8), None),
        *(torch.randn(5, 8), torch.arange(3), 2, 1, 8, True),
    ),
    "_norm_with_rstd": lambda: (OPERATORS._norm_with_rstd, torch.randn(3, 20), None, torch.randn(20)),
    "_norm_with_rstd of a sum": lambda: (OPERATORS._norm_with_rstd, *torch.randn(2, 3, 20), None),
    "backward": lambda: (
        *(OPERATORS.backward, *torch.randn(3, 3, 20), torch.randn(20), 1e-6, 0.0, 1),
        torch.ones(3),
    ),
    "backward to x": lambda: (OPERATORS.backward, torch.randn(3, 20), None, torch.randn(3, 20), None, 1e-6, 0.0, 0),
}


@pytest.mark.parametrize("name", OPCHECKS)
def test_operators_keep_their_promises(name):
    operator, *arguments = OPCHECKS[name]()
    results = torch.library.opcheck(operator.default, tuple(arguments))
    assert set(results.values()) == {"SUCCESS"}


def test_compiles_without_a_break():
    module = ours.RMSNorm(64, weight_offset=1.0)

    def function(x, residual, weight):
        x = module(x)
        y = ours.rms_norm(2 * x, weight, 1e-5, rounding="llama")
        z, total = ours.fused_add_rms_norm(y, residual, weight, weight_offset=1.0)
        ours.fused_add_rms_norm_(z, total, None)
        return z * 2, total

    arguments = (*torch.randn(2, 4, 64), torch.randn(64))
    with torch.no_grad():
        for got, expected in zip(torch.compile(function, fullgraph=True)(*arguments), function(*arguments)):
            close(got, expected)


# --- Gradients ----------------------------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["rstd computed again", "rstd stored"])
def rstd(request, monkeypatch):
    """Whatever the length of the rows."""
    monkeypatch.setattr(_operators, "_BYTES_OF_ROW", 0 if request.param else 2**30)
    torch._dynamo.reset()


def test_long_rows_of_one_type_keep_their_rstd():
    x, residual, weight = leaves((5, 1024), (5, 1024), 1024)
    y, total = ours.fused_add_rms_norm(x, residual, weight)
    for result, normalized in ((ours.rms_norm(x, weight), x), (y, total)):
        *_, rstd = result.grad_fn.saved_tensors
        close(rstd, torch.rsqrt(normalized.detach().square().mean(-1) + 1e-6))
    short, half = leaves((5, 1023), 1023), (x.detach().half().requires_grad_(), weight)
    strided = torch.randn(5, 2048)[:, :1024].requires_grad_(), weight
    for x, weight in (short, half, strided):
        y = ours.rms_norm(x, weight)
        assert y.grad_fn.saved_tensors[2] is None
    with torch.no_grad():
        assert ours.rms_norm(residual).grad_fn is None


def test_what_is_wrong_is_refused_with_a_stored_rstd_too():
    x, weight = leaves((3, 2048), 2048)
    for call in (
        lambda: ours.rms_norm(x, weight[1:]),
        lambda: ours.fused_add_rms_norm(x, x[:2], weight),
        lambda: torch.compile(ours.rms_norm, backend="aot_eager")(x, weight[1:]),
    ):
        with pytest.raises((ValueError, RuntimeError), match="is wanted|must be the same"):
            call()


def test_an_rstd_that_does_not_fit_is_refused():
    x, dy = torch.randn(2, 3, 20), torch.randn(2, 3, 20)
    for given, rstd, sentence in (
        (dy, torch.ones(6), r"rstd has the shape \(6,\).*without the last dimension"),
        (dy, torch.ones(2, 3, dtype=torch.float16), "rstd is float16, not float32"),
        (dy, torch.ones(3, 2).T, "rstd is not contiguous"),
        (torch.randn(3, 2, 20).transpose(0, 1), torch.ones(2, 3), "dy is not contiguous"),
    ):
        with pytest.raises((TypeError, ValueError), match=sentence):
            OPERATORS.backward(given, None, x, None, 1e-6, 0.0, 0, rstd)


@pytest.mark.usefixtures("rstd")
@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_gradients(dtype, offset):
    x, weight = leaves((7, 130), 130, dtype=dtype)
    dy = torch.randn(7, 130, dtype=dtype)
    ours.rms_norm(x, weight, 1e-5, weight_offset=offset).backward(dy)
    x64, weight64 = x.detach().double().requires_grad_(), weight.detach().double().requires_grad_()
    functional.rms_norm(x64, (130,), offset + weight64, 1e-5).backward(dy.double())
    close(x.grad, x64.grad.to(dtype))
    close(weight.grad, weight64.grad.to(dtype))


@pytest.mark.usefixtures("rstd")
def test_gradients_through_the_sum():
    """Both outputs are used, by an expanded gradient and by a transposed one."""
    leaf = leaves((5, 40), (5, 40), 40)
    same = [tensor.detach().double().requires_grad_() for tensor in leaf]

    def loss(y, total):
        return y.sum() + (total.T @ torch.ones(5, 3, dtype=total.dtype)).T[:2].square().sum()

    loss(*ours.fused_add_rms_norm(*leaf)).backward()
    total = same[0] + same[1]
    loss(functional.rms_norm(total, (40,), same[2], 1e-6), total).backward()
    for got, expected in zip(leaf, same):
        torch.testing.assert_close(got.grad.double(), expected.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("rstd")
def test_gradients_that_are_not_wanted():
    x, weight = torch.randn(3, 20), torch.randn(20, requires_grad=True)
    ours.rms_norm(x, weight).sum().backward()
    assert x.grad is None and weight.grad is not None
    x.requires_grad_()
    ours.rms_norm(x).sum().backward()
    assert x.grad is not None
    y, total = ours.fused_add_rms_norm(x, torch.randn(3, 20), weight)
    total.sum().backward()  # y's gradient is not there
    assert torch.isfinite(x.grad).all()


def test_gradcheck():
    """The numbers are float32, so the steps are large and the comparison is loose; test_gradients compares finely."""
    x, weight = leaves((3, 6), 6)
    assert torch.autograd.gradcheck(ours.rms_norm, (x, weight), eps=1e-2, atol=1e-2, rtol=1e-2, nondet_tol=0.0)


@pytest.mark.usefixtures("rstd")
def test_gradients_compile():
    x, weight = leaves((4, 64), 64)
    ours.rms_norm(x, weight).sum().backward()
    expected = x.grad.clone(), weight.grad.clone()
    x.grad = weight.grad = None
    torch.compile(lambda x, w: ours.rms_norm(x, w).sum(), fullgraph=True)(x, weight).backward()
    close(x.grad, expected[0])
    close(weight.grad, expected[1])


@pytest.mark.usefixtures("rstd")
def test_gradients_have_no_gradients():
    x, residual, weight = leaves((3, 8), (3, 8), 8)
    for y in (ours.rms_norm(x, weight), ours.fused_add_rms_norm(x, residual, weight)[0]):
        for loss in (y.square().sum(), y.sum()):  # the gradient of y itself may be a constant
            (first,) = torch.autograd.grad(loss, x, create_graph=True)
            close(first, torch.autograd.grad(loss, x, retain_graph=True)[0])
            with pytest.raises(NotImplementedError, match="no second derivative"):
                first.square().sum().backward()


# --- What is refused, and other surroundings -----------------------------------------------------------------


def test_refused():
    x = torch.randn(3, 8)
    cases = [
        (lambda: rms_norm.rms_norm(x.double()), TypeError, "elements of type float64"),
        (lambda: rms_norm.rms_norm(x.to("meta")), ValueError, "cannot be handed over"),
        (lambda: rms_norm.rms_norm(x.to_sparse()), ValueError, "cannot be handed over"),
        (lambda: rms_norm.rms_norm(x, [1.0] * 8), TypeError, "weight is .* not an array"),
        (lambda: rms_norm.rms_norm(x.clone().requires_grad_()), ValueError, "requires grad.*rms_norm.torch"),
        (lambda: ours.fused_add_rms_norm_(x.clone().requires_grad_(), x), ValueError, "requires grad"),
        (lambda: ours.fused_add_rms_norm_(x, None), TypeError, "residual is None"),
        (lambda: ours.rms_norm(x, [1.0] * 8), TypeError, "weight is .* not an array"),
        (lambda: ours.rms_norm([1.0] * 8), TypeError, "x is a list"),
        (lambda: ours.rms_norm(None), TypeError, "x is a NoneType"),
        (lambda: ours.rms_norm(x, rounding="up"), ValueError, "rounding is"),
        (lambda: ours.rms_norm(x, torch.ones(9)), ValueError, r"weight has the shape \(9,\)"),
        (lambda: ours.fused_add_rms_norm(x, x[:2]), ValueError, r"residual has the shape \(2, 8\)"),
        (lambda: OPERATORS.rms_norm(x.T, None), ValueError, "the last dimension of x is not contiguous"),
        (lambda: ours.rms_norm(torch.empty(3, 0)), ValueError, "last dimension of x is empty"),
        (lambda: ours.rms_norm(x.half(), torch.ones(8, dtype=torch.bfloat16)), TypeError, "not among the types"),
    ]
    for call, error, sentence in cases:
        with pytest.raises(error, match=sentence):
            call()


def test_results_of_another_library_are_refused_before_they_are_written():
    numpy = pytest.importorskip("numpy")
    from rms_norm import q4

    x, array = torch.randn(3, 32), numpy.zeros((3, 32), numpy.float32)
    for call in (
        lambda: rms_norm.rms_norm(x, out=array),
        lambda: rms_norm.fused_add_rms_norm(x, array),
        lambda: q4.add_rms_norm_quantize(x, array),
    ):
        with pytest.raises(TypeError, match="is a ndarray; it must be a PyTorch tensor, as x is"):
            call()
    assert not array.any()


def test_a_meta_tensor_among_others_is_refused():
    """Of operators that write their result, PyTorch calls the one for meta tensors, which computes nothing."""
    x, weight, qkv = torch.randn(3, 8), torch.ones(8), torch.randn(3, 24)
    meta, angles, places = torch.empty(8, device="meta"), torch.ones(4, 8), torch.zeros(3, dtype=torch.int64)
    calls = [
        lambda: ours.fused_add_rms_norm_(x, x.clone(), meta),
        lambda: OPERATORS.rms_norm_out(torch.empty(3, 8), x, meta),
        lambda: OPERATORS.rms_norm(x.to("meta"), weight),
        lambda: rms_norm.qk_norm_rope(qkv, meta, weight, angles, places, 1, 1, 8),
        lambda: rms_norm.qk_norm_rope(qkv, weight, weight, angles, places.to("meta"), 1, 1, 8),
        lambda: rms_norm.rms_norm_quantized(x, meta),
        lambda: rms_norm.rms_norm_quantized(x, weight, scale=torch.ones(1, device="meta")),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="lies on .*meta.*move one of them, or load it if it is a meta tensor"):
            call()


NEGATED = {
    "a view": lambda shape: torch._neg_view(torch.randn(shape)),
    "the imaginary part of a conjugate": lambda shape: torch.randn(shape, dtype=torch.complex64).conj().imag,
}


@pytest.mark.parametrize("cols, name", [(1, name) for name in NEGATED] + [(8, "a view")])
def test_the_negative_bit(cols, name):
    """Negated tensors hold the opposite of what is in memory: operators see that, and other functions refuse it."""
    x, residual, weight = NEGATED[name]((4, cols)), torch.randn(4, cols), torch.randn(cols)
    assert x.is_neg()
    negated = torch._neg_view(-weight)
    plain, total = in_float64(x, weight).float(), x + residual
    for w in (weight, negated, weight.clone().requires_grad_()):
        close(ours.rms_norm(x, w), plain)
        close(OPERATORS.rms_norm(x, w), plain)
        for given in ((x, residual), (residual, x)):
            y, got = ours.fused_add_rms_norm(*given, w)
            assert torch.equal(got, total)
            close(y, in_float64(total, weight).float())
    with torch.inference_mode():
        close(OPERATORS.rms_norm(x, negated), plain)
    wanted = x.detach().resolve_neg().requires_grad_()
    functional.rms_norm(wanted, (cols,), weight, 1e-6).sum().backward()
    leaf = x.detach().requires_grad_()
    assert leaf.is_neg()
    ours.rms_norm(leaf, weight).sum().backward()
    torch.testing.assert_close(leaf.grad, wanted.grad, rtol=1e-4, atol=1e-5)
    refused = [
        (lambda: rms_norm.rms_norm(x, weight), "x has PyTorch's negative bit"),
        (lambda: rms_norm.rms_norm(residual, negated), "weight has PyTorch's negative bit"),
        (lambda: rms_norm.rms_norm(residual, weight, out=x), "out has PyTorch's negative bit"),
        (lambda: rms_norm.fused_add_rms_norm(residual, x), "residual has PyTorch's negative bit"),
        (lambda: rms_norm.qk_norm(NEGATED["a view"]((2, 4)), None, None, 1, 1, 2), "qkv has PyTorch's negative bit"),
        (lambda: vllm.rms_norm(residual, x, weight, 1e-6), "x has PyTorch's negative bit"),
        (lambda: OPERATORS.fused_add_rms_norm_(residual, x, weight), "a tensor has PyTorch's negative bit"),
        (lambda: OPERATORS.rms_norm_out(residual, x, weight), "a tensor has PyTorch's negative bit"),
    ]
    before = residual.clone()
    for call, sentence in refused:
        with pytest.raises(ValueError, match=sentence):
            call()
    assert torch.equal(residual, before)


def test_errors_of_the_kernels_keep_their_type(monkeypatch):
    """Only what cannot be handed over is a ValueError about that, and it names the array."""

    def fails(*given):
        raise RuntimeError("the launch of something failed")

    x, weight = torch.randn(3, 8), torch.nn.Parameter(torch.ones(8))
    monkeypatch.setattr(rms_norm._arrays, "kernel", fails)
    for call in (rms_norm.rms_norm, ours.rms_norm):
        with torch.no_grad(), pytest.raises(RuntimeError, match="^the launch of something failed$"):
            call(x, weight)
    with torch.no_grad(), pytest.raises(ValueError, match="weight cannot be handed over without a copy"):
        rms_norm.rms_norm(x, weight.detach().to_sparse())


# Below autograd, as under torch.inference_mode(), a call comes to the kernels in C++ without Python between.
needs_cpp = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 10), reason="PyTorch before 2.10: operators in Python"
)


@needs_cpp
def test_operators_are_in_cpp():
    for name in ("rms_norm", "fused_add_rms_norm", "_rms_norm", "_fused_add_rms_norm"):
        kernels = torch._C._dispatch_dump(f"rms_norm::{name}").splitlines()
        assert all("operators.cu" in line for line in kernels if line.startswith(("CPU:", "CUDA:")))
        assert sum(line.startswith(("CPU:", "CUDA:")) for line in kernels) == 2


WITHOUT_CPP = f"""
import torch, rms_norm
torch.set_default_device("{DEVICE}")
rms_norm._arrays.register_operators = lambda: False  # as where PyTorch is older
import rms_norm.torch as ours
x, residual, weight = torch.randn(3, 8), torch.randn(3, 8), torch.ones(8, requires_grad=True)
operators = torch.ops.rms_norm
with torch.inference_mode():
    assert torch.equal(operators.rms_norm(x, weight, 0.5, rounding="llama"), rms_norm.rms_norm(x, weight, 0.5, rounding="llama"))
    for got, like in zip(operators._fused_add_rms_norm(x, residual, weight), ours.fused_add_rms_norm(x, residual, weight)):
        assert torch.equal(got, like)
ours.rms_norm(x, weight).sum().backward()
print("operators.cu" in torch._C._dispatch_dump("rms_norm::rms_norm"), weight.grad.shape)
"""


def test_an_older_pytorch_gets_operators_that_are_the_direct_call():
    done = run(sys.executable, "-c", WITHOUT_CPP, PYTHONPATH=str(SITE))
    assert done.stdout == "False torch.Size([8])\n", done.stdout + done.stderr


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("weight", [None, "same", torch.float32])
def test_operators_below_autograd_are_the_functions(dtype, weight):
    x, residual = torch.randn(3, 4, 8, dtype=dtype), torch.randn(3, 4, 8, dtype=dtype)
    weight = None if weight is None else torch.randn(8, dtype=dtype if weight == "same" else weight)
    changes = [{}, dict(weight_offset=1.0), dict(rounding="llama"), dict(cache="normal", dependent_launch=True)]
    views = [lambda t: t, lambda t: t.transpose(0, 1), lambda t: t[:, ::2], lambda t: t[:1], lambda t: t[:, :0]]
    with torch.inference_mode():
        for view in views:
            for options in [*changes, dict(cache="evict_first")]:
                a, b = view(x), view(residual)
                y, (normed, total) = (
                    OPERATORS.rms_norm(a, weight, 0.5, **options),
                    OPERATORS.fused_add_rms_norm(a, b, weight, 0.5, **options),
                )
                wanted = (
                    ours.rms_norm(a, weight, 0.5, **options),
                    *ours.fused_add_rms_norm(a, b, weight, 0.5, **options),
                )
                for got, like in zip((y, normed, total), wanted):
                    assert torch.equal(got, like) and got.stride() == like.stride() and got.is_inference()


@needs_cpp
def test_what_operators_below_autograd_refuse():
    x, weight = torch.randn(3, 4, 8), torch.ones(8)
    calls = [
        (lambda: OPERATORS.rms_norm(x, weight[:7]), r"weight has the shape \(7,\)"),
        (lambda: OPERATORS.rms_norm(x.double(), weight), "x has elements of type float64"),
        (lambda: OPERATORS.rms_norm(x.bool(), weight), "x has elements of type bool"),
        (lambda: OPERATORS.rms_norm(x.to(torch.float8_e5m2), None), "x has elements of type number 23 of PyTorch's"),
        (lambda: OPERATORS.rms_norm(x.half(), weight.bfloat16()), "not among the types"),
        (lambda: OPERATORS.rms_norm(x[0, 0, 0], None), "x has no dimension"),
        (lambda: OPERATORS.rms_norm(x, weight, float("nan")), "eps is negative or not finite"),
        (lambda: OPERATORS.rms_norm(x, weight, rounding="up"), "rounding is 'up'; 'gemma' and 'llama' are known"),
        (lambda: OPERATORS.rms_norm(x, weight, cache="x"), "cache is 'x'; 'tuned', 'normal' and 'evict_first'"),
        (lambda: OPERATORS.rms_norm(x.permute(2, 1, 0), None), "the last dimension of x is not contiguous"),
        (lambda: OPERATORS.fused_add_rms_norm(x, x[:2], None), r"residual has the shape \(2, 4, 8\)"),
    ]
    with torch.inference_mode():
        for call, sentence in calls:
            with pytest.raises(ValueError, match=sentence):
                call()


EVERY_TYPE = """
import torch, rms_norm, rms_norm.torch as ours
types = sorted({str(d) for d in vars(torch).values() if isinstance(d, torch.dtype)})
known = {"torch.float32", "torch.float16", "torch.bfloat16"}
for name in types:
    try:
        other = torch.empty(2, 8, dtype=getattr(torch, name[6:]), device=DEVICE)
        repr(other.dtype), other.is_quantized and other.qscheme()
    except RuntimeError:  # the types of quantized tensors
        continue
    x = torch.ones(2, 8, device=DEVICE)
    for call in (rms_norm.rms_norm, ours.rms_norm):
        for given in ((other,), (x, other[0])):
            try:
                call(*given)
                assert name in known, name
            except (TypeError, ValueError, NotImplementedError) as error:
                refused = "not among the types" if name in known else "elements of type|handed over|not implemented|not yet"
                assert any(word in str(error) for word in refused.split("|")), (name, error)
print(len(types))
"""


def test_every_type_of_torch_is_taken_or_refused():
    """In a process of its own, which a type without a name must not end."""
    done = run(sys.executable, "-c", f"DEVICE = {DEVICE!r}{EVERY_TYPE}", PYTHONPATH=str(SITE))
    assert done.returncode == 0 and int(done.stdout) > 20, done.stdout + done.stderr
    for dtype, name in ((torch.complex64, "complex64"), (torch.uint16, "uint16")):
        with pytest.raises(TypeError, match=f"weight has elements of type {name};"):
            rms_norm.rms_norm(torch.ones(2, 8, dtype=torch.bfloat16), torch.ones(8).to(dtype))


@pytest.mark.parametrize("wants_grad", [False, True])
def test_functions_refuse_alike_with_and_without_gradients(wants_grad):
    x, weight = torch.randn(3, 8).requires_grad_(wants_grad), torch.ones(8)
    calls = [lambda *rest, **more: ours.rms_norm(x, weight, *rest, **more)]
    calls += [lambda *rest, **more: ours.fused_add_rms_norm(x, x, weight, *rest, **more)]
    for call in calls:
        with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
            call(out=torch.empty(3, 8))
        with pytest.raises(TypeError, match="eps is None"):
            call(None)
        with pytest.raises(TypeError, match="eps is tensor"):
            call(torch.tensor(1e-6))
    with pytest.raises(TypeError, match="residual is a NoneType"):
        ours.fused_add_rms_norm(x.detach(), None, weight)


def test_only_tensors_are_taken():
    numpy = pytest.importorskip("numpy")
    with pytest.raises(TypeError, match="x is a ndarray; it must be a PyTorch tensor"):
        ours.rms_norm(numpy.ones((2, 8), "float32"))


def test_hints_say_what_may_be_given():
    for name in ("rms_norm", "fused_add_rms_norm", "fused_add_rms_norm_"):
        hints = typing.get_type_hints(getattr(ours, name))
        assert typing.get_args(hints["rounding"]) == ("gemma", "llama")
        assert typing.get_args(hints["cache"]) == ("tuned", "normal", "evict_first")
    assert typing.get_type_hints(ours.RMSNorm.__init__)["rounding"] is hints["rounding"]
    for module, names in ((vllm, "rms_norm fused_add_rms_norm"), (flashinfer, "rmsnorm gemma_fused_add_rmsnorm")):
        for function in (getattr(module, name) for name in names.split()):
            given = function.__code__.co_varnames[: function.__code__.co_argcount]
            assert set(given) < set(function.__annotations__)


def test_fake_kernels_refuse_what_kernels_do():
    x = torch.empty(2, 4, device="meta")
    cases = [
        ((x, torch.empty(7, device="meta")), ValueError, r"weight has the shape \(7,\)"),
        ((x.int(),), TypeError, "elements of type int32"),
        ((x[0, 0],), ValueError, "no dimension"),
    ]
    for given, error, sentence in cases:
        with pytest.raises(error, match=sentence):
            ours.rms_norm(*given)
    with pytest.raises(ValueError, match=r"residual has the shape \(1, 4\)"):
        ours.fused_add_rms_norm(x, x[:1])


def test_under_inference_mode_and_autocast():
    x, weight = torch.randn(3, 8), torch.nn.Parameter(torch.ones(8))
    with torch.inference_mode():
        assert ours.rms_norm(x, weight).is_inference()
    with torch.autocast(DEVICE, torch.bfloat16):
        assert ours.rms_norm(x, weight).dtype == torch.float32
    with torch.no_grad():
        assert not OPERATORS.rms_norm(x, weight).requires_grad


def test_tensors_without_rows():
    for shape in ((0, 8), (3, 0, 8)):
        x, weight = torch.empty(shape, requires_grad=True), torch.ones(8, requires_grad=True)
        y = ours.rms_norm(x, weight)
        assert y.shape == shape
        y.sum().backward()
        assert x.grad.shape == shape and (weight.grad == 0).all()


def test_tracers_see_an_operator():
    weight = torch.randn(8)
    traced = torch.jit.trace(lambda x: ours.rms_norm(x, weight), torch.randn(3, 8))
    assert "rms_norm::rms_norm" in str(traced.graph)
    x = torch.randn(4, 8)
    close(traced(x), in_float64(x, weight).float())
    assert ours.rms_norm(torch.empty(2, 8, device="meta")).shape == (2, 8)


def test_functions_that_write_their_result_are_traced():
    x, weight = torch.randn(2, 8), torch.randn(8)
    for call in (rms_norm.rms_norm, flashinfer.rmsnorm):
        for traced in (torch.jit.trace(lambda x: call(x, weight), x), make_fx(lambda x: call(x, weight))(x)):
            other = torch.randn(2, 8)
            assert torch.equal(traced(other), call(other, weight))
            assert "rms_norm_out" in str(traced.graph)
        with FakeTensorMode() as mode:
            assert call(torch.empty(2, 8), torch.empty(8)).shape == (2, 8)
        with pytest.raises(ValueError, match="weight has no memory"):
            call(x, mode.from_tensor(weight))


def test_functions_that_write_their_result_are_not_transformed():
    x, weight = torch.randn(2, 8), torch.randn(8)
    for call in (rms_norm.rms_norm, flashinfer.rmsnorm):
        with pytest.raises(ValueError, match="cannot transform a function that writes its result"):
            torch.func.vmap(lambda x: call(x, weight))(x)
        with forward_ad.dual_level(), pytest.raises(ValueError, match="cannot transform a function that writes"):
            call(forward_ad.make_dual(x, x), weight)


class Listener(TorchDispatchMode):
    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        self.heard = getattr(self, "heard", []) + [operator]
        return operator(*arguments, **(options or {}))


@pytest.mark.parametrize("wants_grad", [False, True])
def test_modes_see_an_operator(wants_grad):
    x, residual = torch.randn(2, 3, 8).requires_grad_(wants_grad).unbind()
    for call in (OPERATORS.rms_norm, ours.rms_norm):
        with Listener() as listener:
            call(x, torch.ones(8))
        assert OPERATORS._rms_norm.default in listener.heard
    for call in (OPERATORS.fused_add_rms_norm, ours.fused_add_rms_norm):
        with Listener() as listener:
            call(x, residual, None)
        assert OPERATORS._fused_add_rms_norm.default in listener.heard


def test_compiled_code_calls_operators_that_have_no_gradients_in_python():
    """What is left of a call in a graph of torch.compile: PyTorch calls it without Python between."""
    x, residual, weight = torch.randn(3, 8), torch.randn(3, 8), torch.ones(8)
    norms = make_fx(lambda x, weight: (ours.rms_norm(x, weight), ours.fused_add_rms_norm(x, residual, weight)))
    graph = norms(x, weight)
    called = {node.target for node in graph.graph.nodes if node.op == "call_function"}
    assert {OPERATORS._rms_norm.default, OPERATORS._fused_add_rms_norm.default} <= called
    for name in ("_rms_norm", "_fused_add_rms_norm"):
        assert "Autograd" not in torch._C._dispatch_dump(f"rms_norm::{name}")


def test_operators_are_dispatched_once_without_gradients(monkeypatch):
    x, residual = torch.randn(2, 3, 8)
    weight = torch.nn.Parameter(torch.ones(8))
    monkeypatch.delattr(rms_norm._operators, "_below_autograd")  # the second time
    with torch.no_grad():
        OPERATORS.rms_norm(x, weight)
        OPERATORS.fused_add_rms_norm(x, residual, weight)
    OPERATORS.rms_norm(x, weight.detach())
    with pytest.raises(NameError):
        OPERATORS.rms_norm(x, weight)


def test_changes_in_place_are_noticed_by_autograd():
    x, residual = torch.randn(2, 3, 8)
    square = (leaves((3, 8))[0] * x).sum()
    ours.fused_add_rms_norm_(x, residual)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.backward()


IN_PLACE = {
    "rms_norm": lambda y, other: rms_norm.rms_norm(other, out=y),
    "fused_add_rms_norm": lambda y, other: rms_norm.fused_add_rms_norm(y, other),
    "the residual": lambda y, other: rms_norm.fused_add_rms_norm(other, y),
    "qk_norm": lambda y, other: rms_norm.qk_norm(y, None, None, 1, 1, 4),
    "vllm": lambda y, other: vllm.rms_norm(y, other, torch.ones(8), 1e-6),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_changes_in_place_by_the_package_are_noticed_by_autograd(name):
    y = leaves((3, 8))[0] * 2
    square = y.square().sum()
    IN_PLACE[name](y.detach(), torch.randn(3, 8))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.backward()
    with torch.inference_mode():
        IN_PLACE[name](torch.randn(3, 8), torch.randn(3, 8))


def test_gradients_that_are_not_there_are_refused():
    x, weight = torch.randn(3, 8), torch.ones(8)
    func = torch.func
    asked = [
        lambda norm: func.grad(lambda x: norm(x).sum())(x),
        lambda norm: func.jvp(norm, (x,), (x,)),
        lambda norm: func.jacrev(norm)(x),
        lambda norm: func.vmap(func.grad(lambda x: norm(x).sum()))(x),
    ]
    for ask in asked:
        with pytest.raises(NotImplementedError, match="no rules for torch.func"):
            ask(lambda x: ours.rms_norm(x, weight))
    close(func.vmap(lambda x: ours.rms_norm(x, weight))(x), in_float64(x, weight).float())
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="jvp"):
        ours.rms_norm(forward_ad.make_dual(x, x), weight)


def test_module_loads_the_state_of_others():
    theirs = torch.nn.RMSNorm(32, eps=1e-5)
    torch.nn.init.normal_(theirs.weight)
    module = ours.RMSNorm(32, eps=1e-5)
    module.load_state_dict(theirs.state_dict())
    x, residual = torch.randn(2, 4, 32)
    close(module(x), theirs(x))
    y, total = module(x, residual)
    assert torch.equal(total, x + residual)
    close(y, theirs(total))
    close(ours.RMSNorm(32)(x), torch.nn.RMSNorm(32)(x))
    assert ours.RMSNorm(32, elementwise_affine=False).weight is None
    assert (ours.RMSNorm(32, weight_offset=1.0).weight == 0).all()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_the_module_without_eps_has_that_of_torch(dtype):
    x = 1e-3 * torch.randn(4, 64, dtype=dtype)
    close(ours.RMSNorm(64, dtype=dtype)(x), torch.nn.RMSNorm(64, dtype=dtype)(x))


def test_the_module_stands_in_for_that_of_torch():
    numpy = pytest.importorskip("numpy")
    with pytest.raises(TypeError, match="residual is a list; it must be a PyTorch tensor"):
        ours.RMSNorm(8)(torch.randn(4, 16)[:, ::2], [1.0])
    module = ours.RMSNorm(numpy.int64(8), device="meta", weight_offset=1.0, rounding="llama")
    module.to_empty(device=DEVICE).reset_parameters()
    assert (module.weight == 0).all() and module.elementwise_affine and module.normalized_shape == (8,)
    assert module.extra_repr() == "(8,), eps=None, elementwise_affine=True, weight_offset=1.0, rounding='llama'"
    assert ours.RMSNorm(8, 1e-5).extra_repr() == torch.nn.RMSNorm(8, 1e-5).extra_repr()
    with pytest.raises(ValueError, match=r"it must end in \(8,\)"):
        ours.RMSNorm(8, elementwise_affine=False)(torch.randn(4, 9))
    module = ours.RMSNorm(8)
    module.eps = 0.5
    x = torch.randn(2, 8)
    close(module(x), functional.rms_norm(x, (8,), eps=0.5))
    with pytest.raises(ValueError, match="eps is -2"):
        module.eps = -2
    for given, sentence in (
        (((),), "one number or more"),
        (((3, -2),), "none may be negative"),
        ((8, -1.0), "eps is -1.0"),
        ((8, float("nan")), "eps is nan"),
    ):
        with pytest.raises(ValueError, match=sentence):
            ours.RMSNorm(*given)


# --- On a GPU -----------------------------------------------------------------------------------------------

on_a_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="the CPU device has no streams and graphs of PyTorch")


@on_a_gpu
def test_uses_the_current_stream():
    x, stream = torch.randn(4096, 4096), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10**8)
        late = x.mul(2.0)
        y = rms_norm.rms_norm(late)
    stream.synchronize()
    close(y, in_float64(late, torch.ones(4096)).float())


@on_a_gpu
def test_each_thread_uses_its_own_stream():
    """The input is late on the thread's stream: a kernel on another one would read what was there before."""
    inputs, results = [torch.randn(512, 4096) for _ in range(4)], {}
    torch.cuda.synchronize()

    def work(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            late = torch.zeros_like(inputs[number])
            torch.cuda._sleep(10**7)
            late.copy_(inputs[number])
            results[number] = rms_norm.rms_norm(late), ours.rms_norm(late)
            torch.cuda.current_stream().synchronize()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, x in enumerate(inputs):
        for y in results[number]:
            close(y, in_float64(x, torch.ones(4096)).float())


@on_a_gpu
def test_graphs_of_long_rows_have_a_workspace_each():
    """Two graphs, captured on one stream, replayed at once on two: with one workspace they would wait for ever."""
    inputs = [torch.randn(1, 1 << 20) for _ in range(2)]
    for x in inputs:
        rms_norm.rms_norm(x)
    graphs, outputs, streams = [], [], [torch.cuda.Stream() for _ in inputs]
    for x in inputs:
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1]):
            for _ in range(50):
                y = rms_norm.rms_norm(x)
        outputs.append(y)
    torch.cuda.synchronize()
    for _ in range(10):
        for graph, stream in zip(graphs, streams):
            with torch.cuda.stream(stream):
                graph.replay()
        rms_norm.rms_norm(inputs[0])
    torch.cuda.synchronize()
    for x, y in zip(inputs, outputs):
        close(y, in_float64(x, torch.ones(1 << 20)).float())
    del graphs, y  # what was captured next gets the workspaces that are free now
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = rms_norm.rms_norm(inputs[0])
    graph.replay()
    close(y, in_float64(inputs[0], torch.ones(1 << 20)).float())


@on_a_gpu
def test_another_place_is_refused():
    x = torch.randn(3, 8)
    with pytest.raises(ValueError, match="weight lies in host memory"):
        rms_norm.rms_norm(x, torch.ones(8, device="cpu"))
    if torch.cuda.device_count() > 1:
        with pytest.raises(ValueError, match="weight lies on GPU 1 and x on GPU 0"):
            rms_norm.rms_norm(x, torch.ones(8, device="cuda:1"))
        second = x.to("cuda:1")
        close(rms_norm.rms_norm(second), in_float64(second, torch.ones(8, device="cuda:1")).float())


# --- Models -------------------------------------------------------------------------------------------------

MODELS = ["llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text"]


def tiny(name, dtype=torch.float32):
    transformers = pytest.importorskip("transformers", minversion="5.0")
    sizes = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, head_dim=16)
    config = transformers.AutoConfig.for_model(name, **sizes, num_key_value_heads=2, vocab_size=128, pad_token_id=0)
    model = transformers.AutoModelForCausalLM.from_config(config).to(dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:  # the weights of norms, which begin all alike
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


KINDS = [(name, torch.float32) for name in MODELS] + [("qwen3", torch.bfloat16), ("gemma3_text", torch.bfloat16)]


@pytest.mark.parametrize("name, dtype", KINDS, ids=str)
def test_patched_models_answer_alike(name, dtype, monkeypatch):
    model, tokens = tiny(name, dtype), torch.randint(1, 128, (2, 7))
    with torch.no_grad():
        before = model(tokens, output_hidden_states=True)
        additions, kernel = [], rms_norm._arrays.kernel

        def counted(x, residual, *rest):
            additions.append(residual is not None)
            kernel(x, residual, *rest)

        monkeypatch.setattr(rms_norm._arrays, "kernel", counted)
        assert ours.patch_transformers(model).model is model
        after = model(tokens, output_hidden_states=True)
        assert sum(additions) == 6  # two in each layer
        close(after.logits, before.logits)
        for got, expected in zip(after.hidden_states, before.hidden_states):
            close(got, expected)
        chosen = model.generate(tokens, max_new_tokens=4, do_sample=False)
    model.train()
    model(tokens, labels=tokens).loss.backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    ours.unpatch(model)
    assert not any("rms_norm" in name for module in model.modules() for name in vars(module))
    model(tokens, labels=tokens).loss.backward()
    scale = 4 * torch.finfo(dtype).eps if dtype != torch.float32 else 1e-5
    for parameter, gradient in zip(model.parameters(), gradients):
        assert (parameter.grad - gradient).norm() <= 4 * scale * parameter.grad.norm() + 1e-6
    model.eval()
    with torch.no_grad():
        assert torch.equal(model(tokens).logits, before.logits)
        assert torch.equal(model.generate(tokens, max_new_tokens=4, do_sample=False), chosen)


def tiny_qwen3_vl():
    import transformers

    sizes = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, head_dim=16)
    rope = dict(rope_type="default", rope_theta=1e6, mrope_section=[4, 2, 2], mrope_interleaved=True)
    text = dict(sizes, num_key_value_heads=2, vocab_size=128, rope_parameters=rope)
    vision = dict(depth=2, hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=64)
    vision.update(num_position_embeddings=16, deepstack_visual_indexes=[0, 1])
    config = transformers.AutoConfig.for_model("qwen3_vl", text_config=text, vision_config=vision)
    return transformers.AutoModelForImageTextToText.from_config(config).eval()


def test_a_model_that_adds_features_of_an_image_between_layers():
    """The norm that was computed ahead is of a sum that is then changed: it must not be used."""
    pytest.importorskip("transformers", minversion="5.0")
    model = tiny_qwen3_vl().model.language_model
    places = torch.zeros(1, 7, dtype=torch.bool)
    places[0, 2:4] = True
    given = dict(inputs_embeds=torch.randn(1, 7, 64), visual_pos_masks=places)
    given.update(deepstack_visual_embeds=[torch.randn(2, 64) for _ in range(2)], use_cache=False)
    with torch.no_grad():
        before = model(**given).last_hidden_state
        after = ours.patch_transformers(model, dependent_launch=True).model(**given).last_hidden_state
    assert model.layers[0]._rms_norm_following[0] is model.layers[1].input_layernorm
    close(after, before)


def test_hooks_of_patched_norms_are_called():
    model, tokens, met = tiny("qwen3"), torch.randint(1, 128, (2, 7)), []
    for name, module in model.named_modules():
        if name.endswith("norm"):
            module.register_forward_hook(lambda module, given, result, name=name: met.append((name, given[0], result)))
    with torch.no_grad():
        model(tokens)
        before, met[:] = list(met), []
        ours.patch_transformers(model).model(tokens)
    assert len(before) == 13 and [name for name, *_ in met] == [name for name, *_ in before]
    for (_, *got), (_, *expected) in zip(met, before):
        close(got[0], expected[0])
        close(got[1], expected[1])


def test_patched_models_compile():
    model, tokens = ours.patch_transformers(tiny("qwen3")).model, torch.randint(1, 128, (2, 7))
    with torch.no_grad():
        expected = model(tokens, use_cache=False).logits
        close(torch.compile(model, fullgraph=True)(tokens, use_cache=False).logits, expected)


def gradients_of(model, tokens):
    model(tokens, labels=tokens).loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


def check_gradients(got, expected):
    assert got.keys() == expected.keys() and len(got) > 20
    for name, gradient in expected.items():
        assert (got[name] - gradient).norm() <= 1e-4 * gradient.norm() + 1e-6


@pytest.mark.parametrize("name, reentrant", [("llama", True), ("gemma3_text", True), ("qwen3", False)])
def test_patched_models_train_with_checkpointing(name, reentrant):
    """Reentrant, the layers run without gradients at first: what they compute ahead must not come before the last norm's
    own. Otherwise, what the backward pass computes again must be what the forward pass kept."""
    model, tokens = tiny(name).train(), torch.randint(1, 128, (2, 7))
    patched = ours.patch_transformers(copy.deepcopy(model)).model
    for one in (model, patched):
        one.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    check_gradients(gradients_of(patched, tokens), gradients_of(model, tokens))


@pytest.mark.full
def test_patched_models_train_when_compiled():
    model, tokens = tiny("llama").train(), torch.randint(1, 128, (2, 7))
    patched = ours.patch_transformers(copy.deepcopy(model)).model
    got = gradients_of(torch.compile(patched, backend="aot_eager"), tokens)
    check_gradients(
        {name.removeprefix("_orig_mod."): gradient for name, gradient in got.items()}, gradients_of(model, tokens)
    )


def test_a_norm_that_is_trained_after_layers_that_are_not():
    model = ours.patch_transformers(tiny("llama")).model.model
    x, positions = torch.randn(1, 5, 64), torch.arange(5)[None]
    with torch.no_grad():
        for layer in model.layers:
            x = layer(x, position_embeddings=model.rotary_emb(x, positions))
    assert model.norm(x).requires_grad


def changed(module, given, result=None):
    (given[0] if result is None else result).add_(1.0)


CHANGES = {
    "after a layer": lambda model: model.layers[0].register_forward_hook(changed),
    "before a layer": lambda model: model.layers[1].register_forward_pre_hook(changed),
    "before a norm": lambda model: model.layers[1].input_layernorm.register_forward_pre_hook(changed),
    "before the last norm": lambda model: model.norm.register_forward_pre_hook(changed),
    "before the second norm": lambda model: model.layers[1].post_attention_layernorm.register_forward_pre_hook(changed),
}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", CHANGES)
def test_hooks_may_change_what_they_see(name, mode):
    model, tokens = tiny("llama"), torch.randint(1, 128, (2, 7))
    CHANGES[name](model.model)
    with mode():
        expected = model(tokens, use_cache=False).logits
        close(ours.patch_transformers(model).model(tokens, use_cache=False).logits, expected)


def test_a_norm_ahead_is_of_what_the_tensor_holds():
    ahead, total, normed = rms_norm._transformers.Ahead(), torch.zeros(2, 3), torch.ones(2, 3)
    with torch.no_grad():
        ahead.put(total, normed)
        assert ahead.take(total) is normed and ahead.take(total) is None
        ahead.put(total, normed)
        assert ahead.take(total.add_(1.0)) is None


class Wrapped(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return 2 * self.module(x)


def forward_of_its_own(norm):
    norm.forward = lambda x, plain=type(norm).forward: 2 * plain(norm, x)


def replace(name, make):
    def change(model):
        for layer in model.layers[:2]:
            setattr(layer, name, make(getattr(layer, name)))

    return change


OTHER_NORMS = {
    "wrapped": replace("post_attention_layernorm", Wrapped),
    "no norm": replace("post_attention_layernorm", lambda norm: torch.nn.Identity()),
    "no first norm": replace("input_layernorm", lambda norm: torch.nn.Identity()),
    "a forward of its own": lambda model: [
        forward_of_its_own(layer.post_attention_layernorm) for layer in model.layers
    ],
    "a first one of its own": lambda model: [forward_of_its_own(layer.input_layernorm) for layer in model.layers],
}


@pytest.mark.parametrize("before", [False, True], ids=["patched first", "patched then"])
@pytest.mark.parametrize("name", OTHER_NORMS)
def test_norms_that_are_replaced(name, before):
    model, tokens = tiny("llama"), torch.randint(1, 128, (2, 7))
    patched = copy.deepcopy(model)
    OTHER_NORMS[name](model.model)
    for step in (OTHER_NORMS[name], ours.patch_transformers)[:: 1 if before else -1]:
        step(patched.model)
    with torch.no_grad():
        close(patched(tokens).logits, model(tokens).logits)


def test_backward_hooks_and_hooks_of_all_modules_are_called():
    model, tokens = tiny("llama"), torch.randint(1, 128, (2, 7))
    met = []
    for name, module in model.named_modules():
        if name.endswith("norm"):
            module.register_full_backward_hook(lambda module, gradients, given: met.append("backward"))

    def forward_hook(module, given, result):
        if type(module).__name__ == "LlamaRMSNorm":
            met.append("forward")

    def count():
        met.clear()
        handle = torch.nn.modules.module.register_module_forward_hook(forward_hook)
        try:
            model(tokens, labels=tokens).loss.backward()
            with torch.no_grad():
                model(tokens)
        finally:
            handle.remove()
        return sorted(met)

    expected = count()
    assert expected == 7 * ["backward"] + 14 * ["forward"]
    ours.patch_transformers(model)
    assert count() == expected


@pytest.mark.parametrize("part", ["layers.1", "layers.1.input_layernorm", "layers.1.post_attention_layernorm", "norm"])
def test_a_part_may_be_patched_or_not(part):
    model, tokens = tiny("llama"), torch.randint(1, 128, (2, 7))
    with torch.no_grad():
        expected = model(tokens).logits
        ours.patch_transformers(model.model.get_submodule(part))
        close(model(tokens).logits, expected)
        ours.unpatch(ours.patch_transformers(model).model.model.get_submodule(part))
        close(model(tokens).logits, expected)


def test_norms_whose_weights_are_moved_when_they_are_called():
    """As by accelerate: the weight is on the meta device, and the module's forward gets it before it computes."""
    model, tokens = tiny("llama"), torch.randint(1, 128, (2, 7))

    def offload(norm):
        weight, plain = norm.weight, norm.forward

        def forward(x):
            norm._parameters["weight"] = weight
            try:
                return plain(x)
            finally:
                norm._parameters["weight"] = torch.nn.Parameter(weight.to("meta"))

        norm.forward, norm._parameters["weight"] = forward, torch.nn.Parameter(weight.to("meta"))

    with torch.no_grad():
        expected = model(tokens).logits
        ours.patch_transformers(model)
        for name, module in model.named_modules():
            if name.endswith("norm"):
                offload(module)
        close(model(tokens).logits, expected)


def test_patched_models_are_pickled_and_copied(tmp_path):
    model, tokens = ours.patch_transformers(tiny("gemma2")).model, torch.randint(1, 128, (2, 7))
    with torch.no_grad():
        expected = model(tokens).logits
        for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert type(again.model.norm) is type(model.model.norm)
            assert again.model.layers[0]._rms_norm_following[0] is again.model.layers[1].input_layernorm
            assert again.model.layers[0]._rms_norm_following[1] is again.model.layers[1]._forward_pre_hooks
            assert torch.equal(again(tokens).logits, expected)
            assert not any("rms_norm" in name for module in ours.unpatch(again).modules() for name in vars(module))
    torch.save(model.model.norm, tmp_path / "norm")
    code = f"import torch; print(type(torch.load({str(tmp_path / 'norm')!r}, weights_only=False)).__mro__[1].__name__)"
    loaded = run(sys.executable, "-c", code, PYTHONPATH=str(SITE))
    assert loaded.stdout == "NormForward\n", loaded.stderr


@pytest.mark.parametrize("wants_grad", [False, True])
def test_patched_norms_take_what_the_models_own_take(wants_grad):
    norm = tiny("llama").model.norm
    patched = ours.patch_transformers(copy.deepcopy(norm)).model
    inputs = [torch.randn(64, 5).T, torch.randn(5, 1), torch.randn(2, 3, 4, 5, 64).permute(3, 1, 0, 2, 4)[:, :2, :, :3]]
    with torch.set_grad_enabled(wants_grad):
        for x in inputs:
            close(patched(x), norm(x))
        x = torch.randn(5, 64).double()
        close(patched.double()(x), norm.double()(x))
    model, tokens = tiny("llama").double(), torch.randint(1, 128, (2, 7))
    with torch.set_grad_enabled(wants_grad):
        expected = model(tokens).logits
        close(ours.patch_transformers(model).model(tokens).logits, expected)


def test_layers_take_arguments_by_their_places():
    for name in ("llama", "gemma2"):
        model = tiny(name).model
        x = torch.randn(1, 5, 64)
        places = model.rotary_emb(x, torch.arange(5)[None])
        given = (places, None) if name == "gemma2" else (None, None, None, False, places)
        with torch.no_grad():
            expected = model.layers[0](x, *given)
            close(ours.patch_transformers(model).model.layers[0](x, *given), expected)


class LlamaRMSNorm(torch.nn.Module):
    """Not that of transformers."""


def test_other_models_are_refused():
    with pytest.raises(ValueError, match="LlamaRMSNorm: its forward takes other arguments than one tensor"):
        ours.patch_transformers(torch.nn.Sequential(LlamaRMSNorm()))
    with pytest.raises(ValueError, match="no RMSNorm that the kernels compute"):
        ours.patch_transformers(torch.nn.Linear(2, 2))
