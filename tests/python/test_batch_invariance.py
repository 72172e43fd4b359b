"""batch_invariant: a row's bits are the same alone and beside others, for every function of the package.

Without the option, the CPU device, whose four multiprocessors are part of the choice, gives a call of ten rows of 2048 in
float32 another kernel than a call of a hundred, which adds up in another order.
"""

import sys

import pytest
from conftest import TORCH, full_but, run
from python_package import SITE, install

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")
ROWS, SOME, COLS = 100, 10, 2048
with_torch = pytest.mark.skipif(not TORCH, reason="PyTorch is large: TORCH=1 runs this")


@pytest.fixture(scope="module")
def rms_norm():
    pytest.importorskip("tvm_ffi")
    return install()


def random(shape, dtype="float32", seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def same(one, other):
    assert len(one) == len(other)
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(one, other))


def forward(package, x, rows, **options):
    return [package.rms_norm(x[rows], random(COLS, seed=2), **options)]


def fused_add(package, x, rows, **options):
    return list(package.fused_add_rms_norm(x[rows].copy(), random(x.shape, seed=3)[rows], **options))


def heads(package, x, rows, **options):
    qkv = x.reshape(ROWS, -1)[rows].copy()
    return [package.qk_norm(qkv, None, None, 1, 1, COLS // 2, rounding="llama", **options)]


@pytest.mark.parametrize("function", [forward, fused_add])
def test_rows_have_the_same_bits_beside_others(rms_norm, function):
    x = random((ROWS, COLS))
    for invariant in (False, True):
        some = [y[:SOME] for y in function(rms_norm, x, slice(None), batch_invariant=invariant)]
        assert same(some, function(rms_norm, x, slice(0, SOME), batch_invariant=invariant)) == invariant
    alone = function(rms_norm, x, slice(7, 8), batch_invariant=True)
    assert same([y[7:8] for y in some], alone)


@pytest.mark.parametrize("cols", full_but([1, 31, 1000, 1023, 1024, 1025, 8192, 16384, 65537], 1, 1025, 65537))
@pytest.mark.parametrize("dtype", full_but(["float32", ml_dtypes.bfloat16], "float32"), ids=["float32", "bfloat16"])
def test_rows_of_any_length_and_at_any_address(rms_norm, dtype, cols):
    wide, weight = random((3, cols + 3), dtype), random(cols, dtype, 2)
    x = wide[:, 1 : cols + 1]
    together = rms_norm.rms_norm(x.copy(), weight, batch_invariant=True)
    in_place = x.copy()
    rms_norm.rms_norm(in_place, weight, out=in_place, batch_invariant=True)
    others = [rms_norm.rms_norm(x, weight, batch_invariant=True), in_place]
    others.append(np.concatenate([rms_norm.rms_norm(row[None].copy(), weight, batch_invariant=True) for row in x]))
    for other in others:
        assert same([together], [other])


def test_heads(rms_norm):
    x = random((ROWS, COLS))
    together, some = (heads(rms_norm, x, rows, batch_invariant=True)[0] for rows in (slice(None), slice(0, SOME)))
    assert same([together[:SOME]], [some])


FOR_VLLM = f"""
import numpy as np
from rms_norm import vllm
x, weight = np.random.default_rng(1).standard_normal(({ROWS}, {COLS}), "float32"), np.ones({COLS}, "float32")
all, some, total = np.empty_like(x), np.empty_like(x[:{SOME}]), x.copy()
vllm.rms_norm(all, x, weight, 1e-6)
vllm.rms_norm(some, x[:{SOME}], weight, 1e-6)
same = [(all[:{SOME}] == some).all()]
all, some, total_of_some = x.copy(), x[:{SOME}].copy(), total[:{SOME}].copy()
vllm.fused_add_rms_norm(all, total, weight, 1e-6)
vllm.fused_add_rms_norm(some, total_of_some, weight, 1e-6)
print(*same, (all[:{SOME}] == some).all())
"""


@pytest.mark.parametrize("value", full_but(["1", "0", "yes"], "1"))
def test_vllm_reads_the_variable_of_vllm(rms_norm, value):
    done = run(sys.executable, "-c", FOR_VLLM, PYTHONPATH=str(SITE), VLLM_BATCH_INVARIANT=value)
    assert done.stdout.strip() == ("True True" if value == "1" else "False False"), done.stdout + done.stderr


# --- PyTorch --------------------------------------------------------------------------------------------------


@with_torch
@pytest.mark.parametrize("how", ["direct", "operator", "module", "compiled"])
def test_in_pytorch(rms_norm, how):
    torch = pytest.importorskip("torch")
    import rms_norm.torch as ours

    torch.manual_seed(1)
    x, residual, weight = torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.randn(COLS)
    module = ours.RMSNorm(COLS, batch_invariant=True)
    module.weight.data[:] = weight
    assert "batch_invariant=True" in repr(module)
    calls = {
        "direct": lambda x: ours.rms_norm(x, weight, batch_invariant=True),
        "operator": lambda x: torch.ops.rms_norm.rms_norm(x, weight, batch_invariant=True),
        "module": lambda x: module(x).detach(),
        "compiled": torch.compile(lambda x: ours.rms_norm(x, weight, batch_invariant=True), fullgraph=True),
    }
    assert torch.equal(calls[how](x)[:SOME], calls[how](x[:SOME]))
    with torch.no_grad():
        for y, of_some in zip(module(x, residual), module(x[:SOME], residual[:SOME])):
            assert torch.equal(y[:SOME], of_some)


@with_torch
@pytest.mark.parametrize("with_residual", [False, True])
def test_gradients_of_rows(rms_norm, with_residual):
    """dx is so with or without the option; dweight is a sum over rows, with the same bits for the same call."""
    torch = pytest.importorskip("torch")
    import rms_norm.torch as ours

    torch.manual_seed(1)
    x, residual, dy = torch.randn(3, 300, 1000)
    weight = torch.randn(1000)

    def gradients(rows):
        given = [t[rows].clone().requires_grad_() for t in ([x, residual] if with_residual else [x])]
        of_weight = weight.clone().requires_grad_()
        if with_residual:
            y, total = ours.fused_add_rms_norm(*given, of_weight, batch_invariant=True)
            torch.autograd.backward([y, total], [dy[rows], dy[rows]])
        else:
            ours.rms_norm(*given, of_weight, batch_invariant=True).backward(dy[rows])
        return given[0].grad, of_weight.grad

    dx, dweight = gradients(slice(None))
    assert all(torch.equal(one, other) for one, other in zip((dx, dweight), gradients(slice(None))))
    for rows in (slice(0, 1), slice(299, 300), slice(100, 257)):
        assert torch.equal(dx[rows], gradients(rows)[0])
