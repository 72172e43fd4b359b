"""The tables of what bench/models/end_to_end.py and training.py store, on invented numbers."""

import pytest
from ladder.core.ladders import Unusable

from bench.models import model_tables, training_tables

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
    assert model_tables.markdown(path, path.parent / "README.md", ["shares", "Qwen3-8B"]) == shares
    assert model_tables.markdown(path, path, ["compiled"]) is None
    with pytest.raises(Unusable, match="speed is no form"):
        model_tables.markdown(path, path, ["speed"])


def test_the_page_says_how_many_ranks_a_split_model_has(tmp_path):
    stored = tmp_path / "fake-9000x4/header/tensor_parallel.csv"
    stored.parent.mkdir(parents=True)
    model_tables.store(stored, ROWS)
    page = tmp_path / "README.md"
    text = model_tables.of_ranks(stored, page, ["tokens"])
    assert text == f"{model_tables.markdown(stored, page, ['tokens'])} The slowest of 4 ranks."


def test_a_wrong_or_impossible_row_fails_and_is_not_shown(path):
    assert not model_tables.is_wrong(path)
    model_tables.store(path, [*ROWS[:2], row("patched_pdl", 1.0, verdict="impossible")])
    assert model_tables.is_wrong(path)
    (rows,) = model_tables.read(path).values()
    assert model_tables.best_patched(rows) == 8.0


def test_the_table_of_training(tmp_path):
    def trained(variant, **values):
        known = {"model": "Gemma-7B", "variant": variant, "verdict": "ok", "layers": 8, "norms": 17, "tokens": 4096}
        known.update({"gpu": "NVIDIA Fake 9000", "cuda_runtime": "13.0", "date": "2026-01-31", **values})
        return [str(known.get(name, "")) for name in training_tables.COLUMNS]

    stock = trained("stock", milliseconds=10.0, step_mb=900, error="1e-02")
    patched = trained("patched", milliseconds=8.0, step_mb=700, error="1.1e-02")
    reason = "not installed: pip install liger-kernel"
    missing = trained("liger", **{"verdict": "missing", "reason": reason})
    path = tmp_path / "training.csv"
    training_tables.store(path, [stock, patched, missing])
    text = training_tables.markdown(path, path.parent / "README.md")
    assert (
        "| Gemma-7B | 8 | 17 | 10.00 | 8.00 | missing | +25.0 % | 900 | 700 | missing | 1.00e-02 | 1.10e-02 |" in text
    )
    assert f"Liger's norms everywhere: missing ({reason})." in text and "Gemma-7B | 8" in text
    assert not training_tables.is_wrong(path)
    training_tables.store(path, [stock, trained("patched", verdict="wrong", milliseconds=8.0)])
    assert training_tables.is_wrong(path) and "wrong |  |" in training_tables.markdown(path, path)
