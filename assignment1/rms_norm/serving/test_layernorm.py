"""The document's matrix of tests, for the kernels before and after its changes and for this project's header.

    python3 -m pytest assignment1/rms_norm/serving/test_layernorm.py -v

Types, tokens, hidden sizes, residual, strided input, and every GPU; without a GPU, fewer and smaller of them on the CPU
device. Expected values are computed in float64; each result may differ by the roundings of its type.
"""

import itertools
import os
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import layernorm
from ladder.measure import graph_timing

DEVICES = layernorm.devices()
ON_GPU = DEVICES != ["cpu"]
SMALL = not ON_GPU and os.environ.get("FULL", "0") in ("", "0")
NUM_TOKENS = [7, 83, 4096, 8192] if ON_GPU else [7, 83]
HIDDEN_SIZES = [8, 768, 769, 5120, 5125, 8192] if not SMALL else [8, 768, 769, 5125]
SHAPES = list(itertools.product(NUM_TOKENS, HIDDEN_SIZES))
SHAPES += [(8192, 8)] if not ON_GPU else []  # larger ones would take the CPU device minutes


def kernels(name):
    try:
        return layernorm.kernels(name)
    except ImportError as error:
        pytest.skip(str(error))


def in_float64(x, residual, weight):
    """(the norm, the sum) before any rounding but that of the sum, which is stored in x's type and then normalized."""
    total = x if residual is None else (x.float() + residual.float()).to(x.dtype)
    wide = total.double()
    return wide * torch.rsqrt(wide.square().mean(dim=1, keepdim=True) + 1e-6) * weight.double(), total


@pytest.mark.parametrize("strided_input", [False, True], ids=["dense", "strided"])
@pytest.mark.parametrize("add_residual", [False, True], ids=["norm", "residual"])
@pytest.mark.parametrize("dtype", layernorm.DTYPES)
@pytest.mark.parametrize(("num_tokens", "hidden_size"), SHAPES)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", layernorm.NAMES)
def test_rms_norm(name, device, num_tokens, hidden_size, dtype, add_residual, strided_input):
    ops, kind = kernels(name), layernorm.DTYPES[dtype]
    generator = torch.Generator().manual_seed(num_tokens * hidden_size)

    def random(*shape):
        return torch.randn(shape, generator=generator).to(kind).to(device)

    weight = 1.0 + 0.1 * random(hidden_size)
    wide = random(num_tokens, hidden_size + (64 if strided_input else 0)) / (2 * hidden_size)
    x, residual = wide[:, :hidden_size], random(num_tokens, hidden_size) / (2 * hidden_size) if add_residual else None
    expected, total = in_float64(x, residual, weight)
    gaps = wide[:, hidden_size:].clone()
    if add_residual:
        ops.fused_add_rms_norm(x, residual, weight, 1e-6)
        got = x
        assert torch.equal(residual, total)
    else:
        got = torch.full((num_tokens, hidden_size), torch.nan, dtype=kind, device=device)
        ops.rms_norm(got, x, weight, 1e-6)
    assert torch.equal(wide[:, hidden_size:], gaps)  # what lies between the rows is not touched
    # Two roundings of the type and those of float32; below the smallest normal number, an absolute error.
    name_of = str(kind).removeprefix("torch.")
    tolerance = graph_timing.tolerance(name_of, hidden_size, residual=False)
    error = (got.double() - expected).abs()
    assert bool((error <= tolerance * expected.abs() + graph_timing.SMALLEST[name_of]).all())


@pytest.mark.parametrize("name", layernorm.NAMES)
def test_no_tokens(name):
    ops, device = kernels(name), DEVICES[0]
    x, weight = torch.empty(0, 64, device=device), torch.ones(64, device=device)
    ops.rms_norm(torch.empty_like(x), x, weight, 1e-6)
    ops.fused_add_rms_norm(x, torch.empty_like(x), weight, 1e-6)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
