"""bench/gemm/gemm_peers.py: its command line, the tables of its results on invented numbers, and llama.cpp's library where it
is installed, or in the folder that GGML_FOLDER names."""

import contextlib
import ctypes
import os
import sys
import types

import gguf
import numpy
import pytest
from conftest import ROOT, TORCH, run
from ladder.core import machine, results
from ladder.core.ladders import Unusable

from bench.gemm import gemm_tables
from bench.gemm.gemm_tables import COLD, NORM, PEERS, WARM
from bench.norm import competitors, peers


def row(kind, competitor, microseconds=None, shape=(4096, 14336, 1), **values):
    m, k, n = shape
    known = {"m": m, "k": k, "n": n, "competitor": competitor, "cache": COLD, "verdict": "ok", "error": "1e-4"}
    known.update(limit="2e-3", rounds="y to something", replays=12, gpu="NVIDIA Fake 9000", cuda_runtime="13.0")
    known.update(date="2026-01-31", microseconds="" if microseconds is None else microseconds)
    if microseconds:
        known.update(
            gb_per_s=f"{m * k / 2 / microseconds / 1e3:.1f}", tflop_per_s=f"{2 * m * n * k / microseconds / 1e6:.2f}"
        )
    return [str({**known, **values}.get(name, "")) for name in gemm_tables.COLUMNS[kind]]


MANY = (4096, 14336, 512)
LAYER = (1024, 4096, 8)
ROWS = [
    row(PEERS, "ours", 10.0),
    row(PEERS, "ours", 5.0, cache=WARM),
    row(PEERS, "llama_cpp", verdict="missing", reason="not installed: pip install llama-cpp-python"),
    row(PEERS, "int4pack", 20.0),
    row(PEERS, "cublas", 30.0, error="9e-4"),
    row(PEERS, "ours", 100.0, MANY),
    row(PEERS, "ours_rounded", 80.0, MANY),
    row(PEERS, "int4pack", 2000.0, MANY, verdict="wrong", reason="the error is nan"),
    row(PEERS, "llama_cpp", 50.0, MANY),
    row(PEERS, "cublas", 90.0, MANY),
    row(PEERS, "ours", 2.0, LAYER),
]


@pytest.fixture
def path(tmp_path):
    stored = tmp_path / "peers.csv"
    gemm_tables.store(stored, PEERS, ROWS)
    return stored


def cells(shapes, kind=PEERS, **options):
    header, body = gemm_tables.lines(shapes, kind, **options)
    return [dict(zip(header, line)) for line in body]


def test_speed_ups_are_over_peers_of_4_bits_that_are_right(path):
    first, many, layer = cells(gemm_tables.with_cache(gemm_tables.read(path, PEERS), COLD))
    assert first["over the fastest with 4 bits"] == "2.00" and first["over cuBLAS"] == "3.00"
    assert first["llama.cpp"] == "missing" and first["rounded"] == first["rounded, over cuBLAS"] == ""
    assert many["over the fastest with 4 bits"] == "0.50" and many["PyTorch int4"] == "wrong"
    assert many["over cuBLAS"] == "0.90" and many["rounded, over cuBLAS"] == "1.12"
    assert layer["over the fastest with 4 bits"] == layer["cuBLAS float16"] == ""


def test_rates_are_of_weights_below_16_columns_and_of_multiplications_above(path):
    first, many, _ = cells(gemm_tables.with_cache(gemm_tables.read(path, PEERS), COLD), rates=True)
    assert first["this header"] == "2936 GB/s" and first["llama.cpp"] == "missing"
    assert many["this header"] == "601.3 TFLOP/s" and "over cuBLAS" not in many


def test_the_page_says_what_was_measured_of_which_state_of_the_cache(path):
    page = path.parent / "README.md"
    text = gemm_tables.markdown(path, page, [COLD, "4096x14336"])
    assert "| 4096 × 14336 | 1 | 10.00 |" in text and "1024 × 4096" not in text
    assert "llama.cpp at 4096 × 14336, 1 column: missing (not installed: pip install llama-cpp-python)." in text
    assert "This header is 1.00 times as fast as the fastest peer" in text
    assert "at worst 0.50 times, at 4096 × 14336, 512 columns." in text
    assert "cuBLAS float16: y to something, error up to 9.0e-04, limit 2.0e-03." in text
    assert "NVIDIA Fake 9000, CUDA 13.0, 2026-01-31." in text and "[" + str(path) + "](peers.csv)" in text
    warm = gemm_tables.markdown(path, page, [WARM])
    assert "| 4096 × 14336 | 1 | 5.00 |" in warm and "512" not in warm and "one copy, in the L2 cache" in warm
    others = gemm_tables.markdown(path, page, ["not4096x14336"])
    assert "| 1024 × 4096 | 8 | 2.00 |" in others and "14336" not in others
    assert gemm_tables.markdown(path, page, [WARM, "1024x4096"]) is None
    assert "GB/s of weights below 16 columns" in gemm_tables.markdown(path, page, ["rates"])
    with pytest.raises(Unusable, match="hot is no word"):
        gemm_tables.markdown(path, page, ["hot"])


def test_only_a_fault_of_the_header_s_or_of_the_measurement_ends_with_1(path):
    assert gemm_tables.complaints(path) == []  # a wrong peer is none
    for bad in (
        row(PEERS, "ours", verdict="wrong", reason="bad"),
        row(PEERS, "cublas", verdict="impossible", reason="bad"),
    ):
        gemm_tables.store(path, PEERS, [*ROWS[5:], bad])
        (said,) = gemm_tables.complaints(path)
        assert said.startswith("peers 4096 × 14336, 1 column, cold: ") and said.endswith(": bad")


def test_the_table_of_the_norm(tmp_path):
    path = tmp_path / "norm.csv"
    rows = [("fused", 4.0), ("fused_plain", 5.0), ("two", 4.5), ("apart", 6.0), ("apart_plain", 8.0)]
    gemm_tables.store(path, NORM, [row(NORM, name, time, (4096, 4096, 16)) for name, time in rows])
    text = gemm_tables.markdown(path, path.parent / "README.md", [])
    assert "| 4096 × 4096 | 16 | 4.00 | 5.00 | 4.50 | 6.00 | 8.00 | 1.12 |" in text
    assert "Fused, a norm and a product are 1.50 times as fast as the faster form of three launches" in text
    assert "fused, plain launches" in gemm_tables.printed(path)


# The program.


def chosen(*words):
    from bench.gemm import gemm_peers

    return gemm_peers.complete(gemm_peers.arguments().parse_args(list(words)))


def test_only_the_default_run_replaces_the_stored_tables():
    default = chosen()
    assert default.default_run and default.replays == 12 and list(default.work) == [PEERS, NORM]
    shapes = default.work[PEERS]
    assert [n for m, n, k in shapes if (m, k) == (4096, 14336)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert len(shapes) == 30 and (151936, 64, 4096) in shapes
    assert chosen("--ggml", "somewhere").default_run and chosen("--norm").default_run
    assert list(chosen("--norm").work) == [NORM] and list(chosen("--products").work) == [PEERS]
    for words in (["--shape", "64x3x32"], ["--peers", "cublas"], ["--replays", "3"]):
        assert not chosen(*words).default_run
    assert chosen("--shape", "64x3x32", "--products").work == {PEERS: [(64, 3, 32)]}


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["--shape", "64x32"], "64x32 is no shape"),
        (["--shape", "64x0x32"], "64x0x32 is no shape"),
        (["--shape", "64x1x40"], "K a multiple of 32"),
        (["--peers", "cublas,nobody"], "unknown peer nobody"),
        (["--replays", "0"], "0 is not a whole number above 0"),
    ],
)
def test_a_bad_command_line_ends_with_2(words, complaint, capsys):
    from bench.gemm import gemm_peers

    assert gemm_peers.main(words) == 2 and complaint in capsys.readouterr().err


def test_without_pytorch_and_numpy_one_sentence_says_what_is_needed():
    code = "import sys; sys.modules.update(numpy=None, torch=None); sys.path[:0] = ['.', 'tools']; from bench.gemm import gemm_peers; "
    result = run(sys.executable, "-c", f"{code} sys.exit(gemm_peers.main([]))")
    assert result.returncode == 1 and "PyTorch is needed" in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 1


class Timer:
    """A competitor's, whose y may become wrong."""

    def __init__(self, microseconds, errors):
        self.microseconds, self.errors, self.closed = microseconds, iter(errors), False

    def of(self, weights):
        self.copies = len(weights)
        return self

    def time(self):
        return self.microseconds

    def results(self):
        return [types.SimpleNamespace(shape=(1, 4096), error=next(self.errors))]

    def close(self):
        self.closed = True


def contest(monkeypatch, timers, **of_competitor):
    """A Contest over competitors with these timers; a wrong y is one whose error is above the limit."""
    from bench.gemm import gemm_competitors, gemm_contest

    class Torch:
        class cuda:
            OutOfMemoryError = MemoryError

    def made(name):
        if isinstance(timers[name], Exception):
            return timers[name]
        about = {"limit": 0.5, "quantizes": True, "rounds": "y", "version": "1"}
        about.update(copies=lambda matrix: list(range(18)), weight_bytes=lambda matrix: 33_000_000)
        about.update(timer=lambda weights, matrix, x: timers[name][len(weights) == 1].of(weights))
        return types.SimpleNamespace(**{**about, **of_competitor})

    wrong = lambda torch, y, expected, limit: (y.error, "" if y.error <= limit else "it is wrong")  # noqa: E731
    monkeypatch.setattr(gemm_competitors, "error_of", wrong)
    gpu = types.SimpleNamespace(torch=Torch, l2_bytes=60e6, peak=4.8e12, facts={"gpu": "Fake"})
    matrix, given = types.SimpleNamespace(m=4096, k=14336), types.SimpleNamespace(replays=3)
    it = gemm_contest.Contest(gpu, PEERS, {name: made(name) for name in timers}, matrix, 1, given)
    it.x, it.expected = None, {True: types.SimpleNamespace(shape=(1, 4096))}
    found = [dict(zip(gemm_tables.COLUMNS[PEERS], line)) for line in it.measure()]
    return {(one["competitor"], one["cache"]): one for one in found}


def test_a_competitor_is_checked_before_and_after_it_is_timed(monkeypatch):
    timers = {
        "ours": (Timer(10.0, [0.1, 0.1]), Timer(5.0, [0.1, 0.1])),
        "cublas": (Timer(10.0, [0.1, 0.9]), Timer(5.0, [0.9])),
        "int4pack": competitors.Missing("not here"),
    }
    rows = contest(monkeypatch, timers)
    ours = rows["ours", COLD]
    assert ours["verdict"] == "ok" and ours["microseconds"] == "10.000" and ours["copies"] == "18"
    assert ours["gb_per_s"] == "3300.0" and ours["tflop_per_s"] == "11.74"
    assert rows["ours", WARM]["microseconds"] == "5.000"  # a cache has no datasheet's bandwidth
    for cache in (COLD, WARM):
        assert rows["cublas", cache]["verdict"] == "wrong" and rows["cublas", cache]["microseconds"] == ""
    assert rows["int4pack", COLD]["reason"] == "not here" and ("int4pack", WARM) not in rows
    assert all(timer.closed for pair in timers.values() if isinstance(pair, tuple) for timer in pair)


def test_a_time_below_the_datasheet_is_an_error_of_the_measurement(monkeypatch):
    # 33 MB at 4.8 TB/s are 6.875 us; of 18 copies the cache can hold 60 MB.
    for microseconds, verdict in ((6.1, "impossible"), (6.3, "ok")):
        rows = contest(monkeypatch, {"ours": (Timer(microseconds, [0, 0]), Timer(1.0, [0, 0]))})
        assert rows["ours", COLD]["verdict"] == verdict
        assert bool(rows["ours", COLD]["microseconds"]) == (verdict == "ok")


def test_weights_that_the_cache_does_not_hold_have_no_warm_time(monkeypatch):
    rows = contest(monkeypatch, {"ours": (Timer(50.0, [0, 0]), None)}, weight_bytes=lambda matrix: 117_000_000)
    assert list(rows) == [("ours", COLD)]


class FakeTorch:
    """What run() itself asks of PyTorch."""

    __version__ = "2.11"

    class cuda:
        OutOfMemoryError = MemoryError
        stream = staticmethod(contextlib.nullcontext)
        empty_cache = staticmethod(lambda: None)
        get_device_capability = staticmethod(lambda: (9, 0))

    no_grad = staticmethod(contextlib.nullcontext)
    manual_seed = staticmethod(lambda seed: None)
    ops = types.SimpleNamespace(aten=None)


def fake_run(monkeypatch, tmp_path, outcomes, *words):
    """The program with a Contest whose outcomes are given, one for each shape: rows, or what is raised."""
    from bench.gemm import gemm_peers

    outcomes, asked = iter(outcomes), []

    class Contest:
        def __init__(self, gpu, loaded, matrix, n, given):
            asked.append((matrix.m, n, matrix.k, loaded))

        def measure(self):
            outcome = next(outcomes)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

    def matrix(torch, m, k):
        return types.SimpleNamespace(m=m, k=k, close=lambda: None)

    gpu = types.SimpleNamespace(gpu="NVIDIA Fake 9000", stream=None, facts={"cuda_runtime": "13.0"})
    monkeypatch.setattr(machine, "find_nvcc", lambda: "nvcc")
    monkeypatch.setattr(peers, "requirements", FakeTorch)
    monkeypatch.setattr(peers, "Gpu", lambda torch: gpu)
    monkeypatch.setattr(gemm_peers, "build", lambda work: ["library.so", "norms"][: 1 + (NORM in work)])
    monkeypatch.setattr(gemm_peers, "CONTESTS", {PEERS: Contest, NORM: Contest})
    monkeypatch.setattr(gemm_peers.gemm_competitors, "Matrix", matrix)
    library = types.SimpleNamespace(torch=FakeTorch)
    monkeypatch.setattr(gemm_peers.gemm_competitors, "Library", lambda torch, path, stream: library)
    monkeypatch.setattr(competitors, "Ours", lambda *arguments: "norms")
    status = gemm_peers.main(["--output", str(tmp_path), "--ggml", str(tmp_path), *words])
    return status, asked


def test_a_whole_run_stores_both_tables_and_what_was_missing(monkeypatch, tmp_path, capsys):
    words = ["--shape", "4096x1x14336", "--shape", "4096x512x14336", "--shape", "1024x8x4096"]
    norm = [row(NORM, "fused", 4.0, (4096, 4096, 16))]
    status, asked = fake_run(monkeypatch, tmp_path, [ROWS[:5], MemoryError(), ROWS[-1:], norm, norm, norm], *words)
    said = capsys.readouterr().out
    assert status == 0 and [one[:3] for one in asked] == 2 * [(4096, 1, 14336), (4096, 512, 14336), (1024, 8, 4096)]
    assert list(asked[0][3]) == list(gemm_tables.TITLES)[:9] and list(asked[-1][3]) == list(gemm_tables.TITLES)[9:]
    assert "llama.cpp is missing" in said and "[2/6] peers 4096 x 512 x 14336: left out" in said
    assert "[1/6] peers 4096 x 1 x 14336: this header 10.00, this header 5.00 warm, llama.cpp missing" in said
    assert len(gemm_tables.read(tmp_path / "peers.csv", PEERS)) == 2
    assert len(gemm_tables.read(tmp_path / "norm.csv", NORM)) == 1
    for kind in (PEERS, NORM):
        facts = (tmp_path / f"{kind}_environment.txt").read_text()
        assert "GPU: NVIDIA Fake 9000" in facts and f"llama.cpp: missing, {tmp_path} has no libggml-base.so" in facts


def test_an_interrupted_run_leaves_the_shapes_that_were_measured(monkeypatch, tmp_path):
    words = ["--products", "--shape", "4096x1x14336", "--shape", "4096x512x14336"]
    assert fake_run(monkeypatch, tmp_path, [ROWS[:5], KeyboardInterrupt()], *words)[0] == 130
    assert [path.name for path in tmp_path.iterdir()] == ["peers.csv"]


def test_a_wrong_header_ends_with_1(monkeypatch, tmp_path, capsys):
    bad = row(PEERS, "ours", verdict="wrong", reason="the error is nan")
    assert fake_run(monkeypatch, tmp_path, [[bad]], "--products", "--shape", "4096x1x14336")[0] == 1
    assert "this header wrong: the error is nan" in capsys.readouterr().err


# llama.cpp's library.


def test_a_package_or_a_library_that_is_not_there_says_how_to_install_it(tmp_path, monkeypatch):
    from bench.gemm import ggml

    monkeypatch.setattr(ggml.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ggml.NotThere, match="not installed: .*pip install llama-cpp-python"):
        ggml.folder_of_package()
    with pytest.raises(ggml.NotThere, match="has no libggml-base.so: "):
        ggml.Backend(tmp_path, "cpu")
    (tmp_path / "libggml-base.so").write_text("no library")
    with pytest.raises(ggml.NotThere, match="libggml-base.so cannot be loaded"):
        ggml.Backend(tmp_path, "cpu")


def test_the_package_s_libraries_are_in_its_folder(tmp_path, monkeypatch):
    from bench.gemm import ggml

    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp/__init__.py").write_text("raise ImportError('it is not imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert ggml.folder_of_package() == tmp_path / "llama_cpp/lib"


@pytest.mark.parametrize("m, n, k", [(64, 1, 256), (512, 3, 1024), (96, 40, 96)])
def test_ggml_multiplies_on_the_cpu(m, n, k):
    from bench.gemm import ggml

    try:
        backend = ggml.Backend(os.environ.get("GGML_FOLDER") or ggml.folder_of_package(), "cpu")
    except ggml.NotThere as reason:
        pytest.skip(str(reason))
    random = numpy.random.default_rng(1)
    blocks = gguf.quants.quantize(random.standard_normal((m, k), dtype=numpy.float32), Q4_0)
    exact = gguf.quants.dequantize(blocks, Q4_0).astype(numpy.float64)
    x = random.standard_normal((n, k), dtype=numpy.float32)
    weights = ggml.Weights(backend, blocks, m, k, copies=3)
    product = ggml.Product(weights, x)
    product.run()
    assert len(product.y) == 18
    expected = x.astype(numpy.float64) @ exact.T
    for which in range(18):
        error = numpy.linalg.norm(product.get(which) - expected) / numpy.linalg.norm(expected)
        assert 1e-4 < error < 2.0**-6  # x becomes q8_0
    product.forget()
    assert numpy.isnan(product.get(17)).all()
    product.close()
    with pytest.raises(ValueError, match="blocks of 18 bytes"):
        ggml.Weights(backend, blocks[:-1], m, k)
    weights.close()


# What the competitors get, and what they are compared with.

Q4_0, Q8_0 = gguf.GGMLQuantizationType.Q4_0, gguf.GGMLQuantizationType.Q8_0
needs_torch = pytest.mark.skipif(not TORCH, reason="TORCH=1 installs PyTorch")


def quantized(x):
    """x in q8_1, whose numbers and scales are those of q8_0, in float64."""
    return gguf.quants.dequantize(gguf.quants.quantize(x, Q8_0), Q8_0).astype(numpy.float64)


@needs_torch
def test_the_weights_are_those_of_the_blocks_and_x_is_what_q8_1_makes_of_it():
    torch = pytest.importorskip("torch")
    from bench.gemm import gemm_competitors

    torch.manual_seed(1)
    matrix, x = gemm_competitors.Matrix(torch, 70, 96, "cpu"), gemm_competitors.columns(torch, 5, 96, "cpu")
    exact = gguf.quants.dequantize(matrix.blocks().numpy().reshape(70, -1), Q4_0)
    assert numpy.array_equal(matrix.rows(0, 70, torch.float64).numpy(), exact)
    assert numpy.array_equal(matrix.rows(64, 70, torch.float16).float().numpy(), exact[64:].astype(numpy.float16))
    assert torch.equal(x.half().float(), x) and torch.equal(x.bfloat16().float(), x)
    assert numpy.array_equal(gemm_competitors.in_q8_1(torch, x).numpy(), quantized(x.numpy()))
    assert numpy.allclose(matrix.times(x).numpy(), x.double().numpy() @ exact.T.astype(numpy.float64), rtol=1e-12)


@needs_torch
def test_a_small_fault_is_found_and_the_right_roundings_are_not():
    torch = pytest.importorskip("torch")
    from bench.gemm import gemm_competitors

    torch.manual_seed(1)
    matrix, x = gemm_competitors.Matrix(torch, 128, 14336, "cpu"), gemm_competitors.columns(torch, 3, 14336, "cpu")
    expected, in_8_bits = matrix.times(x), matrix.times(gemm_competitors.in_q8_1(torch, x))

    def wrong(y, limit):
        return gemm_competitors.error_of(torch, y, expected, limit)[1]

    limits = {"float16": gemm_competitors.Cublas.limit, "bfloat16": gemm_competitors.Int4Pack.limit}
    for name, limit in limits.items():
        kind = getattr(torch, name)
        assert not wrong((x.double() @ matrix.rows(0, 128, kind).double().T).to(kind), limit)
    limit = gemm_competitors.LlamaCpp.limit
    assert not wrong(in_8_bits, limit)
    one = in_8_bits.clone()
    one[2, 100] += expected.square().mean().sqrt() / 4
    assert "an element is off" in wrong(one, limit)
    one[2, 100] = float("nan")
    assert "the error is nan" in wrong(one, limit)
    matrix.scales[:, 7] *= -1  # of one block in 448
    assert "the error is" in wrong(matrix.times(x), limit)


LEND = """
#include <cuda_runtime_api.h>
extern "C" int lend(void* pointer, size_t bytes) { return cudaHostRegister(pointer, bytes, 0); }
"""


@pytest.mark.full
def test_the_c_interface_multiplies_on_the_cpu_device(tmp_path):
    (tmp_path / "lend.cu").write_text(LEND, encoding="utf-8")  # the CPU device refuses memory that it does not know
    files = [*sorted((ROOT / "bench/abi/q4_gemm").glob("*.cu")), "lend.cu"]
    words = ["-std=c++17", "-O0", f"-I{ROOT}/include", "-shared", "-Xcompiler", "-fPIC", *files, "-o", "library.so"]
    made = run(ROOT / "simt/simtcc", *words, cwd=tmp_path, timeout=900)
    assert made.returncode == 0, made.stderr
    library = ctypes.CDLL(str(tmp_path / "library.so"))
    for name, count in (("packed", 2), ("quantized", 2), ("workspace", 3)):
        size = getattr(library, f"q4_gemm_{name}_size")
        size.argtypes, size.restype = [ctypes.c_int64] * count, ctypes.c_size_t
    pointer, count, flag, kept = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, []
    library.q4_gemm_rounded_from.restype = count
    assert library.q4_gemm_rounded_from() == 17

    def on_device(array):
        """The array at a multiple of 16 bytes, known to the device."""
        memory = numpy.zeros(array.nbytes + 16, numpy.uint8)
        kept.append(memory)
        start = -memory.ctypes.data % 16
        same = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        same[...] = array
        assert library.lend(pointer(memory.ctypes.data), ctypes.c_size_t(memory.nbytes)) == 0
        return same, pointer(same.ctypes.data)

    def bytes_of(what, *shape):
        return on_device(numpy.zeros(getattr(library, f"q4_gemm_{what}_size")(*shape), numpy.uint8))

    m, n, k = 70, 20, 96
    random = numpy.random.default_rng(1)
    blocks = gguf.quants.quantize(random.standard_normal((m, k), dtype=numpy.float32), Q4_0)
    exact = gguf.quants.dequantize(blocks, Q4_0).astype(numpy.float64)
    x = random.standard_normal((n, k), dtype=numpy.float32)
    packed, quantized_x, workspace = (
        bytes_of("packed", m, k),
        bytes_of("quantized", n, k),
        bytes_of("workspace", m, n, k),
    )
    stored, given = on_device(blocks), on_device(x)
    assert library.q4_gemm_repack(stored[1], packed[1], count(m), count(k), None) == 0
    assert library.q4_gemm_quantize(flag(0), given[1], quantized_x[1], count(n), count(k), flag(0), None) == 0

    def product(repacked, rounded, weights, x_code, numbers, y_code=0, invariant=0):
        y = on_device(numpy.full((n, m), numpy.nan, numpy.float32))
        shape = count(m), count(n), count(k)
        words = flag(repacked), flag(rounded), weights[1], flag(x_code), numbers[1], flag(y_code), y[1], *shape
        return library.q4_gemm_multiply(*words, flag(1), flag(invariant), workspace[1], None), y[0]

    for repacked, rounded, weights, x_code, numbers, wanted, limit in (
        (1, 0, packed, 0, given, quantized(x), 1e-6),
        (0, 0, stored, 0, given, quantized(x), 1e-6),
        (1, 0, packed, 3, quantized_x, quantized(x), 1e-6),
        (1, 1, packed, 0, given, x.astype(numpy.float64), 2.0**-11),
    ):
        status, y = product(repacked, rounded, weights, x_code, numbers)
        expected = wanted @ exact.T
        assert status == 0 and numpy.linalg.norm(y - expected) <= limit * numpy.linalg.norm(expected)
    assert product(1, 1, packed, 0, given, invariant=1)[1].tobytes() == product(1, 0, packed, 0, given)[1].tobytes()
    assert product(1, 0, packed, 0, given, y_code=2)[0] != 0  # y is of x's type
    assert product(1, 0, packed, 7, given)[0] != 0


STORED = [results.store() / gpu / f"{gemm_tables.FOLDER}/peers.csv" for gpu in results.stored_gpus("q4_gemm/peers.csv")]


@pytest.mark.parametrize("stored", STORED, ids=lambda path: path.parts[-3])
def test_nothing_that_is_stored_is_wrong(stored):
    assert gemm_tables.complaints(stored) == []
