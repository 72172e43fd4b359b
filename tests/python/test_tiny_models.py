"""Tiny models with TORCH=1: those of bench/models/end_to_end.py are measured, and a small fault of a norm is found; those
of families.py have the same logits and gradients after the patch, with the newest and the oldest transformers."""

import contextlib
import csv
import dataclasses
import os
import pathlib
import re
import sys

import families
import pytest
import torch
from conftest import BACKEND, ROOT, full_but, run
from python_package import SITE, install, pip_install


@pytest.fixture
def end_to_end():
    install()
    from bench.models import end_to_end

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield end_to_end
    torch.set_num_threads(threads)


def stored(folder, name="end_to_end.csv"):
    with open(folder / name, newline="") as file:
        return {(row["model"], row["input"], row["variant"], row["way"]): row for row in csv.DictReader(file)}


@pytest.mark.parametrize("words", [["--layers", "-1"], ["--layers", "0"], ["--seconds", "-1"], ["--seconds", "nan"]])
def test_numbers_that_are_refused(words, end_to_end, capsys):
    assert end_to_end.main(words) == 2
    assert f"argument {words[0]}: {words[1]} is not a " in capsys.readouterr().err


@pytest.mark.full
def test_tiny_models_on_two_ranks(tmp_path):
    install()
    words = [ROOT / "bench/models/tensor_parallel.py", "--tiny", "--output", tmp_path, "--models", "qwen3-8b:bfloat16"]
    done = run(sys.executable, *words, PYTHONPATH=str(SITE), CUDA_VISIBLE_DEVICES="" if BACKEND == "cpu" else None)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = stored(tmp_path, "tensor_parallel.csv")
    assert len(rows) >= 2 * 3 and {row["verdict"] for row in rows.values()} == {"ok"}
    for (_, what, variant, way), row in rows.items():  # the sums are rounded once, and not twice as in the stock model
        if variant != "stock":
            assert row["error"] != rows["Qwen3-8B", what, "stock", way]["error"]


def test_tiny_models(end_to_end, tmp_path, capsys):
    ways = ["eager", "graph"] if BACKEND == "cuda" else ["eager"]

    def measure(*options):
        assert end_to_end.main(["--tiny", "--output", str(tmp_path), *options]) == 0
        return stored(tmp_path)

    rows = measure("--models", "qwen3-8b:float32,qwen3-vl-8b:float16", "--ways", ",".join(ways))
    for (model, what, variant, way), row in rows.items():
        assert row["verdict"] == ("refused" if (what, way) == ("image", "graph") else "ok"), row
        if variant.startswith("patched") and model == "Qwen3-8B":  # other code computes it, with other roundings
            assert 0 < float(row["error"]) <= float(row["limit"])
    before = 4 * 4 * len(ways)  # variants, inputs
    assert len(rows) == before and rows["Qwen3-VL-8B", "image", "stock", "eager"]["norms"] == "0"

    rows = measure("--models", "qwen3-8b:mixed", "--ways", "eager", "--inputs", "prefill_8", "--add")
    assert len(rows) == before + 4 and rows["Qwen3-8B", "prefill_8", "patched", "eager"]["verdict"] == "ok"
    capsys.readouterr()
    assert end_to_end.main(["--models", "gpt-9"]) == 2 and "gpt-9 is no model" in capsys.readouterr().err
    assert end_to_end.main(["--models", "qwen3-8b:float16", "--inputs", "image"]) == 2
    assert "image is no input of qwen3-8b" in capsys.readouterr().err
    for option in ("--variants", "--compile"):
        assert (
            end_to_end.main([option, "stock,best"]) == 2 and "stock,best: known are stock, " in capsys.readouterr().err
        )


@pytest.fixture(params=["eps", "weight_offset"])
def faulty_patch(request, end_to_end, monkeypatch):
    """Patched norms have ten times the eps, or weights that are larger by 1e-5."""
    import rms_norm.torch as ours

    from bench.models import models

    @contextlib.contextmanager
    def faulty(model):
        ours.patch_transformers(model)
        for norm in models.norms_of(model):
            options = norm._rms_norm_options
            more = {"weight_offset": options.weight_offset + 1e-5}
            if request.param == "eps":
                more = {"eps": 10 * options.eps}
            norm._rms_norm_options = dataclasses.replace(options, **more)
        try:
            yield
        finally:
            ours.unpatch(model)

    monkeypatch.setitem(models.VARIANTS, "patched", faulty)


def test_a_small_fault_is_found(faulty_patch, end_to_end, tmp_path):
    words = ["--tiny", "--models", "qwen3-8b:float32", "--inputs", "prefill_8", "--variants", "stock,patched"]
    assert end_to_end.main([*words, "--ways", "eager", "--output", str(tmp_path)]) == 1
    stock, patched = stored(tmp_path).values()
    assert stock["verdict"] == "ok" and patched["verdict"] == "wrong"
    assert re.match("the error of the logits is .*, and may be", patched["reason"]) and not patched["milliseconds"]


def trained(tmp_path, *words):
    from bench.models import training

    code = training.main(["--tiny", "--output", str(tmp_path), *words])
    with open(tmp_path / "training.csv", newline="") as file:
        return code, {(row["model"], row["variant"]): row for row in csv.DictReader(file)}


def test_tiny_models_train(end_to_end, tmp_path, capsys):
    from bench.models import training

    code, rows = trained(tmp_path)
    assert code == 0 and {model for model, _ in rows} == {"Llama-3-8B", "Qwen3-8B", "Gemma-7B"}
    for (_, variant), row in rows.items():
        assert row["verdict"] == "ok" or variant == "liger", row
        if variant == "patched":  # other code computes it, with other roundings
            assert 0 < float(row["error"]) <= float(row["limit"]) and float(row["milliseconds"]) > 0
    capsys.readouterr()
    assert training.main(["--tiny"]) == 2 and "--tiny needs --output" in capsys.readouterr().err


def test_a_small_fault_in_training_is_found(faulty_patch, tmp_path):
    code, rows = trained(tmp_path, "--models", "llama-3-8b")
    patched = rows["Llama-3-8B", "patched"]
    assert code == 1 and patched["verdict"] == "wrong" and not patched["milliseconds"]
    assert re.match("the error of the gradients is .*, and may be", patched["reason"])


QUICK = "deepseek_v3", "gemma2", "gpt_oss", "mistral3", "olmo2", "phi3"


@pytest.mark.parametrize("name", full_but(families.FAMILIES, *QUICK))
def test_families(name):
    install()
    pytest.importorskip("transformers", minversion="5.0")
    families.check(name)


# The oldest transformers that the package is for, and what it needs that is not what the newest one needs.
OLDEST = "transformers==4.57.6", "huggingface_hub==0.36.0", "tokenizers==0.22.1"


@pytest.fixture(scope="session")
def other_packages(tmp_path_factory):
    """Installs packages for one subprocess; pip's cache makes it quick after the first time."""

    def installed(*packages):
        folder = tmp_path_factory.mktemp("packages")
        made = pip_install(*packages, "--target", str(folder))
        if made.returncode != 0:
            pytest.skip(f"pip cannot install {' '.join(packages)}: {made.stderr.strip().splitlines()[-1:]}")
        return {"PYTHONPATH": os.pathsep.join([str(SITE), str(folder)])}

    return installed


@pytest.mark.full
def test_families_with_the_oldest_transformers(other_packages):
    install()
    done = run(sys.executable, pathlib.Path(families.__file__), timeout=600, **other_packages(*OLDEST))
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0] == "transformers 4.57.6", done.stdout + done.stderr
    assert [line.split()[0] for line in lines[1:]] == list(families.FAMILIES)
