"""The documents' Python programs, with TORCH=1: kernels from PyTorch, and that each program runs and prints its table."""

import os
import sys

import pytest
from conftest import BACKEND, ROOT, run
from python_package import SITE, install

torch = pytest.importorskip("torch")
install()
os.environ.setdefault("BACKEND", BACKEND)
PRECISION, SERVING = ROOT / "assignment1/rms_norm/precision", ROOT / "assignment1/rms_norm/serving"
sys.path[:0] = [str(PRECISION), str(ROOT / "tools")]
import rms_norm as package
from ladder.measure import graph_timing

DEVICE = "cuda" if BACKEND == "cuda" else "cpu"


@pytest.fixture(scope="module")
def program():
    """rms_norm.py of the precision ladder, which has the name of the package."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("precision_rms_norm", PRECISION / "rms_norm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert package.BACKEND == BACKEND and module.device() == DEVICE
    return module


NAMES = (
    "f32 f32x4 f16_f16 f16x2_f16 f16x8_f16 f16x8_f32 f16x8_pack_f16 f16x8_pack_f32 f16_f32 bf16_bf16 bf16x8_pack_f32"
)


@pytest.mark.parametrize("name", NAMES.split())
def test_kernels_of_the_precision_ladder(program, name):
    function = getattr(program, f"rms_norm_{name}")
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf1": torch.bfloat16}[name[:3]]
    for rows, cols in ((0, 8), (1, 1), (3, 31), (2, 1000), (5, 1025)):
        x, weight = torch.randn(rows, cols).to(DEVICE, dtype), (1 + torch.rand(cols)).to(DEVICE, dtype)
        y = torch.full_like(x, torch.nan)
        function(x, y, weight, 1e-5)
        wide = x.double()
        expected = wide * torch.rsqrt(wide.square().mean(dim=1, keepdim=True) + 1e-5) * weight.double()
        # Sums of the 16-bit type itself round in each of their ten levels, and each of a thread's elements.
        sums_in_type = name.endswith("_f16") or name == "bf16_bf16"
        kind = str(dtype).removeprefix("torch.")
        limit = graph_timing.tolerance(kind, cols, residual=False) * (16 if sums_in_type else 1)
        assert bool(((y.double() - expected).abs() <= limit * expected.abs() + graph_timing.SMALLEST[kind]).all())


def test_the_precision_ladders_functions_refuse(program):
    x = torch.zeros(2, 8, device=DEVICE)
    with pytest.raises(TypeError, match="x must be a matrix of torch.float16"):
        program.rms_norm_f16_f32(x, x)
    with pytest.raises(ValueError, match=r"y must be contiguous and have the shape \(2, 8\), not \(2, 7\)"):
        program.rms_norm_f32(x, torch.zeros(2, 7, device=DEVICE))
    with pytest.raises(ValueError, match="x must be contiguous"):
        program.rms_norm_f32(torch.zeros(8, 2, device=DEVICE).T, x)


def test_the_precision_ladders_table():
    done = run(sys.executable, PRECISION / "rms_norm.py", "--shape", "3x512", BACKEND=BACKEND)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in "out_f32 out_f32x4 out_f32_th out_f16f16 out_f16f32 out_f16x2f16 out_f16x8f16 out_f16x8f32".split():
        assert f"\n{name:>17}: ['" in done.stdout
    assert "N=3, K=512" in done.stdout and ("time:" in done.stdout) == (BACKEND == "cuda")


def test_shapes_without_a_number_are_refused():
    for shape in ("0x128", "128x0", "128"):
        done = run(sys.executable, PRECISION / "rms_norm.py", "--shape", shape, BACKEND=BACKEND)
        assert done.returncode == 2 and f"{shape} is no shape" in done.stderr


def test_the_serving_ladders_tests_run_as_a_program():
    path = os.pathsep.join([str(SITE), os.environ.get("PYTHONPATH", "")])
    words = ["-q", "-p", "no:cacheprovider", "--collect-only", "-k", "no_tokens"]
    done = run(sys.executable, SERVING / "test_layernorm.py", *words, PYTHONPATH=path, BACKEND=BACKEND)
    assert done.returncode == 0 and "test_no_tokens[header]" in done.stdout, done.stdout + done.stderr


def test_the_serving_ladder_says_how_to_get_the_package():
    done = run(
        sys.executable, SERVING / "benchmark_layernorm.py", "--kernel", "header", "--num-tokens", "1", BACKEND=BACKEND
    )
    assert done.returncode == 1 and "pip install ./python" in done.stderr


def test_the_documents_options_need_no_package():
    """Its line is left out with the reason, and the other two run."""
    options = ["--num-tokens", "40", "--hidden-size", "96", "--dtype", "half", "--num-iters", "2"]
    done = run(sys.executable, SERVING / "benchmark_layernorm.py", *options, BACKEND=BACKEND)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "before" in done.stdout and "after" in done.stdout
    assert "\nheader: did not run: the package of python/ is not installed (pip install ./python)" in done.stdout


def test_the_documents_table_is_a_csv_only_where_it_was_timed(tmp_path):
    target = tmp_path / "python.csv"
    done = run(sys.executable, PRECISION / "rms_norm.py", "--shape", "3x512", "--csv", target, BACKEND=BACKEND)
    if BACKEND == "cuda":
        assert done.returncode == 0 and target.read_text(encoding="utf-8").count("\n") == 15
    else:
        assert done.returncode == 1 and "times need a GPU" in done.stderr and not target.exists()


def test_the_serving_ladders_script():
    options = ["--num-tokens", "5", "--hidden-size", "96", "--dtype", "bfloat16", "--add-residual"]
    path = os.pathsep.join([str(SITE), os.environ.get("PYTHONPATH", "")])
    given = {"PYTHON": sys.executable, "PYTHONPATH": path, "BACKEND": BACKEND, "PYTHONDONTWRITEBYTECODE": "1"}
    if BACKEND == "cuda":  # without the script's grid, which only repeats the benchmark
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", SERVING / "test_layernorm.py"]
        tested = run(*words, timeout=1200, **given)
        done = run(sys.executable, SERVING / "benchmark_layernorm.py", *options, **given)
    else:
        tested = done = run(SERVING / "test_and_benchmark_layernorm.sh", *options, timeout=1200, **given)
    assert tested.returncode == done.returncode == 0, tested.stdout + tested.stderr + done.stdout + done.stderr
    assert "passed" in tested.stdout and "failed" not in tested.stdout
    assert ("header: kernel running time" if BACKEND == "cuda" else "which times nothing") in done.stdout
    done = run(sys.executable, SERVING / "benchmark_layernorm.py", "--dtype", "int8", **given)
    assert done.returncode == 2 and "--dtype" in done.stderr
