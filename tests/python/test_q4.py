"""rms_norm.q4 with NumPy: products and norms against float64, of weights and of x as the gguf package quantizes them."""

import pathlib
import re

import pytest
from conftest import ROOT
from python_package import TYPES, install

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")
gguf = pytest.importorskip("gguf")
F32, F16, BF16 = np.dtype("float32"), np.dtype("float16"), np.dtype(ml_dtypes.bfloat16)
ROUNDOFF = {F32: 0.0, F16: 2.0**-11, BF16: 2.0**-8}  # to the type, from float32
Q4_0, Q8_0 = gguf.GGMLQuantizationType.Q4_0, gguf.GGMLQuantizationType.Q8_0


@pytest.fixture(scope="module")
def q4():
    pytest.importorskip("tvm_ffi")
    install()
    from rms_norm import q4

    return q4


def random(shape, dtype=F32, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def blocks_of(m, k, seed=2):
    return gguf.quants.quantize(random((m, k), seed=seed), Q4_0)


def in_8_bits(x):
    """x as numbers of q8_0, which are those of q8_1."""
    return gguf.quants.dequantize(gguf.quants.quantize(x.astype(np.float32), Q8_0), Q8_0).astype(np.float64)


def expect(got, x, blocks, bias=None):
    """got is x · Wᵀ + bias for x of 8 bits: float32's errors of a sum over the blocks, and one rounding. NaN fails."""
    weights = gguf.quants.dequantize(blocks, Q4_0).astype(np.float64)
    expected, magnitude = x @ weights.T, np.abs(x) @ np.abs(weights).T
    if bias is not None:
        expected, magnitude = expected + bias.astype(np.float64), magnitude + np.abs(bias.astype(np.float64))
    allowed = 2.0**-24 * (x.shape[-1] / 32 + 4) * magnitude + ROUNDOFF[got.dtype] * np.abs(expected)
    error = np.abs(got.astype(np.float64) - expected)
    assert got.shape == expected.shape and (error <= allowed).all(), (error.max(), allowed.max())


# --- Products -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [F32, F16, BF16] if TYPES == "usual" else [F32], ids=str)
@pytest.mark.parametrize("shape, m", [((256,), 70), ((3, 64), 64), ((2, 3, 96), 100), ((20, 32), 1)], ids=str)
def test_products(q4, dtype, shape, m):
    x, bias, blocks = random(shape, dtype), random(m, dtype, 3), blocks_of(m, shape[-1])
    weights = q4.repack(blocks)
    assert (weights.m, weights.k) == (m, shape[-1])
    y = q4.multiply(weights, x)
    assert y.dtype == dtype
    expect(y, in_8_bits(x), blocks)
    expect(q4.multiply(weights, x, bias), in_8_bits(x), blocks, bias)
    numbers = q4.quantize(x)
    assert numbers.shape == shape and (q4.multiply(weights, numbers, bias) == q4.multiply(weights, x, bias)).all()


def test_many_columns(q4):
    x, blocks = random((33, 320)), blocks_of(65, 320)
    expect(q4.multiply(q4.repack(blocks), x), in_8_bits(x), blocks)


def test_a_row_has_the_bits_that_it_has_alone(q4):
    x, weights = random((9, 1024)), q4.repack(blocks_of(65, 1024))
    invariant, usual = (
        q4.multiply(weights, x, **options)[7] != q4.multiply(weights, x[7], **options)
        for options in ({"batch_invariant": True}, {})
    )
    assert not invariant.any() and usual.any()


def test_gaps_between_rows_stay_as_they_are(q4):
    wide, y, blocks = random((4, 160)), np.full((4, 50), 7.0, F32), blocks_of(40, 64)
    result = q4.multiply(q4.repack(blocks), wide[:, 32:96], out=y[:, 5:45])
    assert np.shares_memory(result, y) and (y[:, :5] == 7).all() and (y[:, 45:] == 7).all()
    expect(y[:, 5:45], in_8_bits(wide[:, 32:96]), blocks)


def test_quantized_x_gives_any_type(q4):
    x, blocks = random((2, 64), BF16), blocks_of(32, 64)
    y = q4.multiply(q4.repack(blocks), q4.quantize(x), out=np.empty((2, 32), F32))
    expect(y, in_8_bits(x), blocks)


def test_nothing_to_multiply(q4):
    weights = q4.repack(blocks_of(32, 64))
    assert q4.multiply(weights, np.empty((0, 64), F32)).shape == (0, 32)
    assert q4.multiply(q4.repack(np.empty((0, 36), np.uint8)), random((2, 64))).shape == (2, 0)


def test_tensors_of_a_gguf_file(q4, tmp_path):
    path, blocks = tmp_path / "tiny.gguf", blocks_of(48, 96)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("q4", blocks, raw_dtype=Q4_0)
    writer.add_tensor("f32", random((4, 32)))
    for step in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{step}_to_file")()
    writer.close()
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    assert not tensors["q4"].data.flags.writeable or isinstance(tensors["q4"].data, np.memmap)
    weights, x = q4.repack(tensors["q4"]), random(96)
    expect(q4.multiply(weights, x), in_8_bits(x), blocks)
    with pytest.raises(TypeError, match="^the tensor is of type F32; Q4_0 is wanted$"):
        q4.repack(tensors["f32"])


# --- Norms --------------------------------------------------------------------------------------------------


def norm(x, weight, offset=0.0):
    x = x.astype(np.float64)
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * (offset + weight.astype(np.float64))


def numbers_of(quantized, q4):
    """What a Quantized holds, by its product with the unit matrix: a weight of 1 is exact in q4_0, and so are zeros."""
    k = quantized.shape[-1]
    blocks = np.zeros((k, k // 32, 18), np.uint8)
    blocks[..., :2] = np.frombuffer(np.float16(1).tobytes(), np.uint8)
    nibbles = np.full((k, k), 8, np.uint8) + np.eye(k, dtype=np.uint8)
    parts = nibbles.reshape(k, k // 32, 2, 16)
    blocks[..., 2:] = parts[:, :, 0] | parts[:, :, 1] << 4
    return q4.multiply(q4.repack(blocks.reshape(k, -1)), quantized, out=np.empty(quantized.shape, F32)).astype(
        np.float64
    )


def expect_numbers(got, expected):
    """Half of a step of 1/127 of the largest of 32, a float16's rounding of the step, and float32's errors."""
    blocks = np.abs(expected).reshape(*expected.shape[:-1], -1, 32)
    step = np.repeat(blocks.max(axis=-1), 32, axis=-1).reshape(expected.shape) / 127
    assert (np.abs(got - expected) <= 0.5001 * step + (2.0**-11 + 2.0**-18) * np.abs(expected)).all()


@pytest.mark.parametrize("weight_type", [None, F32], ids=["same", "float32"])
@pytest.mark.parametrize("dtype", [F32, F16, BF16], ids=str)
def test_norms(q4, dtype, weight_type):
    x, weight = 3 * random((2, 2, 96), dtype), random(96, weight_type or dtype, 2)
    x = x.astype(dtype)
    expect_numbers(numbers_of(q4.rms_norm_quantize(x, weight), q4), norm(x, weight))
    expect_numbers(numbers_of(q4.rms_norm_quantize(x), q4), norm(x, np.ones(96)))
    got = q4.rms_norm_quantize(x, weight, weight_offset=1.0)
    expect_numbers(numbers_of(got, q4), norm(x, weight, 1.0))


@pytest.mark.parametrize("residual_type", [None, F32], ids=["same", "float32"])
@pytest.mark.parametrize("dtype", [F32, F16, BF16], ids=str)
def test_norms_of_sums(q4, dtype, residual_type):
    x, residual, weight = random((3, 64), dtype), random((3, 64), residual_type or dtype, 4), random(64, dtype, 5)
    total = (x.astype(np.float32) + residual.astype(np.float32)).astype(residual.dtype)
    before, out = residual.copy(), np.empty_like(residual)
    got, returned = q4.add_rms_norm_quantize(x, residual, weight, residual_out=out)
    assert returned is out and (out == total).all() and (residual == before).all()
    expect_numbers(numbers_of(got, q4), norm(total, weight))
    got, returned = q4.add_rms_norm_quantize(x, residual, weight)
    assert returned is residual and (residual == total).all()


# --- What is refused ----------------------------------------------------------------------------------------


def refusals(q4):
    x, weights = random((2, 64)), q4.repack(blocks_of(32, 64))
    numbers = q4.quantize(x)
    multiply, cut = q4.multiply, q4.Quantized(numbers.numbers[:-1], numbers.shape, F32)
    readonly = x.copy()
    readonly.flags.writeable = False
    return [
        (
            lambda: q4.repack(x),
            ValueError,
            r"blocks has the shape (2, 64) and elements of type float32; (m, k / 32 * 18)",
        ),
        (
            lambda: q4.repack(np.zeros((2, 20), np.uint8)),
            ValueError,
            "blocks has the shape (2, 20) and elements of type uint8",
        ),
        (lambda: q4.repack(np.zeros(18, np.uint8)), ValueError, "blocks has the shape (18,)"),
        (
            lambda: q4.repack(np.zeros((4, 36), np.uint8)[:, :18]),
            ValueError,
            "the rows of blocks do not follow each other",
        ),
        (lambda: q4.repack([1]), TypeError, "blocks is a list; it must be an array"),
        (lambda: multiply(x, x), TypeError, "weights are a ndarray; they must be what repack() returned"),
        (lambda: multiply(weights, x[:, :32].copy()), ValueError, "x has the shape (2, 32); (..., 64) is wanted"),
        (lambda: multiply(weights, x.astype(np.float64)), TypeError, "float64; float32, float16 and"),
        (lambda: multiply(weights, x[:, ::-1]), ValueError, "the last dimension of x is not contiguous"),
        (
            lambda: multiply(weights, random((4, 4, 64))[::2, ::2]),
            ValueError,
            "do not follow each other with one stride",
        ),
        (lambda: multiply(weights, np.broadcast_to(x[0], (3, 64)).copy()[::-1]), ValueError, "with one stride"),
        (
            lambda: multiply(weights, x, random(31)),
            ValueError,
            "bias has the shape (31,), and out has the shape (2, 32)",
        ),
        (
            lambda: multiply(weights, x, random(32, F16)),
            TypeError,
            "bias is float16 and out is float32; they must have",
        ),
        (lambda: multiply(weights, x, out=np.empty((2, 31), F32)), ValueError, "out has the shape (2, 31); (2, 32) is"),
        (lambda: multiply(weights, x, out=np.empty((2, 32), F16)), TypeError, "x is float32 and out is float16; they"),
        (lambda: multiply(weights, x, out=x[:, :32]), ValueError, "out overlaps x"),
        (lambda: multiply(weights, x, out=readonly[:, :32]), ValueError, "out is read-only"),
        (lambda: multiply(weights, cut), ValueError, "x has the shape (135,) and elements of type uint8; (136,)"),
        (lambda: multiply(weights, x, [1.0]), TypeError, "bias is [1.0], which is not an array"),
        (lambda: q4.quantize(x[:, :40]), ValueError, "k is not a multiple of 32"),
        (lambda: q4.quantize(np.ones((), F32)), ValueError, "x has no dimension; (..., k) is wanted"),
        (lambda: q4.rms_norm_quantize(x, random(32)), ValueError, "weight has the shape (32,)"),
        (
            lambda: q4.rms_norm_quantize(x, random(64, F16)),
            TypeError,
            "weight is float16 and x is float32; weight must",
        ),
        (lambda: q4.rms_norm_quantize(x, eps=-1.0), ValueError, "eps is -1.0"),
        (lambda: q4.add_rms_norm_quantize(x, None), TypeError, "residual is None"),
        (lambda: q4.add_rms_norm_quantize(x, x[:1]), ValueError, "residual has the shape (1, 64)"),
        (lambda: q4.add_rms_norm_quantize(x, x.astype(F16)), TypeError, "residual is float16 and x is float32"),
    ]


def test_refused(q4):
    for call, error, sentence in refusals(q4):
        with pytest.raises(error) as raised:
            call()
        assert sentence in str(raised.value), raised.value
        assert "\n" not in str(raised.value)


def test_the_example_of_the_page_runs(q4, monkeypatch, capsys):
    page = pathlib.Path(ROOT / "python/README.md").read_text(encoding="utf-8")
    code, printed = re.search(r"```python\n([^`]*q4\.repack[^`]*)```\s+It prints ([^:]+):", page).groups()
    exec(code, {})
    assert capsys.readouterr().out == printed + "\n"
