"""The shapes, types and options of vLLM's and FlashInfer's tests of RMSNorm, for rms_norm.vllm and .flashinfer.

With TORCH=1; without a GPU a few of each list. The tests are this project's: what they compare with is float64.
"""

import sys

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
