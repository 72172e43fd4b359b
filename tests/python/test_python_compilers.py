"""The package under torch.compile, in two processes, and where it stands in for torch.nn.RMSNorm and autocast meets it.

Kernels run through the CPU device, or on a GPU, as in test_python_torch.py.
"""

import importlib
import socket
import sys

import pytest
from conftest import ROOT, run
from python_package import BACKEND, SITE, install

torch = pytest.importorskip("torch")

install()
import rms_norm
import rms_norm.torch as ours
from rms_norm import flashinfer, vllm

DEVICE = "cuda" if BACKEND == "cuda" else "cpu"
HALVES = [torch.float16, torch.bfloat16]


@pytest.fixture(autouse=True)
def start():
    torch.set_default_device(DEVICE)
    torch.manual_seed(1)
    torch._dynamo.reset()
    yield
    torch.set_default_device(None)


def close(got, expected):
    roundings = 2 * torch.finfo(got.dtype).eps
    torch.testing.assert_close(got, expected, rtol=roundings + 1e-5, atol=1e-5)


# --- torch.compile ------------------------------------------------------------------------------------------


def as_vllm(x, residual, weight):
    out = torch.empty_like(x)
    vllm.rms_norm(out, 2 * x, weight, 1e-6)
    vllm.fused_add_rms_norm(out, residual, weight, 1e-6)
    return out + 1


def as_flashinfer(x, residual, weight):
    y = flashinfer.rmsnorm(2 * x, weight)
    flashinfer.fused_add_rmsnorm(y, residual, weight)
    z = flashinfer.gemma_rmsnorm(y, weight, out=torch.empty_like(y))
    flashinfer.gemma_fused_add_rmsnorm(z, residual, weight, enable_pdl=False)
    return y * z


def in_place_of_views(x, residual, weight):
    """Of one tensor, what is read is also written, in part."""
    rows = torch.cat([x, residual], -1)
    vllm.rms_norm(rows[:, :64], rows[:, :64], weight, 1e-6)
    flashinfer.rmsnorm(rows[:, 64:], weight, out=rows[:, 64:])
    rms_norm.qk_norm(rows, weight[:16], None, 2, 2, 16, weight_offset=1.0)
    return rows


def to_other_places(x, residual, weight):
    total = torch.zeros_like(x)
    y, _ = rms_norm.fused_add_rms_norm(x, residual, weight, out=torch.empty_like(x), residual_out=total)
    return y + total, rms_norm.rms_norm(x, cache="normal")


def rotated(x, residual, weight):
    """What qk_norm_rope() writes, from its parts; x becomes four rows of two query heads, a key head and a value head."""
    cos_sin, positions, rows = residual[:, :16].contiguous(), torch.arange(5, device=x.device).flip(0), 2 * x
    flat = rms_norm.qk_norm_rope(rows, weight[:16], None, cos_sin, positions, 2, 1, 16)
    vllm.fused_qk_norm_rope(rows, 1, 1, 2, 16, 1e-6, weight[:16], weight[16:32], cos_sin, False, positions)
    return flat + rows


def to_8_bits(x, residual, weight):
    """All outputs of a norm that ends in 8 bits: these numbers, scales, the norm itself and the sum."""
    y, number = torch.zeros_like(x), torch.full((1,), 0.05)
    q, scales, total = rms_norm.rms_norm_quantized(x, weight, residual=residual, block=64, y=y)
    out = torch.empty_like(q)
    vllm.rms_norm_static_fp8_quant(out, total, weight, number, 1e-6)
    codes, found = vllm.rms_norm_dynamic_per_token_quant(x, weight, 1e-6, torch.int8)
    flashinfer.fused_add_rmsnorm_quant(out, x, residual, weight, number)
    for scale in (1, 0.05, number.double(), number[0]):
        flashinfer.rmsnorm_quant(out, x, weight, scale)
    return q.float() * scales + y, codes * found, out.float()


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.full)])
@pytest.mark.parametrize("call", [as_vllm, as_flashinfer, in_place_of_views, to_other_places, rotated, to_8_bits])
def test_functions_that_write_compile_without_a_break(call, backend):
    x, residual, weight = torch.randn(5, 64), torch.randn(5, 64), torch.randn(64)
    given, same = [x.clone(), residual.clone()], [x.clone(), residual.clone()]
    with torch.no_grad():
        got, expected = torch.compile(call, fullgraph=True, backend=backend)(*given, weight), call(*same, weight)
    torch.testing.assert_close([got, given], [expected, same])  # what they return, and what they wrote


def test_compiled_code_calls_the_operators_that_write():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    with torch.no_grad():
        torch.compile(as_vllm, fullgraph=True, backend=backend)(torch.randn(5, 64), torch.randn(5, 64), torch.ones(64))
    operators = torch.ops.rms_norm
    called = [node.target for node in graphs[0].graph.nodes if "rms_norm" in str(node.target)]
    assert called == [operators.rms_norm_out, operators.fused_add_rms_norm_]


def test_one_compiled_function_serves_any_number_of_rows():
    compiled = torch.compile(as_flashinfer, fullgraph=True, backend="aot_eager", dynamic=True)
    weight = torch.randn(64)
    with torch.no_grad(), torch._dynamo.config.patch(error_on_recompile=True):
        for rows in (5, 7, 30):
            x, residual = torch.randn(2, rows, 64)
            close(compiled(x, residual.clone(), weight), as_flashinfer(x, residual.clone(), weight))


@pytest.mark.parametrize("call", [as_vllm, as_flashinfer, to_other_places])
def test_compiled_functions_that_write_refuse_gradients(call):
    x, residual = torch.randn(2, 5, 64)
    weight = torch.nn.Parameter(torch.ones(64))
    with pytest.raises(Exception, match="a tensor requires grad"):
        torch.compile(call, fullgraph=True, backend="aot_eager")(x, residual, weight)
    with pytest.raises(ValueError, match="a tensor requires grad"):
        torch.ops.rms_norm.rms_norm_out(torch.empty_like(x), x, weight)


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
def test_heads_are_rotated_as_models_do(dtype):
    """In Llama's form, where x · cos + rotate_half(x) · sin has both halves of the cosines alike."""
    qkv, weight, positions = torch.randn(7, 128, dtype=dtype), torch.randn(16, dtype=dtype), torch.randint(0, 50, (7,))
    angles = torch.arange(50)[:, None] / 10000 ** (torch.arange(0, 16, 2) / 16)
    heads = torch.nn.functional.rms_norm(qkv[:, :96].view(7, 6, 16).float(), (16,), weight.float(), 1e-6)
    cos, sin = (torch.cat([part, part], -1)[positions][:, None] for part in (angles.cos(), angles.sin()))
    expected = heads * cos + torch.cat([-heads[..., 8:], heads[..., :8]], -1) * sin
    y = rms_norm.qk_norm_rope(
        qkv.clone(), weight, weight, torch.cat([angles.cos(), angles.sin()], -1), positions, 4, 2, 16
    )
    torch.testing.assert_close(
        y[:, :96].reshape(7, 6, 16), expected.to(dtype), rtol=2 * torch.finfo(dtype).eps, atol=1e-5
    )
    assert torch.equal(y[:, 96:], qkv[:, 96:])
    square = (torch.ones_like(y).requires_grad_() * y).sum()
    rms_norm.qk_norm_rope(y, weight, None, torch.ones(50, 16), positions, 4, 2, 16)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.backward()
    with pytest.raises(ValueError, match="a tensor requires grad"):
        rms_norm.qk_norm_rope(y, torch.nn.Parameter(weight), None, torch.ones(50, 16), positions, 4, 2, 16)


def test_operators_that_write():
    x, residual = torch.randn(2, 3, 4, 64)
    weight = torch.randn(64).half()
    out, total = torch.empty(4, 3, 64).transpose(0, 1), torch.empty(3, 4, 64)
    operators = torch.ops.rms_norm
    operators.rms_norm_out(out, x, weight, 0.5, weight_offset=1.0)
    close(out, rms_norm.rms_norm(x, weight, 0.5, weight_offset=1.0))
    operators.fused_add_rms_norm_out(out, total, x, residual, weight, rounding="llama")
    assert torch.equal(total, x + residual)
    close(out, rms_norm.rms_norm(total, weight, rounding="llama"))
    square = (torch.ones_like(out).requires_grad_() * out).sum()
    operators.rms_norm_out(out, x, weight)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.backward()
    for wrong in (out[:2], out.double()):
        with pytest.raises((TypeError, ValueError), match="out has"):
            operators.rms_norm_out(wrong.to("meta"), x.to("meta"), None)


# --- The module in place of torch.nn.RMSNorm ----------------------------------------------------------------


def sliced(*shape):
    return torch.randn([2 * length for length in shape])[tuple(slice(None, None, 2) for _ in shape)]


INPUTS = {
    "transposed": (64, lambda: torch.randn(6, 5, 64).transpose(0, 1)),
    "not contiguous": (64, lambda: torch.randn(64, 6).T),
    "three strides": (8, lambda: sliced(3, 4, 5, 16)[..., :8]),
    "all dimensions permuted": (5, lambda: torch.randn(2, 3, 4, 5).permute(2, 0, 1, 3)),
    "heads of wider rows": (8, lambda: torch.randn(2, 3, 32)[..., 8:24].view(2, 3, 2, 8)),
    "expanded": (8, lambda: torch.randn(1, 1, 1, 8).expand(4, 3, 5, 8)),
    "one dimension": (8, lambda: torch.randn(8)),
    "one column": (1, lambda: torch.randn(1, 5).T),
    "two dimensions": ((5, 8), lambda: torch.randn(3, 5, 8)),
    "two dimensions, transposed": ((5, 8), lambda: torch.randn(3, 8, 5).transpose(1, 2)),
    "two dimensions of wider rows": ([5, 8], lambda: torch.randn(3, 5, 16)[..., :8]),
    "all dimensions": ((5, 8), lambda: torch.randn(5, 8)),
    "no rows": (8, lambda: torch.randn(3, 0, 8).transpose(0, 1)),
    "no columns": (0, lambda: torch.randn(3, 0)),
    "no columns in two dimensions": ((3, 0), lambda: torch.randn(2, 3, 0)),
}


@pytest.mark.parametrize("affine", [True, False], ids=["affine", "plain"])
@pytest.mark.parametrize("name", INPUTS)
def test_the_module_takes_what_that_of_torch_takes(name, affine):
    shape, make = INPUTS[name]
    modules = [kind(shape, elementwise_affine=affine) for kind in (ours.RMSNorm, torch.nn.RMSNorm)]
    if affine:
        torch.nn.init.normal_(modules[0].weight)
        modules[1].load_state_dict(modules[0].state_dict())
    x = make()
    results = []
    for module in modules:
        leaf = x.detach().requires_grad_()
        y = module(leaf)
        dy = torch.arange(y.numel(), dtype=y.dtype).view(y.shape)
        results.append([y, *torch.autograd.grad(y, [leaf, *module.parameters()], dy)])
        with torch.no_grad():
            assert torch.equal(module(x), y)
    for got, expected in zip(*results):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    assert results[0][0].is_contiguous() and results[0][0].view(-1).shape == (x.numel(),)


def test_the_module_adds_what_is_strided():
    x, residual = torch.randn(5, 6, 8).transpose(0, 1), torch.randn(6, 8, 5).transpose(1, 2)
    for module in (ours.RMSNorm(8), ours.RMSNorm((5, 8))):
        y, total = module(x, residual)
        assert torch.equal(total, x + residual) and y.is_contiguous() and total.is_contiguous()
        close(y, torch.nn.RMSNorm(module.normalized_shape)(total))
        compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
        for got, expected in zip(compiled(x, residual), (y, total)):
            close(got, expected)
    with pytest.raises(ValueError, match=r"residual has the shape \(6, 8, 5\)"):
        ours.RMSNorm((5, 8))(x, residual.transpose(1, 2))


def test_slices_are_not_copied(monkeypatch):
    """The kernels walk two strides: what they can read where it is, they do."""
    given, kernel = [], rms_norm._arrays.kernel
    monkeypatch.setattr(rms_norm._arrays, "kernel", lambda x, *rest: (given.append(x.data_ptr()), kernel(x, *rest)))
    packed = torch.randn(2, 3, 32)
    heads = packed[..., 8:24].view(2, 3, 2, 8)
    with torch.no_grad():
        ours.RMSNorm(8)(heads)
        ours.RMSNorm(32)(packed.transpose(0, 1))
    assert given == [heads.data_ptr(), packed.data_ptr()]


def test_the_module_cannot_be_scripted():
    with pytest.raises(NotImplementedError, match="use torch.compile, torch.export or torch.jit.trace"):
        torch.jit.script(torch.nn.Sequential(ours.RMSNorm(8)))
    module, x = ours.RMSNorm(8), torch.randn(3, 8)
    close(torch.jit.trace(module, x)(2 * x), module(2 * x))


# --- Autocast -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_autocast_adds_a_branch_to_a_stream_in_float32(half):
    linear, norm = torch.nn.Linear(32, 64), ours.RMSNorm(64)
    x, residual = torch.randn(3, 32), torch.randn(3, 64, requires_grad=True)
    with torch.autocast(DEVICE, half):
        branch = linear(x)
        y, total = norm(branch, residual)
        loss = (linear(y[:, :32]).float() * total).sum()
    loss.backward()
    assert branch.dtype == half and y.dtype == half and total.dtype == torch.float32
    assert torch.equal(total, branch + residual)
    close(y, torch.nn.functional.rms_norm(total, (64,), norm.weight, torch.finfo(torch.float32).eps).to(half))
    gradients = [residual.grad, norm.weight.grad, linear.weight.grad]
    assert all(gradient.dtype == torch.float32 and gradient.abs().sum() > 0 for gradient in gradients)


# --- Loaded again, and in two processes ---------------------------------------------------------------------

AGAIN = f"""
import importlib, sys, torch, rms_norm.flashinfer, rms_norm.q4_torch, rms_norm.torch as ours
torch.set_default_device("{DEVICE}")
x, weight = torch.randn(3, 8), torch.ones(8, requires_grad=True)
def check():
    import rms_norm.flashinfer, rms_norm.torch as ours
    with torch.inference_mode():
        assert torch.equal(torch.ops.rms_norm.rms_norm(x, None), ours.rms_norm(x))
    (dweight,) = torch.autograd.grad(ours.RMSNorm(8)(x).square().sum() + ours.rms_norm(x, weight).sum(), weight)
    compiled = torch.compile(lambda x: ours.rms_norm(x, weight).sum(), fullgraph=True, backend="aot_eager")
    assert torch.equal(torch.autograd.grad(compiled(x), weight)[0], dweight)
    compiled = torch.compile(lambda x: rms_norm.flashinfer.rmsnorm(x, x[0]), fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), ours.rms_norm(x, x[0]))
check()
for name in sorted(name for name in sys.modules if name.startswith("rms_norm.") and "_build" not in name):
    importlib.reload(sys.modules[name])
    check()
for name in [name for name in sys.modules if name.partition(".")[0] == "rms_norm"]:
    del sys.modules[name]
check()
print("right")
"""


def test_modules_are_loaded_again():
    importlib.reload(ours)
    assert ours.rms_norm(torch.ones(2, 8)).shape == (2, 8)
    done = run(sys.executable, "-c", AGAIN, PYTHONPATH=str(SITE))
    assert done.stdout == "right\n", done.stdout + done.stderr


@pytest.mark.full
@pytest.mark.skipif(BACKEND == "cuda", reason="two processes compute on the CPU device")
def test_two_processes_compute_parts_of_the_whole():
    """DTensor with every placement, sequence parallelism, FSDP2, which splits every parameter, with and without mixed
    precision, and models of transformers whose matrices are split."""
    pytest.importorskip("transformers", minversion="5.23")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    done = run(sys.executable, ROOT / "tests/python/two_processes.py", port, PYTHONPATH=str(SITE), timeout=300)
    of_models = "models_are_patched models_are_called_in_other_ways models_that_are_not_patched"
    in_shards = "sequence_parallel fully_sharded fully_sharded_in_bfloat16"
    parts = f"distributed_tensors what_is_refused all_reduced {of_models} {in_shards}".split()
    assert done.stdout.splitlines() == [f"{part} right" for part in parts], done.stdout + done.stderr
