"""rms_norm.q4 with PyTorch: tensors, operators, torch.compile. What it computes is tested by test_q4.py."""

import pytest
from python_package import BACKEND, install

torch = pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")
install()
from rms_norm import q4, q4_torch  # noqa: F401

DEVICE = "cuda" if BACKEND == "cuda" else "cpu"
Q4_0, Q8_0 = gguf.GGMLQuantizationType.Q4_0, gguf.GGMLQuantizationType.Q8_0
OPERATORS = torch.ops.rms_norm
TYPES = [torch.float32, torch.float16, torch.bfloat16]


def matrix(m, k):
    """The weights, repacked, and in float64."""
    generator = torch.Generator().manual_seed(1)
    blocks = gguf.quants.quantize(torch.randn(m, k, generator=generator).numpy(), Q4_0)
    return q4.repack(torch.from_numpy(blocks).to(DEVICE)), torch.from_numpy(
        gguf.quants.dequantize(blocks, Q4_0)
    ).double()


def random(*shape, dtype):
    return torch.randn(shape, generator=torch.Generator().manual_seed(2)).to(DEVICE, dtype)


def in_8_bits(x):
    blocks = gguf.quants.quantize(x.float().cpu().numpy(), Q8_0)
    return torch.from_numpy(gguf.quants.dequantize(blocks, Q8_0)).double()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_answers(dtype):
    (weights, w), x, bias = matrix(48, 96), random(2, 3, 96, dtype=dtype), random(48, dtype=dtype)
    y = q4.multiply(weights, x, bias)
    assert y.dtype == dtype and y.device == x.device
    close = dict(rtol=torch.finfo(dtype).eps, atol=2e-5)
    expected = in_8_bits(x) @ w.T + bias.double().cpu()
    torch.testing.assert_close(y.double().cpu(), expected, **close)
    numbers = OPERATORS.q4_rms_norm_quantize(x, None, 1e-6)
    normalized = torch.nn.functional.rms_norm(x.double().cpu(), (96,), eps=1e-6)
    product = OPERATORS.q4_multiply_quantized(weights.packed, 48, 96, numbers, x.shape, torch.float32).double().cpu()
    assert float((product - normalized @ w.T).norm() / (normalized @ w.T).norm()) < 0.01  # 8 bits


def test_strides_of_a_slice():
    (weights, _), wide = matrix(32, 64), random(3, 192, dtype=torch.float32)
    assert torch.equal(q4.multiply(weights, wide[:, 64:128]), q4.multiply(weights, wide[:, 64:128].contiguous()))


OPCHECKS = {
    "q4_multiply": lambda w, x: (w.packed, w.m, w.k, x),
    "q4_multiply_quantized": lambda w, x: (
        w.packed,
        w.m,
        w.k,
        q4.quantize(x).numbers,
        x.shape,
        x.dtype,
        x[0, :32].clone(),
    ),
    "q4_rms_norm_quantize": lambda w, x: (x, x[0].clone()),
    "q4_add_rms_norm_quantize": lambda w, x: (x, x.float(), x[0].clone(), 1e-5),
}


@pytest.mark.parametrize("name", OPCHECKS)
def test_operators_keep_pytorchs_rules(name):
    (weights, _), x = matrix(32, 64), random(2, 64, dtype=torch.bfloat16)
    torch.library.opcheck(getattr(OPERATORS, name).default, OPCHECKS[name](weights, x))


def test_compiled_in_one_graph():
    (weights, _), x, weight = matrix(32, 64), random(2, 64, dtype=torch.float32), random(64, dtype=torch.float32)

    def layer(x, residual, weight):
        numbers, total = OPERATORS.q4_add_rms_norm_quantize(x, residual, weight)
        y = OPERATORS.q4_multiply_quantized(weights.packed, weights.m, weights.k, numbers, x.shape, x.dtype)
        return y.relu(), total

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for expected, got in zip(layer(x, x, weight), compiled(x, x, weight)):
        assert torch.equal(expected, got)


def test_refused():
    (weights, _), x = matrix(32, 64), random(2, 64, dtype=torch.float32)
    with pytest.raises(ValueError, match="^a tensor requires grad, and q4 has no backward"):
        q4.multiply(weights, x.clone().requires_grad_())
    with torch.no_grad():
        q4.multiply(weights, x.clone().requires_grad_())
    with pytest.raises(
        ValueError, match="^PyTorch traces or transforms this call: use an operator of rms_norm.q4_torch$"
    ):
        torch.func.vmap(lambda row: q4.multiply(weights, row))(x)
    with pytest.raises(ValueError, match="x has the shape"):
        OPERATORS.q4_multiply(weights.packed, 32, 64, x[:, :32].clone())
