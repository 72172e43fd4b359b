"""The Python package, built for the CPU device: its answers with NumPy, what it refuses, and how it is packed.

Its PyTorch part is tested by test_python_torch.py. Everything runs in this process, with the package in build/.
"""

import inspect
import pathlib
import re
import shutil
import sys
import tarfile
import threading

import pytest
from conftest import run
from python_package import PACKAGE, SITE, install, pip_install
from python_package import TYPES as BUILT

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")
F32, F16, BF16 = np.dtype("float32"), np.dtype("float16"), np.dtype(ml_dtypes.bfloat16)
TYPES = [F32, F16, BF16] if BUILT == "usual" else [F32]
ROUNDOFF = {F32: 2.0**-24, F16: 2.0**-11, BF16: 2.0**-8}
SMALLEST = {F32: 2.0**-126, F16: 2.0**-24, BF16: 2.0**-126}  # steps of subnormal halves


@pytest.fixture(scope="module")
def rms_norm():
    pytest.importorskip("tvm_ffi")
    return install()


def random(shape, dtype, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def oracle(x, weight=None, eps=1e-6, offset=0.0):
    x = x.astype(np.float64)
    y = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    return y if weight is None else y * (offset + weight.astype(np.float64))


def expect(got, expected, dtype=None, roundings=2, cols=None):
    """So many roundings to the type, and float32's errors, as common/operators/rms_norm.cpp derives them. NaN fails."""
    dtype = got.dtype if dtype is None else dtype
    n = float(cols or got.shape[-1])
    in_float32 = (8 + 2 * np.sqrt(n)) * 2.0**-24
    allowed = (roundings * ROUNDOFF[dtype] * (1 + 2.0**-6) + in_float32) * np.abs(expected) + 2 * SMALLEST[dtype]
    error = np.abs(got.astype(np.float64) - expected)
    wrong = ~(error <= allowed)
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size} wrong, the worst by {error.max()}"


# --- Answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(1,), (7,), (4, 1000), (3, 4096), (2, 3, 111), (2, 3, 5, 64), (1, 40000)], ids=str)
def test_any_rank(rms_norm, dtype, shape):
    x, weight = random(shape, dtype), random(shape[-1], dtype, 2)
    y = rms_norm.rms_norm(x, weight)
    assert y.dtype == dtype and y.shape == shape
    expect(y, oracle(x, weight))
    expect(rms_norm.rms_norm(x), oracle(x))


# x, residual, weight, out: README.md's table
MIXTURES = [(t, r, t, t) for t in TYPES for r in (None, t)]
for half in TYPES[1:]:
    MIXTURES += [(half, None, F32, half), (half, half, F32, half), (F32, None, half, F32), (F32, F32, half, F32)]
    MIXTURES += [(F32, None, half, half), (half, F32, half, half), (half, F32, F32, half)]


@pytest.mark.parametrize("x, residual, weight, out", MIXTURES, ids=str)
def test_mixtures_of_types(rms_norm, x, residual, weight, out):
    given, factor, y = random((5, 200), x), random(200, weight, 2), np.full((5, 200), np.nan, out)
    if residual is None:
        assert rms_norm.rms_norm(given, factor, out=y) is y
        expect(y, oracle(given, factor))
        return
    stream, total = random((5, 200), residual, 3), np.full((5, 200), np.nan, residual)
    rms_norm.fused_add_rms_norm(given, stream, factor, out=y, residual_out=total)
    expect(total, given.astype(np.float64) + stream.astype(np.float64), roundings=1)
    expect(y, oracle(total, factor))


def test_every_other_mixture_is_refused_by_name(rms_norm):
    for x in TYPES:
        for residual in (None, *TYPES):
            for weight in TYPES:
                for out in TYPES:
                    if (x, residual, weight, out) in MIXTURES:
                        continue
                    arrays = [np.ones((2, 8), x), np.ones(8, weight), np.ones((2, 8), out)]
                    with pytest.raises(TypeError, match="not among the types.*RMS_NORM_TYPES=all"):
                        if residual is None:
                            rms_norm.rms_norm(arrays[0], arrays[1], out=arrays[2])
                        else:
                            rms_norm.fused_add_rms_norm(arrays[0], np.ones((2, 8), residual), arrays[1], out=arrays[2])


@pytest.mark.full
def test_options(rms_norm):
    x, weight = random((6, 300), F16), random(300, F16, 2)
    expect(rms_norm.rms_norm(x, weight, 0.5), oracle(x, weight, 0.5))
    expect(rms_norm.rms_norm(x, weight, weight_offset=1.0), oracle(x, weight, offset=1.0))
    expect(rms_norm.rms_norm(x, weight_offset=1.0), oracle(x))  # no effect without a weight
    plain = rms_norm.rms_norm(x, weight)
    for cache in ("tuned", "normal", "evict_first"):
        assert (rms_norm.rms_norm(x, weight, cache=cache, dependent_launch=True) == plain).all()
    once = (oracle(x).astype(F16).astype(np.float64) * weight.astype(np.float64)).astype(F16)
    llama = rms_norm.rms_norm(x, weight, rounding="llama")
    assert (llama != plain).any() and (llama == once).mean() > 0.99


@pytest.mark.full
def test_adds_in_place_by_default(rms_norm):
    x, residual, weight = random((6, 300), BF16), random((6, 300), BF16, 2), random(300, BF16, 3)
    total = (x.astype(F32) + residual.astype(F32)).astype(BF16)
    y, stream = rms_norm.fused_add_rms_norm(x, residual, weight)
    assert y is x and stream is residual and (residual == total).all()
    expect(x, oracle(total, weight))


def test_strides(rms_norm):
    weight = random(64, F32, 2)
    wide = random((10, 100), F32)
    heads = random((6, 5 * 64), F32).reshape(6, 5, 64)[:, 1:4]  # three of five heads of packed rows
    for x in (wide[:, :64], wide[::3, 7:71], wide[::-1, :64], heads, heads.transpose(1, 0, 2)):
        expect(rms_norm.rms_norm(x, weight), oracle(x, weight))
        out = np.full((*x.shape[:-1], 80), np.nan, F32)
        rms_norm.rms_norm(x, weight, out=out[..., 3:67])
        expect(out[..., 3:67], oracle(x, weight))
        assert np.isnan(out[..., :3]).all() and np.isnan(out[..., 67:]).all()
    turned = random((2, 7, 4, 64), F32).transpose(0, 2, 1, 3)  # heads before tokens, as some models have them
    out = np.empty((2, 7, 4, 64), F32).transpose(0, 2, 1, 3)
    expect(rms_norm.rms_norm(turned, weight, out=out), oracle(turned, weight))
    row = np.broadcast_to(random(64, F32), (9, 64))  # a stride of 0, and read-only
    expect(rms_norm.rms_norm(row, weight), oracle(row, weight))


def test_in_place(rms_norm):
    x = random((5, 100), F32)
    expected = oracle(x[:, :60])
    outside = x[:, 60:].copy()
    assert rms_norm.rms_norm(x[:, :60], out=x[:, :60]).base is x
    expect(x[:, :60], expected)
    assert (x[:, 60:] == outside).all()


@pytest.mark.full
def test_qk_norm_changes_only_the_heads(rms_norm):
    qkv, q_weight, k_weight = random((2, 3, (4 + 2 + 2) * 16), F16), random(16, F16, 2), random(16, F16, 3)
    before = qkv.copy()
    assert rms_norm.qk_norm(qkv, q_weight, k_weight, 4, 2, 16) is qkv
    expect(qkv[..., :64], oracle(before[..., :64].reshape(2, 3, 4, 16), q_weight).reshape(2, 3, 64), cols=16)
    expect(qkv[..., 64:96], oracle(before[..., 64:96].reshape(2, 3, 2, 16), k_weight).reshape(2, 3, 32), cols=16)
    assert (qkv[..., 96:] == before[..., 96:]).all()


def rotated(x, positions, cos_sin, rotary_dim, neighbours):
    """Heads in the last dimension, rotated by the positions of the leading ones; and the size of the terms."""
    parts = cos_sin.astype(np.float64)[positions][..., None, :]
    half = rotary_dim // 2
    first = np.s_[..., 0:rotary_dim:2] if neighbours else np.s_[..., :half]
    second = np.s_[..., 1:rotary_dim:2] if neighbours else np.s_[..., half:rotary_dim]
    (cos, sin), y, terms = (parts[..., :half], parts[..., half:]), x.copy(), np.abs(x)
    y[first], y[second] = x[first] * cos - x[second] * sin, x[second] * cos + x[first] * sin
    terms[first] = np.abs(x[first] * cos) + np.abs(x[second] * sin)
    terms[second] = np.abs(x[second] * cos) + np.abs(x[first] * sin)
    return y, terms


@pytest.mark.parametrize("neighbours", [False, True], ids=["halves", "neighbours"])
@pytest.mark.parametrize("rotary_dim", [16, 8])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_qk_norm_rope(rms_norm, dtype, rotary_dim, neighbours):
    qkv, positions = random((2, 3, (4 + 2 + 2) * 16), dtype), np.array([[0, 10, 3], [7, 7, 1]])
    for of_weight in (dtype, F32):
        for of_angle in (dtype, F32):
            q_weight, k_weight = random(16, of_weight, 2), random(16, of_weight, 3)
            cos_sin, y = random((11, rotary_dim), of_angle, 4), qkv.copy()
            given = y, q_weight, k_weight, cos_sin, positions, 4, 2, 16
            assert rms_norm.qk_norm_rope(*given, neighbours=neighbours, weight_offset=1.0) is y
            for columns, heads, weight in ((np.s_[..., :64], 4, q_weight), (np.s_[..., 64:96], 2, k_weight)):
                normed = oracle(qkv[columns].reshape(2, 3, heads, 16), weight, offset=1.0)
                expected, terms = rotated(normed, positions, cos_sin, rotary_dim, neighbours)
                error = np.abs(y[columns].reshape(expected.shape).astype(np.float64) - expected)
                allowed = ROUNDOFF[dtype] * np.abs(expected) + 32 * 2.0**-24 * terms + SMALLEST[dtype]
                assert (error <= allowed).all()
            assert (y[..., 96:] == qkv[..., 96:]).all()


def test_qk_norm_rope_of_vllm_and_of_unknown_positions(rms_norm):
    from rms_norm import vllm

    qkv, weight, cos_sin = random((3, 8 * 16), F16), random(16, F16, 2), random((5, 16), F32, 3)
    for is_neox in (True, False):
        got, expected, positions = qkv.copy(), qkv.copy(), np.array([4, 0, 2])
        assert vllm.fused_qk_norm_rope(got, 4, 2, 2, 16, 1e-5, weight, weight, cos_sin, is_neox, positions) is None
        rms_norm.qk_norm_rope(expected, weight, weight, cos_sin, positions, 4, 2, 16, 1e-5, neighbours=not is_neox)
        assert (got == expected).all() and (got[:, :96] != qkv[:, :96]).any()
    y = rms_norm.qk_norm_rope(qkv.copy(), weight, None, cos_sin, np.array([5, 0, -1]), 4, 2, 16)
    assert (np.isnan(y) == [[row != 1 and column < 96 for column in range(128)] for row in range(3)]).all()


def test_refused_rope(rms_norm):
    from rms_norm import vllm

    qkv, weight, cos_sin, positions = np.ones((3, 128), F16), np.ones(16, F16), np.ones((5, 16), F32), np.arange(3)
    right = dict(qkv=qkv, q_weight=weight, k_weight=weight, cos_sin=cos_sin, positions=positions)
    cases = [
        (dict(qkv=qkv[:, :80]), ValueError, "too short for 4 query and 2 key heads of 16"),
        (dict(qkv=qkv.astype(F32)), TypeError, "q_weight is float16 and qkv is float32; float32 and float32 are known"),
        (dict(qkv=qkv[:, ::-1]), ValueError, "the last dimension of qkv is not contiguous"),
        (dict(qkv=readonly(qkv)), ValueError, "^qkv is read-only"),
        (
            dict(qkv=np.ones((4, 3, 128), F16).transpose(1, 0, 2), positions=np.zeros((3, 4), int)),
            ValueError,
            "one stride",
        ),
        (
            dict(qkv=np.lib.stride_tricks.as_strided(qkv, (3, 128), (64, 2))),
            ValueError,
            "rows of qkv overlap each other: they are 32 elements apart, and the heads of a row take 96",
        ),
        (dict(q_weight=weight[:8]), ValueError, r"q_weight has the shape \(8,\); \(16,\) is wanted"),
        (dict(k_weight=weight.astype(F32)), TypeError, "q_weight is float16 and k_weight is float32"),
        (dict(q_weight=weight.astype(BF16), k_weight=None), TypeError, "q_weight is bfloat16 and qkv is float16"),
        (dict(cos_sin=cos_sin[0]), ValueError, r"cos_sin has the shape \(16,\)"),
        (dict(cos_sin=np.ones((5, 18), F32)), ValueError, "rotary_dim is odd, less than 2, or greater than head_dim"),
        (dict(cos_sin=np.ones((5, 32), F32)[:, ::2]), ValueError, "cos_sin is not contiguous"),
        (dict(cos_sin=cos_sin.astype(BF16)), TypeError, "cos_sin is bfloat16 and qkv is float16; float16 and float32"),
        (dict(positions=positions[:2]), ValueError, r"positions has the shape \(2,\); \(3,\), that of the tokens"),
        (dict(positions=positions.astype(np.int32)), TypeError, "positions has elements of type int32; int64 is known"),
        (dict(positions=np.arange(6)[::2]), ValueError, "positions is not contiguous"),
        (dict(positions=[0, 1, 2]), TypeError, "positions is .*, which is not an array"),
        (dict(q_weight=qkv[0, 80:96]), ValueError, "qkv overlaps q_weight"),
    ]
    for change, error, sentence in cases:
        given = {**right, **change}
        before = given["qkv"].copy()
        with pytest.raises(error, match=sentence):
            rms_norm.qk_norm_rope(*given.values(), 4, 2, 16)
        assert (given["qkv"] == before).all()
    with pytest.raises(ValueError, match="head_dim is odd"):
        rms_norm.qk_norm_rope(*{**right, "q_weight": None, "k_weight": None}.values(), 4, 2, 15)
    with pytest.raises(ValueError, match="7 heads of 16 are wanted in each row"):
        vllm.fused_qk_norm_rope(qkv, 4, 2, 1, 16, 1e-6, weight, weight, cos_sin, True, positions)
    rms_norm.qk_norm_rope(qkv[:0], weight, weight, cos_sin, positions[:0], 4, 2, 16)


@pytest.mark.full
def test_signatures_of_other_libraries(rms_norm):
    from rms_norm import flashinfer, vllm

    x, residual, weight = random((6, 256), F16), random((6, 256), F16, 2), random(256, F16, 3)
    total = (x.astype(F32) + residual.astype(F32)).astype(F16)
    out = np.empty_like(x)
    assert vllm.rms_norm(out, x, weight, 1e-5) is None
    expect(out, oracle(x, weight, 1e-5))
    expect(flashinfer.rmsnorm(x, weight), oracle(x, weight))
    assert flashinfer.rmsnorm(x, weight, 1e-6, out, enable_pdl=False) is out
    expect(flashinfer.gemma_rmsnorm(x, weight), oracle(x, weight, offset=1.0))
    added = [
        (vllm.fused_add_rms_norm, (1e-6,), 0.0),
        (flashinfer.fused_add_rmsnorm, (), 0.0),
        (flashinfer.gemma_fused_add_rmsnorm, (1e-6, True), 1.0),
    ]
    for function, rest, offset in added:
        y, stream = x.copy(), residual.copy()
        assert function(y, stream, weight, *rest) is None
        assert (stream == total).all()
        expect(y, oracle(total, weight, offset=offset))


def test_nothing_happens_without_rows(rms_norm):
    for shape in ((0, 8), (3, 0, 8)):
        assert rms_norm.rms_norm(np.empty(shape, F32), np.ones(8, F32)).shape == shape


def test_not_a_number_stays_one(rms_norm):
    x = random((3, 50), F32)
    x[1, 7] = np.nan
    y = rms_norm.rms_norm(x)
    assert np.isnan(y[1]).all() and not np.isnan(y[[0, 2]]).any()


def test_threads(rms_norm):
    """Also with a long row each, for which several blocks use a workspace."""
    inputs = [random((1, 40000), F32, seed) for seed in range(4)]
    results = [None] * len(inputs)

    def norm(i):
        for _ in range(5):
            results[i] = rms_norm.rms_norm(inputs[i])

    threads = [threading.Thread(target=norm, args=(i,)) for i in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, y in zip(inputs, results):
        expect(y, oracle(x))


# --- What is refused ----------------------------------------------------------------------------------------

X, W = np.ones((4, 8), F32), np.ones(8, F32)
FIVE_ROWS = np.ones((5, 8), F32)


def readonly(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def bytes_apart():
    """Floats that lie five bytes apart."""
    return np.ndarray((4, 8), F32, buffer=np.zeros(200, np.uint8), strides=(40, 5))


NORM = {
    "a list": (([[1.0]],), TypeError, "x is a list"),
    "a masked array": ((np.ma.ones((4, 8), F32),), TypeError, "mask the kernels do not see"),
    "float64": ((np.ones((4, 8)),), TypeError, "x has elements of type float64"),
    "integers": ((np.ones((4, 8), np.uint16),), TypeError, "elements of type uint16"),
    "bytes in the other order": ((np.ones((4, 8), ">f4"),), TypeError, "elements of type >f4"),
    "a weight of float64": ((X, np.ones(8)), TypeError, "weight has elements of type float64"),
    "a weight that is a list": ((X, [1.0] * 8), TypeError, "weight is a list"),
    "no dimension": ((np.zeros((), F32),), ValueError, "x has no dimension"),
    "an empty last dimension": ((np.empty((4, 0), F32),), ValueError, "last dimension of x is empty"),
    "a transposed matrix": ((X.T,), ValueError, "not contiguous.*make a contiguous copy"),
    "three strides": ((np.ones((4, 5, 6, 8), F32)[:, :4, :5],), ValueError, "two strides"),
    "bytes apart": ((bytes_apart(),), ValueError, "x cannot be handed over"),
    "a weight too long": ((X, np.ones(9, F32)), ValueError, r"weight has the shape \(9,\).*\(8,\) is wanted"),
    "a weight of two dimensions": ((X, X), ValueError, "weight has the shape"),
    "a strided weight": ((X, np.ones(16, F32)[::2]), ValueError, "weight is not contiguous"),
    "eps below 0": ((X, W, -1.0), ValueError, "eps is -1.0; it must be finite and not negative"),
    "eps not finite": ((X, W, float("inf")), ValueError, "eps is inf; it must be"),
    "eps too large for float32": ((X, W, 1e300), ValueError, "eps is negative or not finite"),
    "eps that is 0 in float32": ((X, W, 1e-60), ValueError, "eps is 1e-60, which is 0 in float32; give 0, or"),
    "eps no number": ((X, W, "small"), TypeError, "eps is 'small', which is not a number"),
    "out of another shape": ((X, W, 1e-6, X[:2].copy()), ValueError, r"out has the shape \(2, 8\)"),
    "out of another rank": ((X, W, 1e-6, X.reshape(2, 2, 8).copy()), ValueError, "out has the shape"),
    "out read-only": ((X, W, 1e-6, readonly(X)), ValueError, "out is read-only"),
    "out one row after x": ((FIVE_ROWS[:4], W, 1e-6, FIVE_ROWS[1:]), ValueError, "out overlaps x"),
    "out in the weight": ((X, X[0], 1e-6, X), ValueError, "out overlaps weight"),
    "rows of out on each other": (
        (X, W, 1e-6, np.lib.stride_tricks.as_strided(X.copy(), (4, 8), (16, 4))),
        ValueError,
        "rows of out overlap",
    ),
}


@pytest.mark.parametrize("name", NORM)
def test_refused(rms_norm, name):
    arguments, error, sentence = NORM[name]
    with pytest.raises(error, match=sentence):
        rms_norm.rms_norm(*arguments)


def test_refused_options(rms_norm):
    refused = {"rounding": "up", "cache": "warm", "weight_offset": float("nan")}
    for name, value in refused.items():
        with pytest.raises(ValueError, match=f"{name} is"):
            rms_norm.rms_norm(X, W, **{name: value})
    wrong = [("weight_offset", "one", "a number"), ("eps", [1e-6], "a number"), ("dependent_launch", "no", "a bool")]
    wrong.append(("batch_invariant", None, "a bool"))
    for name, value, wanted in wrong:
        with pytest.raises(TypeError, match=rf"^{name} is {re.escape(repr(value))}, which is not {wanted}$"):
            rms_norm.rms_norm(X, W, **{name: value})
    for name in ("eps", "weight_offset"):
        with pytest.raises(ValueError, match=f"^{name} is a whole number that is too large"):
            rms_norm.rms_norm(X, W, **{name: 10**400})


def test_options_are_checked_once(rms_norm):
    made = rms_norm._options.options_of(1e-5, 1.0, "llama", True, "normal", True)
    assert made is rms_norm._options.options_of(1e-5, 1.0, "llama", True, "normal", True)
    with pytest.raises(AttributeError):
        made.eps = 1e-6
    assert made.numbers == (1e-5, 1.0, True, True, 1, True)


def test_refused_residuals(rms_norm):
    cases = [
        ((X, None), {}, TypeError, "residual is None"),
        ((X, X[:2]), {}, ValueError, "residual has the shape"),
        ((X, X), {}, ValueError, "^x overlaps residual$"),
        ((X, X.copy()), {"residual_out": X.astype(F16)}, TypeError, "must have the same type"),
        ((X, readonly(X)), {}, ValueError, "^residual is read-only"),
        ((X, X.copy()), {"out": X[::-1]}, ValueError, "^out overlaps x, and is not the same tensor$"),
    ]
    for arguments, options, error, sentence in cases:
        with pytest.raises(error, match=sentence):
            rms_norm.fused_add_rms_norm(*arguments, W, **options)


def test_refused_heads(rms_norm):
    qkv = np.ones((3, 64), F32)
    wrong = [((4, 2, 16), "too short")] + [((count, 1, 16), "whole numbers") for count in (0, 2.0, True, None)]
    for heads, sentence in wrong:
        with pytest.raises(ValueError, match=sentence):
            rms_norm.qk_norm(qkv, None, None, *heads)
    eight = np.ones(8, F32)
    cases = [
        ((qkv, eight, np.ones(7, F32)), ValueError, r"k_weight has the shape \(7,\)"),
        ((qkv, np.ones(8), eight), TypeError, "q_weight has elements of type float64"),
        ((qkv.astype(np.int32), eight, eight), TypeError, "qkv has elements of type int32"),
        ((readonly(qkv), eight, eight), ValueError, "^qkv is read-only"),
        ((qkv, qkv[0, :8], eight), ValueError, "^qkv overlaps q_weight$"),
        ((qkv, [1.0], eight), TypeError, "^q_weight is a list"),
    ]
    for (given, *weights), error, sentence in cases:
        before = given.copy()
        with pytest.raises(error, match=sentence):
            rms_norm.qk_norm(given, *weights, 4, 2, 8)
        assert (given == before).all()
    rms_norm.qk_norm(qkv, eight, eight, np.int64(4), np.int32(2), np.int64(8))
    expanded = np.lib.stride_tricks.as_strided(np.ones((3, 1), F32), (3, 2), (4, 0))  # a query and a key head in one
    with pytest.raises(ValueError, match="the last dimension of qkv is expanded"):
        rms_norm.qk_norm(expanded, None, None, 1, 1, 1)
    apart = np.ones((3, 4), F32)[:, ::2]  # heads of one element need not be next to each other
    assert (abs(rms_norm.qk_norm(apart, None, None, 1, 1, 1)) == np.float32(1 / np.sqrt(1 + 1e-6))).all()


class Holder:
    """An array of a library that is not known."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


COMPLEX = """
import numpy as np, rms_norm
for name in ("complex64", "complex128"):
    real, other = np.ones((2, 8), "float32"), np.ones((2, 8), name)
    for x, weight in ((other, None), (real, other[0])):
        try:
            rms_norm.rms_norm(Holder(x), None if weight is None else Holder(weight), out=Holder(real.copy()))
        except TypeError as error:
            assert f"has elements of type {name}; float32, float16 and bfloat16 are known" in str(error), error
            print("refused")
"""


def test_types_that_are_not_known(rms_norm):
    """Of complex numbers in a process of its own, which they must not end; of integers, which are no bfloat16."""
    done = run(sys.executable, "-c", inspect.getsource(Holder) + COMPLEX, PYTHONPATH=str(SITE))
    assert done.returncode == 0 and done.stdout == "refused\n" * 4, done.stdout + done.stderr
    out = np.empty((2, 8), F32)
    with pytest.raises(TypeError, match="x has elements of type uint16;"):
        rms_norm.rms_norm(Holder(np.ones((2, 8), np.uint16)), out=Holder(out))
    rms_norm.rms_norm(Holder(np.ones((2, 8), F32)), out=Holder(out))
    expect(out, oracle(np.ones((2, 8), F32)))


def test_arrays_that_cannot_be_written_need_a_residual_too(rms_norm, monkeypatch):
    monkeypatch.setattr(rms_norm._arrays.NumPy, "immutable", True)  # as JAX's
    with pytest.raises(TypeError, match="residual is None"):
        rms_norm.fused_add_rms_norm(X, None, W)


# --- The package itself --------------------------------------------------------------------------------------


def test_first_example_of_the_page(rms_norm):
    page = (PACKAGE / "README.md").read_text(encoding="utf-8")
    code, printed = re.search(r"```python\n(.*?)```\s+It prints:\s+```\n(.*?)```", page, re.DOTALL).groups()
    result = run(sys.executable, "-c", code, PYTHONPATH=str(SITE))
    assert result.stdout == printed, result.stdout + result.stderr


def test_sources_may_lie_elsewhere_than_what_was_built(rms_norm, tmp_path):
    """As with an editable install, which finds _build.py where it was built."""
    sources = tmp_path / "rms_norm"
    shutil.copytree(SITE / "rms_norm", sources, ignore=shutil.ignore_patterns("_build.py", "*.so", "__pycache__"))
    code = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("rms_norm._build", {str(SITE / "rms_norm/_build.py")!r})
sys.modules["rms_norm._build"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
import rms_norm
print(rms_norm.__file__)
"""
    done = run(sys.executable, "-c", code, PYTHONPATH=str(tmp_path))
    assert done.stdout == f"{sources / '__init__.py'}\n", done.stderr


def test_says_what_it_is(rms_norm):
    said = run(sys.executable, "-m", "rms_norm", PYTHONPATH=str(SITE)).stdout
    assert re.match(r"rms_norm \S+ for the CPU device; types: " + BUILT, said)


def test_types_are_declared(rms_norm):
    assert (SITE / "rms_norm/py.typed").exists()
    for name in rms_norm.__all__:
        function = getattr(rms_norm, name)
        if callable(function):
            assert function.__doc__ and "return" in function.__annotations__, name


@pytest.mark.full
def test_types_are_right(rms_norm, tmp_path):
    """mypy over what is installed, with _build.py, in python/pyproject.toml's settings."""
    pytest.importorskip("torch")
    mypy = pytest.importorskip("mypy.api")
    words = ["--config-file", str(PACKAGE / "pyproject.toml"), "--cache-dir", str(tmp_path), str(SITE / "rms_norm")]
    said, wrong, status = mypy.run(words)
    assert status == 0, said + wrong
    assert re.search(r"no issues found in 1\d source files", said)


def test_the_version_is_that_of_pyproject(rms_norm):
    text = (PACKAGE / "pyproject.toml").read_text(encoding="utf-8")
    assert rms_norm.__version__ == re.search(r'^version = "(.+)"$', text, re.MULTILINE)[1]


def test_source_distribution_has_what_it_needs(tmp_path):
    pytest.importorskip("scikit_build_core")
    code = f"import build_backend; print(build_backend.build_sdist({str(tmp_path)!r}))"
    made = run(sys.executable, "-c", code, cwd=PACKAGE)
    assert made.returncode == 0, made.stdout + made.stderr
    assert not (PACKAGE / "repository").exists()
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    of_repository = [
        "include/cuda_bits.cuh",
        "include/memory_overlap.cuh",
        "include/rms_norm/rms_norm.cuh",
        "include/q4_gemm/q4_gemm.cuh",
        "simt/simtcc",
        "simt/driver/command.py",
        "simt/runtime/launch.cpp",
        "simt/runtime/lockstep.h",
        "simt/extras/include/cuda_fp8.h",
    ]
    assert {"CMakeLists.txt", "binding/binding.cu", "rms_norm/py.typed"} <= names
    assert {f"repository/{name}" for name in of_repository} <= names
    assert not any(name.endswith((".pyc", ".so", ".o")) for name in names)


@pytest.mark.full
def test_install_from_a_source_distribution(tmp_path):
    """Outside of the repository, for the CPU device, in a path with blanks."""
    code = f"import build_backend; build_backend.build_sdist({str(tmp_path)!r})"
    assert run(sys.executable, "-c", code, cwd=PACKAGE).returncode == 0
    site = tmp_path / "site packages"
    settings = {"SKBUILD_CMAKE_DEFINE": "OPTIMIZE_OFTEN=-O0", "BACKEND": "cpu", "RMS_NORM_TYPES": "float32"}
    made = pip_install(next(tmp_path.glob("*.tar.gz")), "--target", site, **settings)
    assert made.returncode == 0, made.stdout + made.stderr
    shutil.copy(pathlib.Path(__file__).with_name("wheel.py"), tmp_path)  # which the workflow of the wheels runs, too
    done = run(sys.executable, "wheel.py", cwd=tmp_path, PYTHONPATH=str(site))
    assert re.match(r"the wheel works: \S+ cpu\n$", done.stdout), done.stderr


def configured(folder, *options, **environment):
    """What CMake says of the package's build, and what it would run."""
    pytest.importorskip("tvm_ffi")
    tools = [pathlib.Path(sys.executable).with_name(name) for name in ("cmake", "ninja")]
    if not all(tool.exists() for tool in tools):
        pytest.skip("cmake and ninja are not installed here")
    chosen = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tools[1]}", f"-DPython_EXECUTABLE={sys.executable}", *options]
    made = run(tools[0], "-S", PACKAGE, "-B", folder, *chosen, BACKEND="cpu", **environment)
    rules = folder / "build.ninja"
    return made, rules.read_text(encoding="utf-8") if rules.exists() else ""


def test_without_a_compiler_the_build_says_what_to_install(tmp_path):
    made, _ = configured(tmp_path / "build", CXX="/nowhere/g++")
    said = " ".join(made.stderr.split())
    assert made.returncode != 0, made.stdout
    assert "there is no C++ compiler; install one: apt-get install g++ libboost-context-dev" in said, said


def test_parts_of_a_build(tmp_path):
    made, rules = configured(tmp_path / "build", RMS_NORM_TYPES="bfloat16", RMS_NORM_PARTS="rope gradients")
    assert made.returncode == 0, made.stderr
    compiled = set(re.findall(r"compiling (\S+)\.cu", rules))
    of_gradients = {"gradients", "gradients_0", "often_rstd_0"}
    assert compiled == {"binding", "workspace", "operators", "often_0", "rope", *of_gradients}
    said = (tmp_path / "build/_build.py").read_text(encoding="utf-8")
    assert 'PARTS = "norm;rope;gradients"\n' in said
    made, _ = configured(tmp_path / "wrong", RMS_NORM_PARTS="rope backward")
    said = " ".join(made.stderr.split())
    assert made.returncode != 0 and "RMS_NORM_PARTS=rope backward is not all, or some of norm;gradients;" in said, said


def test_a_part_that_was_not_built_is_named(rms_norm, tmp_path):
    """Of a copy that says of itself that it was built with RMS_NORM_PARTS=norm."""
    shutil.copytree(SITE / "rms_norm", tmp_path / "rms_norm")
    facts = tmp_path / "rms_norm/_build.py"
    facts.write_text(re.sub("PARTS = .*", 'PARTS = "norm"', facts.read_text(encoding="utf-8")), encoding="utf-8")
    code = """
import numpy as np, rms_norm
from rms_norm import q4
x, angles, places = np.ones((2, 32), np.float32), np.ones((1, 8), np.float32), np.zeros(2, np.int64)
assert np.allclose(rms_norm.rms_norm(x), 1)
for call in (
    lambda: rms_norm.rms_norm_quantized(x, dtype="int8"),
    lambda: rms_norm.qk_norm_rope(x, None, None, angles, places, 2, 2, 8),
    lambda: q4.repack(np.zeros((64, 18), np.uint8)),
    lambda: q4.quantize(x),
):
    try:
        call()
    except NotImplementedError as missing:
        print(missing)
"""
    done = run(sys.executable, "-c", code, PYTHONPATH=str(tmp_path))
    said = done.stdout.splitlines()
    parts = [re.search("RMS_NORM_PARTS=all, or with (.*) among the parts", line)[1] for line in said]
    assert parts == ["quantized", "rope", "q4", "q4"], done.stdout + done.stderr
    assert said[0].startswith("this build of rms_norm has no norms that end in 8 bits: install it with "), said[0]


def test_flags_and_types_of_a_build(tmp_path):
    """On arm64 none of x86-64's flags; the types that RMS_NORM_TYPES names, and no others."""
    arm = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"]
    made, rules = configured(tmp_path / "arm", *arm, RMS_NORM_TYPES="float32 bfloat16")
    assert made.returncode == 0, made.stderr
    assert set(re.findall(r"-march=\S+", rules)) == {"-march=armv8-a"}
    files = (tmp_path / "arm").glob("*.cu")
    instances = re.findall(r"INSTANCE\((\S+)\)", "".join(path.read_text(encoding="utf-8") for path in files))
    assert {type for instance in instances for type in instance.split(",")} == {"float32", "bfloat16", "void"}
    assert len(instances) == 4 + 7 + 2
    made, _ = configured(tmp_path / "wrong", RMS_NORM_TYPES="bfloat16 float64")
    said = " ".join(made.stderr.split())
    assert made.returncode != 0 and "RMS_NORM_TYPES=bfloat16 float64 is not usual, all, or some of" in said, said
    made, rules = configured(tmp_path / "here", RMS_NORM_TYPES="bfloat16")
    assert made.returncode == 0 and len(set(re.findall(r"-march=\S+", rules))) == 1


# --- The choice of the backend -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def choice():
    sys.path.insert(0, str(PACKAGE))
    import choose_backend

    sys.path.remove(str(PACKAGE))
    return choose_backend


def test_chooses_the_backend(choice):
    def chosen(environment={}, nvcc="nvcc", gpus=()):
        backend, _, options = choice.choose(environment, nvcc, list(gpus))
        return backend, [word for word in options if word != "-gencode"]

    assert chosen(nvcc=None, gpus=["9.0"]) == chosen() == chosen({"BACKEND": "cpu"}, gpus=["9.0"]) == ("cpu", [])
    assert chosen(gpus=["9.0"]) == ("cuda", ["arch=compute_90,code=sm_90"])
    assert chosen({"ARCHS": "80 90a"})[1] == ["arch=compute_80,code=sm_80", "arch=compute_90a,code=sm_90a"]
    ada = ["arch=compute_89,code=sm_89", "arch=compute_89,code=compute_89"]
    assert chosen({"TORCH_CUDA_ARCH_LIST": "Ada"})[1] == ada == chosen({"TORCH_CUDA_ARCH_LIST": "8.9+PTX"})[1]
    assert len(chosen({"TORCH_CUDA_ARCH_LIST": "8.0;9.0a 12.0"})[1]) == 3


@pytest.mark.parametrize(
    "environment, nvcc",
    [
        ({"BACKEND": "rocm"}, "nvcc"),
        ({"BACKEND": "cuda"}, None),
        ({"BACKEND": "cuda"}, "nvcc"),
        ({"ARCHS": "sm_90"}, "nvcc"),
        ({"TORCH_CUDA_ARCH_LIST": "Volta"}, "nvcc"),
        ({"TORCH_CUDA_ARCH_LIST": "7.0"}, "nvcc"),
    ],
)
def test_says_why_there_is_no_backend(choice, environment, nvcc):
    with pytest.raises(choice.Wrong):
        choice.choose(environment, nvcc, [])
