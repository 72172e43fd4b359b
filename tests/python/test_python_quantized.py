"""The package's norms that end in 8 bits with NumPy, against float64. Only the usual build has them for float32."""

import pytest
from python_package import TYPES, install

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")
E4M3, INT8, BF16 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype("int8"), np.dtype(ml_dtypes.bfloat16)
LARGEST, LEAST = {E4M3: 448.0, INT8: 127.0}, {E4M3: 1 / (448 * 512), INT8: 2.0**-23}
usual = pytest.mark.skipif(TYPES != "usual", reason="the quick build has no norms of float32 that end in 8 bits")


@pytest.fixture(scope="module")
def rms_norm():
    pytest.importorskip("tvm_ffi")
    return install()


def random(shape, dtype=np.float32, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def norm(x, weight, eps=1e-6):
    x = x.astype(np.float64)
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight.astype(np.float64)


def expect(q, y, scale):
    """Each number is the nearest one of its type, or by float32's errors the next one; and 99 of 100 are the nearest."""
    most = LARGEST[q.dtype]
    exact = np.clip(y / scale, -most - (q.dtype == INT8), most)
    nearest = np.rint(exact) if q.dtype == INT8 else exact.astype(q.dtype).astype(np.float64)
    error, allowed = np.abs(q.astype(np.float64) - exact), np.abs(nearest - exact) + 2.0**-18 * most
    assert (error <= allowed).all(), f"{(~(error <= allowed)).sum()} wrong, the worst by {error.max()}"
    assert (q.astype(np.float64) == nearest).mean() > 0.99


@usual
@pytest.mark.parametrize("block", [0, 64, 128])
@pytest.mark.parametrize("adds", [False, True], ids=["norm", "residual"])
@pytest.mark.parametrize("code", [E4M3, INT8], ids=str)
@pytest.mark.parametrize(
    "dtype, shape", [(np.float32, (5, 1000)), (np.float16, (3, 129)), (BF16, (2, 3, 256))], ids=str
)
def test_scales_that_the_kernel_finds(rms_norm, dtype, shape, code, adds, block):
    x, weight, residual = random(shape, dtype), random(shape[-1], dtype, 2), random(shape, dtype, 3) if adds else None
    total = (x.astype(np.float32) + residual.astype(np.float32)).astype(dtype) if adds else x
    y = np.empty_like(x)
    q, scales, *sums = rms_norm.rms_norm_quantized(x, weight, dtype=code, residual=residual, block=block, y=y)
    if adds:
        assert sums[0] is residual and (residual == total).all()
    expected = norm(total, weight)
    blocks = -(-shape[-1] // block) if block else 1
    padded = np.zeros((*shape[:-1], blocks * (block or shape[-1])))
    padded[..., : shape[-1]] = np.abs(expected)
    found = np.maximum(padded.reshape(*shape[:-1], blocks, -1).max(-1) / LARGEST[code], LEAST[code])
    assert q.dtype == code and scales.shape == found.shape and scales.dtype == np.float32
    np.testing.assert_allclose(scales, found, rtol=2e-6)
    expect(q, expected, np.repeat(scales.astype(np.float64), block or shape[-1], -1)[..., : shape[-1]])
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=2.0**-7, atol=1e-4)


@usual
@pytest.mark.parametrize("code", [E4M3, INT8], ids=str)
def test_a_given_scale_and_an_upper_bound(rms_norm, code):
    x, weight = random((4, 300)), random(300, seed=2)
    scale, out = np.array([0.01], np.float32), np.empty((4, 300), code)
    q, same = rms_norm.rms_norm_quantized(x, weight, dtype=code.name, scale=scale, out=out)
    assert q is out and same is scale and (np.abs(q.astype(np.float32)) >= LARGEST[code]).any()
    expect(q, norm(x, weight), 0.01)
    bound = np.array(1.5, np.float32)
    q, scales = rms_norm.rms_norm_quantized(x, weight, dtype=code, upper_bound=bound)
    np.testing.assert_allclose(scales, 1.5 / LARGEST[code], rtol=1e-6)
    expect(q, norm(x, weight), scales.astype(np.float64))


@usual
def test_scales_by_columns_and_strided_arrays(rms_norm):
    wide, weight = random((5, 600)), random(256, seed=2)
    x, out = wide[:, 100:356], np.zeros((5, 300), E4M3)
    q, by_rows = rms_norm.rms_norm_quantized(x, weight, block=128, out=out[:, :256])
    again, by_columns = rms_norm.rms_norm_quantized(x, weight, block=128, column_major=True)
    assert by_columns.strides == (4, 32) and by_columns.base.shape == (2, 8)
    np.testing.assert_array_equal(by_rows, by_columns)
    np.testing.assert_array_equal(q.view(np.uint8), again.view(np.uint8))
    assert not out[:, 256:].astype(np.float32).any()


@usual
def test_the_signatures_of_vllm_and_flashinfer(rms_norm):
    from rms_norm import flashinfer, vllm

    x, weight, scale = random((3, 256), BF16), random(256, BF16, 2), np.array([0.02], np.float32)
    out = np.empty((3, 256), E4M3)
    assert vllm.rms_norm_static_fp8_quant(out, x, weight, scale, 1e-6) is None
    np.testing.assert_allclose(
        out.astype(np.float64) * 0.02, np.clip(norm(x, weight), -8.96, 8.96), rtol=0.08, atol=3e-5
    )
    q, scales = vllm.rms_norm_dynamic_per_token_quant(x, weight, 1e-6, np.int8)
    assert q.dtype == INT8 and scales.shape == (3, 1)
    _, groups = vllm.rms_norm_per_block_quant(x, weight, 1e-6, E4M3, [1, 64], None, None, True, 4)
    assert groups.shape == (3, 4) and groups.strides == (4, 16)
    for given, number in (
        (0.02, np.float32(0.02)),
        (2, 2),
        (np.float16(0.5), 0.5),
        (np.array(2), 2),
        (np.array([0.5]), 0.5),
    ):
        out[...] = 0
        flashinfer.rmsnorm_quant(out, x, weight, given)
        expect(out, norm(x, weight), number)
    with pytest.raises(ValueError, match=r"scale has the shape \(2,\); it must be one number"):
        flashinfer.rmsnorm_quant(out, x, weight, np.ones(2))
    with pytest.raises(TypeError, match="scale is None; give a number, or an array of one number"):
        flashinfer.rmsnorm_quant(out, x, weight, None)
    y, residual, blocks = np.empty_like(x), x.copy(), np.empty((2, 4), np.float32)
    flashinfer.fused_add_rmsnorm_fp8_block_quant(out, blocks, y, x, residual, weight)
    assert (residual == (2 * x.astype(np.float32)).astype(BF16)).all()
    expect(out, y.astype(np.float64), np.repeat(blocks.T[:3].astype(np.float64), 128, -1))


def test_what_is_refused(rms_norm):
    x, weight, number = np.ones((2, 256), np.float32), np.ones(256, np.float32), np.ones(1, np.float32)
    call = rms_norm.rms_norm_quantized
    for named, sentence in (
        (dict(dtype="float16"), "dtype is 'float16'; float8_e4m3fn, float8_e5m2 and int8 are known"),
        (dict(block=32), "block is 32; 0, 64 and 128 are known"),
        (dict(scale=number, scales=np.ones((2, 1), np.float32)), "scale or scales is to be given, and not both"),
        (dict(scales=np.ones((2, 2), np.float32)), r"scales has the shape \(2, 2\); \(2, 1\) is wanted"),
        (dict(out=np.ones((2, 128), E4M3)), r"out has the shape \(2, 128\); \(2, 256\) is wanted"),
        (dict(residual=x[:1]), r"residual has the shape \(1, 256\); \(2, 256\) is wanted"),
    ):
        with pytest.raises(ValueError, match=sentence):
            call(x, weight, **named)
    with pytest.raises(TypeError, match="out is dtype.'int8'.; an array of float8_e4m3fn is wanted"):
        call(x, weight, out=np.ones((2, 256), np.int8))
    for name in ("weight", "residual", "y", "scale", "scales", "upper_bound"):
        with pytest.raises(TypeError, match=f"{name} is 3.5, which is not an array"):
            call(x, **{"scale": number, name: 3.5})
    with pytest.raises(ValueError, match="x has no dimension; the last one is normalized"):
        call(np.ones((), np.float32), block=64)
    with pytest.raises(TypeError, match="RMS_NORM_TYPES=all"):
        call(x, weight, dtype="float8_e5m2")
    with pytest.raises(TypeError, match="weight is float16 and x is float32"):
        call(x, weight.astype(np.float16))


def test_what_the_signatures_of_other_libraries_refuse(rms_norm):
    from rms_norm import flashinfer, vllm

    x, weight, number = np.ones((2, 256), np.float32), np.ones(256, np.float32), np.ones(1, np.float32)
    for size in ([1, 0], [1, 32], [128]):
        with pytest.raises(ValueError, match="its second number must be 64 or 128, and divide the 256 columns"):
            vllm.rms_norm_per_block_quant(x, weight, 1e-6, np.int8, size)
    with pytest.raises(TypeError, match="input is a float; it must be an array"):
        vllm.rms_norm_per_block_quant(3.5, weight, 1e-6, np.int8, [1, 64])
    with pytest.raises(TypeError, match="result is a float; it must be an array"):
        vllm.rms_norm_static_fp8_quant(3.5, x, weight, number, 1e-6)
    with pytest.raises(TypeError, match="out is a float; it must be an array"):
        flashinfer.rmsnorm_quant(3.5, x, weight, 1.0)
    out, blocks = np.empty((2, 256), E4M3), np.empty((2, 4), np.float32)
    with pytest.raises(TypeError, match="block_scale is 3.5, which is not an array"):
        flashinfer.fused_add_rmsnorm_fp8_block_quant(out, 3.5, x.copy(), x, x.copy(), weight)
    with pytest.raises(ValueError, match=r"input has the shape \(256,\); two dimensions are wanted"):
        flashinfer.fused_add_rmsnorm_fp8_block_quant(out, blocks, x.copy(), x[0], x.copy(), weight)


@usual
def test_what_the_kernels_refuse(rms_norm):
    x, weight = np.ones((2, 256), np.float32), np.ones(256, np.float32)
    call = rms_norm.rms_norm_quantized
    with pytest.raises(TypeError, match="scale has elements of type float16; float32 is known"):
        call(x, weight, scale=np.ones(1, np.float16))
    with pytest.raises(ValueError, match=r"scale has the shape \(2,\); it must be one number"):
        call(x, weight, scale=np.ones(2, np.float32))
    with pytest.raises(ValueError, match="upper_bound is given, and scale is not found by the kernel"):
        call(x, weight, scale=np.ones(1, np.float32), upper_bound=np.ones(1, np.float32))
    with pytest.raises(ValueError, match="y overlaps x"):
        call(x, weight, residual=x.copy(), y=x[::-1])
    with pytest.raises(ValueError, match="^the leading dimensions of out are transposed"):  # scales changed places
        call(np.ones((3, 2, 256), np.float32), weight, out=np.zeros((2, 3, 256), E4M3).transpose(1, 0, 2))
    for strides, block in (((0, 4), 0), ((0, 4), 64), ((4, 0), 64)):  # a stride of 0 would stand for the header's own
        memory = np.zeros(64, np.float32)
        scales = np.lib.stride_tricks.as_strided(memory, (2, 4 if block else 1), strides)
        with pytest.raises(ValueError, match="^scales is expanded"):
            call(x, weight, block=block, scales=scales)
        assert not memory.any()
    with pytest.raises(ValueError, match="^rows of out overlap each other$"):
        call(x, weight, out=np.lib.stride_tricks.as_strided(np.zeros(256, E4M3), (2, 256), (0, 1)))
    with pytest.raises(ValueError, match="^out overlaps x$"):
        call(x, weight, out=x.view(E4M3)[:, :256])
