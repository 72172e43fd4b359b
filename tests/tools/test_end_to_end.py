"""The tables of what bench/models/end_to_end.py stores, on invented numbers."""

import pytest
from ladder.core import results
from ladder.core.ladders import Unusable

from bench.models import model_tables

MODEL = {"model": "Qwen3-8B", "types": "bfloat16", "input": "decode_32", "batch": 32, "tokens": 1, "norms": 145}


def row(variant, milliseconds=None, way="graph", **values):
    known = {**MODEL, "variant": variant, "way": way, "verdict": "ok", "tolerance": "7e-01", "samples": 12}
    known.update(gpu="NVIDIA Fake 9000", cuda_runtime="13.0", date="2026-01-31", torch="2.11.0", transformers="5.17.0")
    if milliseconds:
        known.update(milliseconds=milliseconds)
    return [str({**dict.fromkeys(model_tables.COLUMNS, ""), **known, **values}[name]) for name in model_tables.COLUMNS]


ROWS = [
    row("stock", 10.0, error="1e-02"),
    row("patched", 8.0, error="1e-03"),
    row("patched_pdl", 7.5, error="2e-03"),
    row("without_norms", 7.5),
    row("stock", 60.0, "eager"),
    row("patched", None, "eager", verdict="refused", reason="ValueError: no"),
]


@pytest.fixture
def path(tmp_path):
    stored = tmp_path / "end_to_end.csv"
    model_tables.store(stored, ROWS)
    return stored


def test_rates_and_shares(path):
    (rows,) = model_tables.read(path).values()
    assert model_tables.rate(rows, 10.0) == pytest.approx(3200)
    assert model_tables.best_patched(rows) == 7.5
    assert model_tables.share(rows, 10.0) == pytest.approx(25) and model_tables.share(rows, 7.5) == 0
    assert model_tables.share(rows, 60.0, way="eager") is None  # without norms was not timed


def test_the_page_says_what_was_measured_and_what_was_not(path):
    text = model_tables.markdown(path, path.parent / "README.md", ["tokens", "text"])
    assert "| Qwen3-8B, bfloat16 | decode, batch 32 | 3200.0 | 4000.0 | 4266.7 | +33.3 % | 1e-02 | 2e-03 |" in text
    assert "eager: refuses (ValueError: no): Qwen3-8B, bfloat16, decode, batch 32 (patched)." in text
    assert "transformers 5.17.0. NVIDIA Fake 9000, CUDA 13.0, 2026-01-31." in text
    shares = model_tables.markdown(path, path.parent / "README.md", ["shares"])
    assert "| 145 | 10.00 | 8.00 | 7.50 | 7.50 | 25.0 % | 0.0 % |" in shares
    assert model_tables.markdown(path, path, ["image"]) is None  # of no such model
    assert model_tables.markdown(path, path, ["compiled"]) is None
    with pytest.raises(Unusable, match="speed is no form"):
        model_tables.markdown(path, path, ["speed"])


def test_a_wrong_or_impossible_row_fails_and_is_not_shown(path):
    assert not model_tables.is_wrong(path)
    model_tables.store(path, [*ROWS[:2], row("patched_pdl", 1.0, verdict="impossible")])
    assert model_tables.is_wrong(path)
    (rows,) = model_tables.read(path).values()
    assert model_tables.best_patched(rows) == 8.0


STORED = [results.store() / gpu / "header/end_to_end.csv" for gpu in results.stored_gpus("header/end_to_end.csv")]


HALF_A_PERCENT = {("Qwen3-8B", "bfloat16"), ("Qwen3-VL-8B", "float16"), ("Qwen2.5-7B", "float32")}


@pytest.mark.parametrize("stored", STORED, ids=lambda path: path.parts[-3])
def test_what_the_page_says_of_the_figures(stored):
    """bench/models/README.md, "What the figures say": a new measurement that fails here says which sentence to read again."""
    behind = set()
    for (model, types, what), rows in model_tables.read(stored).items():
        if what == "image":
            continue
        patched, floor = model_tables.best_patched(rows), model_tables.milliseconds(rows, "without_norms")
        assert patched <= 1.04 * floor
        if what == "decode_1" and patched > floor:
            behind.add((model, types))
            assert patched <= (1.0055 if (model, types) in HALF_A_PERCENT else 1.0145) * floor
        stock, patched, floor = (
            model_tables.milliseconds(rows, "stock", way="eager"),
            model_tables.best_patched(rows, way="eager"),
            model_tables.milliseconds(rows, "without_norms", way="eager"),
        )
        assert patched < stock and patched - floor < 0.5 * (stock - floor)
    assert behind == {("Qwen3-8B", "mixed"), *HALF_A_PERCENT}


@pytest.mark.parametrize("stored", STORED, ids=lambda path: path.parts[-3])
def test_what_the_page_says_of_compiled_models(stored):
    """bench/models/README.md, "With torch.compile"."""
    left_out = set()
    for (model, types, what), rows in model_tables.read(stored).items():
        stock, patched, pdl = (
            model_tables.milliseconds(rows, name, "torch.compile") for name in ("stock", "patched", "patched_pdl")
        )
        if not stock:
            left_out.add((model, types, what))
            continue
        assert min(stock, patched, pdl or patched) < model_tables.best_patched(rows) < 1.55 * stock
        if types == "mixed":
            assert 1.0 < patched / stock < 1.075 and 1.0 < pdl / stock < 1.075
        else:
            assert 0.965 < patched / stock < 1.04
            if types == "float32":
                assert 0.994 < (pdl or patched) / stock < 1.0005
            elif what in ("decode_1", "decode_32", "prefill_16"):
                assert 0.982 < pdl / stock < 0.997
            else:
                assert 0.935 < pdl / stock < 1.035
        eager = [model_tables.milliseconds(rows, name, "torch.compile", "eager") for name in ("patched", "stock")]
        assert what != "decode_1" or 1.03 < eager[0] / eager[1] < 1.44
    assert left_out == {("Qwen3-VL-8B", "float16", "image")}


def test_the_host_differed_between_the_stored_runs():
    """bench/models/README.md: the same step of Qwen3-8B in two types."""
    for stored in STORED:
        points = model_tables.read(stored)
        rows = [points["Qwen3-8B", types, "decode_1"] for types in ("bfloat16", "float16")]
        eager, graph = (
            [model_tables.milliseconds(row, "stock", way=way) for row in rows] for way in ("eager", "graph")
        )
        assert max(eager) > 1.2 * min(eager) and max(graph) < 1.02 * min(graph)
