"""Which architectures the ladders' Python programs compile their kernels for."""

import pytest
from ladder.core import machine
from ladder.core.ladders import Unusable
from ladder.measure import kernel_library


@pytest.fixture(autouse=True)
def tools(monkeypatch):
    monkeypatch.setattr(machine, "find_nvcc", lambda: "nvcc")
    monkeypatch.setattr(machine, "query", lambda fields: "9.0")
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)


def gencode(*pairs):
    return ["nvcc", *(f"-gencode=arch=compute_{arch},code={code}" for arch, code in pairs)]


@pytest.mark.parametrize(
    "asked, options",
    [
        ("Ada", gencode(("89", "sm_89"), ("89", "compute_89"))),
        ("8.9", gencode(("89", "sm_89"))),
        ("8.7 8.9+PTX", gencode(("87", "sm_87"), ("89", "sm_89"), ("89", "compute_89"))),
        ("Ampere;9.0", gencode(("80", "sm_80"), ("86", "sm_86"), ("86", "compute_86"), ("90a", "sm_90a"))),
        ("9.0a", gencode(("90a", "sm_90a"))),
        ("Hopper", gencode(("90", "sm_90"), ("90", "compute_90"))),
        ("", ["nvcc", "-arch=sm_90a"]),
        (" ", ["nvcc", "-arch=sm_90a"]),
    ],
)
def test_pytorchs_variable_says_for_which_gpus(monkeypatch, asked, options):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", asked)
    assert kernel_library.compiler("cuda") == options


def test_without_the_variable_it_is_the_gpu_that_is_there():
    assert kernel_library.compiler("cuda") == ["nvcc", "-arch=sm_90a"]


@pytest.mark.parametrize("asked", ["ada", "89", "sm_89", "8.9;Lovelace", "8.9+ptx"])
def test_a_word_that_is_no_architecture_is_refused(monkeypatch, asked):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", asked)
    with pytest.raises(Unusable, match="is no architecture; say 8.9"):
        kernel_library.compiler("cuda")


def test_the_cpu_device_ignores_it(monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "Ada")
    assert kernel_library.compiler("cpu")[0].endswith("simt/simtcc")
