"""bench/gemm_peers.py: its command line, the tables of its results on invented numbers, and llama.cpp's library where it
is installed, or in the folder that GGML_FOLDER names."""

import os
import types

import gguf
import numpy
import pytest

from conftest import ROOT
from ladder import competitors, gemm_tables, results
from ladder.gemm_tables import COLD, NORM, PEERS, WARM
from ladder.ladders import Unusable


@pytest.fixture(autouse=True)
def path_of_bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))


def row(kind, competitor, microseconds=None, shape=(4096, 14336, 1), **values):
    m, k, n = shape
    known = {"m": m, "k": k, "n": n, "competitor": competitor, "cache": COLD, "verdict": "ok", "error": "1e-4"}
    known.update(limit="2e-3", rounds="y to something", replays=12, gpu="NVIDIA Fake 9000", cuda_runtime="13.0")
    known.update(date="2026-01-31", microseconds="" if microseconds is None else microseconds)
    if microseconds:
        known.update(gb_per_s=f"{m * k / 2 / microseconds / 1e3:.1f}", tflop_per_s=f"{2 * m * n * k / microseconds / 1e6:.2f}")
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
    for bad in (row(PEERS, "ours", verdict="wrong", reason="bad"), row(PEERS, "cublas", verdict="impossible", reason="bad")):
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
    import gemm_peers

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
    import gemm_peers

    assert gemm_peers.main(words) == 2 and complaint in capsys.readouterr().err


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
    import gemm_competitors
    import gemm_contest

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


# llama.cpp's library.


def test_a_package_or_a_library_that_is_not_there_says_how_to_install_it(tmp_path, monkeypatch):
    import ggml

    monkeypatch.setattr(ggml.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ggml.NotThere, match="not installed: .*pip install llama-cpp-python"):
        ggml.folder_of_package()
    with pytest.raises(ggml.NotThere, match="has no libggml-base.so: "):
        ggml.Backend(tmp_path, "cpu")
    (tmp_path / "libggml-base.so").write_text("no library")
    with pytest.raises(ggml.NotThere, match="libggml-base.so cannot be loaded"):
        ggml.Backend(tmp_path, "cpu")


def test_the_package_s_libraries_are_in_its_folder(tmp_path, monkeypatch):
    import ggml

    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp/__init__.py").write_text("raise ImportError('it is not imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert ggml.folder_of_package() == tmp_path / "llama_cpp/lib"


@pytest.mark.parametrize("m, n, k", [(64, 1, 256), (512, 3, 1024), (96, 40, 96)])
def test_ggml_multiplies_on_the_cpu(m, n, k):
    import ggml

    try:
        backend = ggml.Backend(os.environ.get("GGML_FOLDER") or ggml.folder_of_package(), "cpu")
    except ggml.NotThere as reason:
        pytest.skip(str(reason))
    random = numpy.random.default_rng(1)
    blocks = gguf.quants.quantize(random.standard_normal((m, k), dtype=numpy.float32), gguf.GGMLQuantizationType.Q4_0)
    exact = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q4_0).astype(numpy.float64)
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


STORED = [results.store() / gpu / f"{gemm_tables.FOLDER}/peers.csv" for gpu in results.stored_gpus("q4_gemm/peers.csv")]


@pytest.mark.parametrize("stored", STORED, ids=lambda path: path.parts[-3])
def test_nothing_that_is_stored_is_wrong(stored):
    assert gemm_tables.complaints(stored) == []
