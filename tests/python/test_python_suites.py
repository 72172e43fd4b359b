"""The shapes, types and options of vLLM's and FlashInfer's tests of RMSNorm, for rms_norm.vllm and .flashinfer; also of
their norms that end in 8 bits.

With TORCH=1; without a GPU a few of each list. The tests are this project's: what they compare with is float64.
"""

import sys
import types

import pytest
from conftest import ROOT
from python_package import BACKEND, install

torch = pytest.importorskip("torch")
install()
from rms_norm import flashinfer, vllm

sys.path.insert(0, str(ROOT / "tools"))
from ladder.measure import graph_timing

ON_GPU = BACKEND == "cuda"
DEVICE = "cuda" if ON_GPU else "cpu"
HALVES = [torch.float16, torch.bfloat16]


def few(*every):
    """The first and the last of a list without a GPU, where each number takes longer."""
    return list(every) if ON_GPU else [every[0], every[-1]]


@pytest.fixture(autouse=True)
def start():
    torch.manual_seed(1)


def random(*shape, dtype):
    return torch.randn(shape, device=DEVICE).to(dtype)


def close(got, x, weight, offset=0.0):
    """Within the roundings of the type of the norm of x, in float64."""
    wide = x.double()
    expected = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6) * (offset + weight.double())
    name = str(got.dtype).removeprefix("torch.")
    error = (got.double() - expected).abs()
    limit = graph_timing.tolerance(name, x.shape[-1], residual=False) * expected.abs() + graph_timing.SMALLEST[name]
    assert bool((error <= limit).all())


# vLLM: tests/kernels/core/test_layernorm.py.


@pytest.mark.parametrize("strided", [False, True], ids=["dense", "strided"])
@pytest.mark.parametrize("adds", [False, True], ids=["norm", "residual"])
@pytest.mark.parametrize("dtype", [*HALVES, torch.float32], ids=str)
@pytest.mark.parametrize("hidden_size", few(8, 768, 769, 770, 771, 5120, 5124, 5125, 5126, 8192, 8199, 5125))
@pytest.mark.parametrize("num_tokens", [7, 83, 4096] if ON_GPU else [7])
def test_vllm(num_tokens, hidden_size, dtype, adds, strided):
    weight = 1 + 0.1 * random(hidden_size, dtype=dtype)
    wide = random(num_tokens, hidden_size * (2 if strided else 1), dtype=dtype)
    x = wide[:, :hidden_size]
    if not adds:
        out = torch.full((num_tokens, hidden_size), torch.nan, device=DEVICE, dtype=dtype)
        vllm.rms_norm(out, x, weight, 1e-6)
        return close(out, x, weight)
    residual = random(num_tokens, hidden_size, dtype=dtype)
    total = (x.float() + residual.float()).to(dtype)
    vllm.fused_add_rms_norm(x, residual, weight, 1e-6)
    assert torch.equal(residual, total)
    close(x, total, weight)


@pytest.mark.parametrize("shape", [(2, 3, 64), (2, 3, 4, 64)], ids=str)
def test_vllm_more_dimensions(shape):
    """As q and k norms are called: a part of packed rows, seen as heads."""
    packed = random(*shape[:-1], 3 * shape[-1], dtype=torch.bfloat16)
    x, weight = packed[..., : shape[-1]], random(shape[-1], dtype=torch.bfloat16)
    out = torch.empty(shape, device=DEVICE, dtype=torch.bfloat16)
    vllm.rms_norm(out, x, weight, 1e-6)
    close(out, x, weight)


# FlashInfer: tests/norm/.


@pytest.mark.parametrize("contiguous", [True, False], ids=["contiguous", "slice"])
@pytest.mark.parametrize("pdl", [True, False], ids=["pdl", "plain"])
@pytest.mark.parametrize("given", [True, False], ids=["out", "new"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("hidden_size", few(111, 500, 1024, 3072, 3584, 4096, 8192, 16384))
@pytest.mark.parametrize("batch_size", few(1, 19, 99, 989) if ON_GPU else [19])
@pytest.mark.parametrize("gemma", [False, True], ids=["plain", "gemma"])
def test_flashinfer(gemma, batch_size, hidden_size, dtype, given, pdl, contiguous):
    wide = random(batch_size, hidden_size * (1 if contiguous else 2), dtype=dtype)
    x, weight = wide[:, :hidden_size], random(hidden_size, dtype=dtype)
    norm = flashinfer.gemma_rmsnorm if gemma else flashinfer.rmsnorm
    out = torch.empty(batch_size, hidden_size, device=DEVICE, dtype=dtype) if given else None
    y = norm(x, weight, out=out, enable_pdl=pdl)
    assert out is None or y is out
    close(y, x, weight, float(gemma))


@pytest.mark.parametrize("gemma", [False, True], ids=["plain", "gemma"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("hidden_size", few(111, 500, 1024, 3072, 3584, 4096, 8192, 16384))
@pytest.mark.parametrize("batch_size", few(1, 19, 99, 989) if ON_GPU else [19])
def test_flashinfer_fused(batch_size, hidden_size, dtype, gemma):
    x, residual = random(batch_size, hidden_size, dtype=dtype), random(batch_size, hidden_size, dtype=dtype)
    weight, total = random(hidden_size, dtype=dtype), (x.float() + residual.float()).to(dtype)
    fused = flashinfer.gemma_fused_add_rmsnorm if gemma else flashinfer.fused_add_rmsnorm
    fused(x, residual, weight, 1e-6)
    assert torch.equal(residual, total)
    close(x, total, weight, float(gemma))


@pytest.mark.parametrize("head_dim", few(64, 128, 256, 512))
@pytest.mark.parametrize("heads", few(4, 7, 16))
@pytest.mark.parametrize("batch_size", few(1, 19, 99, 989) if ON_GPU else [19])
def test_flashinfer_heads(batch_size, heads, head_dim):
    x, weight = random(batch_size, heads, head_dim, dtype=torch.float16), random(head_dim, dtype=torch.float16)
    close(flashinfer.rmsnorm(x, weight), x, weight)


# --- Norms that end in 8 bits ---------------------------------------------------------------------------------------


def close_in_8_bits(q, scale, x, residual, weight, upper_bound=None):
    """Within the roundings of x's type to the norm in float64; and nearly all are the numbers that PyTorch's own
    functions give. scale is of all numbers, or has one for some columns of each row."""
    wide = x.double() if residual is None else residual.double()
    y = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    plain = (y.to(x.dtype) * weight).double()
    y, largest = y * weight.double(), 127.0 if q.dtype == torch.int8 else torch.finfo(q.dtype).max
    scale = scale.double()
    if scale.ndim == 2:
        width = x.shape[-1] // scale.shape[1]
        most = y.view(len(y), -1, width).abs().amax(dim=2)
        most = most if upper_bound is None else most.clamp(max=float(upper_bound))
        least = 2.0**-23 if q.dtype == torch.int8 else 1 / (512 * largest)
        torch.testing.assert_close(scale, (most / largest).clamp(min=least), rtol=0.02, atol=0)
        scale = scale.repeat_interleave(width, dim=1)
    clipped = torch.minimum(torch.maximum(y, -(largest + (q.dtype == torch.int8)) * scale), largest * scale)
    form = types.SimpleNamespace(code=str(q.dtype).removeprefix("torch."))
    digits = {"int8": 0.0, "float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3}[form.code]
    unit = {"int8": 0.5, "float8_e4m3fn": 2.0**-10, "float8_e5m2": 2.0**-17}[form.code]
    limit = (digits + 4 * graph_timing.UNIT_ROUNDOFF[str(x.dtype)[6:]] + 1e-4) * clipped.abs() + 1.01 * unit * scale
    assert bool(((q.double() * scale - clipped).abs() <= limit).all())
    expected = (plain / scale).clamp(-largest - (q.dtype == torch.int8), largest)
    expected = expected.round() if q.dtype == torch.int8 else expected.float().to(q.dtype).double()
    assert float((q.double() == expected).double().mean()) > 0.95


# vLLM: test_fused_rms_norm_quant.


@pytest.mark.parametrize("strided", [False, True], ids=["dense", "strided"])
@pytest.mark.parametrize("adds", [False, True], ids=["norm", "residual"])
@pytest.mark.parametrize("scale", few(0.01, 1.0, 10.0))
@pytest.mark.parametrize("dtype", [*HALVES, torch.float32], ids=str)
@pytest.mark.parametrize("hidden_size", few(8, 768, 769, 5120, 8192, 5125))
@pytest.mark.parametrize("num_tokens", [7, 83, 4096] if ON_GPU else [7])
def test_vllm_static(num_tokens, hidden_size, dtype, scale, adds, strided):
    weight = 1 + 0.1 * random(hidden_size, dtype=dtype)
    x = random(num_tokens, hidden_size * (2 if strided else 1), dtype=dtype)[:, :hidden_size]
    out = torch.empty(num_tokens, hidden_size, device=DEVICE, dtype=torch.float8_e4m3fn)
    number = torch.tensor(scale, device=DEVICE)
    if not adds:
        vllm.rms_norm_static_fp8_quant(out, x, weight, number, 1e-6)
        return close_in_8_bits(out, number, x, None, weight)
    residual = random(num_tokens, hidden_size, dtype=dtype)
    total = (x.float() + residual.float()).to(dtype)
    vllm.fused_add_rms_norm_static_fp8_quant(out, x, residual, weight, number, 1e-6)
    assert torch.equal(residual, total)
    close_in_8_bits(out, number, x, residual, weight)


# vLLM: tests/kernels/core/test_fused_quant_layernorm.py.


@pytest.mark.parametrize("strided", [False, True], ids=["dense", "strided"])
@pytest.mark.parametrize("group, alignment", [(None, 0), (64, 0), (64, 4), (128, 4)])
@pytest.mark.parametrize("code", [torch.int8, torch.float8_e4m3fn], ids=str)
@pytest.mark.parametrize("bounded", [True, False], ids=["bounded", "free"])
@pytest.mark.parametrize("adds", [False, True], ids=["norm", "residual"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("tokens, hidden_size", few((1, 1), (1, 64), (1, 1029), (2048, 1025), (9, 5120)))
def test_vllm_dynamic(tokens, hidden_size, dtype, adds, bounded, code, group, alignment, strided):
    if bounded and (group is not None or code == torch.int8) or group is not None and hidden_size % group:
        pytest.skip("vLLM's tests leave it out, too")
    weight = 1 + 0.1 * random(hidden_size, dtype=dtype)
    x = random(tokens, hidden_size * (2 if strided else 1), dtype=dtype)[:, :hidden_size]
    residual = random(tokens, hidden_size, dtype=dtype) if adds else None
    total = (x.float() + residual.float()).to(dtype) if adds else None
    bound = torch.tensor(0.5, device=DEVICE) if bounded else None
    if group is None:
        out, scales = vllm.rms_norm_dynamic_per_token_quant(x, weight, 1e-6, code, bound, residual)
    else:
        given = x, weight, 1e-6, code, [1, group], bound, residual
        out, scales = vllm.rms_norm_per_block_quant(*given, True, alignment)
        padded = -(-tokens // alignment) * alignment if alignment else tokens
        assert scales.stride() == (1, padded)
        other, by_rows = vllm.rms_norm_per_block_quant(x, weight, 1e-6, code, [1, group])
        assert by_rows.is_contiguous() and (adds or torch.equal(by_rows, scales) and torch.equal(other, out))
    assert out.dtype == code and scales.shape == (tokens, 1 if group is None else hidden_size // group)
    assert not adds or torch.equal(residual, total)
    close_in_8_bits(out, scales, x, residual, weight, bound)


# FlashInfer: test_norm_quant and test_fused_add_rmsnorm_quant of tests/utils/test_norm.py.


@pytest.mark.parametrize("adds", [False, True], ids=["norm", "residual"])
@pytest.mark.parametrize("contiguous", [True, False], ids=["contiguous", "slice"])
@pytest.mark.parametrize("pdl", [True, False], ids=["pdl", "plain"])
@pytest.mark.parametrize("scale", few(0.01, 1.0, 10.0))
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("hidden_size", few(111, 500, 1024, 3072, 3584, 4096, 8192, 16384))
@pytest.mark.parametrize("batch_size", few(1, 19, 99, 989) if ON_GPU else [19])
def test_flashinfer_in_8_bits(batch_size, hidden_size, dtype, scale, pdl, contiguous, adds):
    x = random(batch_size, hidden_size * (1 if contiguous else 2), dtype=dtype)[:, :hidden_size]
    weight, number = random(hidden_size, dtype=dtype), torch.tensor([scale], device=DEVICE)
    out = torch.empty(batch_size, hidden_size, device=DEVICE, dtype=torch.float8_e4m3fn)
    residual = random(batch_size, hidden_size, dtype=dtype) if adds else None
    if adds:
        total = (x.float() + residual.float()).to(dtype)
        flashinfer.fused_add_rmsnorm_quant(out, x, residual, weight, number, enable_pdl=pdl)
        assert torch.equal(residual, total)
    else:
        flashinfer.rmsnorm_quant(out, x, weight, scale if pdl else number, enable_pdl=pdl)
    close_in_8_bits(out, number, x, residual, weight)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("rows, hidden_size", few((1, 512), (7, 4096), (129, 16384)) if ON_GPU else [(7, 1024)])
def test_flashinfer_blocks(rows, hidden_size, dtype):
    x, residual = random(rows, hidden_size, dtype=dtype), random(rows, hidden_size, dtype=dtype)
    weight, normed = random(hidden_size, dtype=dtype), torch.empty_like(x)
    out = torch.empty(rows, hidden_size, device=DEVICE, dtype=torch.float8_e4m3fn)
    scales = torch.full((hidden_size // 128, -(-rows // 4) * 4), -1.0, device=DEVICE)
    flashinfer.fused_add_rmsnorm_fp8_block_quant(out, scales, normed, x, residual, weight)
    close(normed, residual, weight)
    close_in_8_bits(out, scales.T[:rows].contiguous(), x, residual, weight)
    assert bool((scales.T[rows:] == -1).all())
    again = normed.view(rows, -1, 128).float() / scales.T[:rows, :, None]
    assert torch.equal(again.clamp(-448, 448).view(rows, -1).to(out.dtype).view(torch.uint8), out.view(torch.uint8))
