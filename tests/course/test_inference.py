"""What the inference ladder's pages say: which kernel serves which tensors; that __ldg changes nothing after __restrict__;
what the document's own numbers exclude. And model_replay's calls and command line, and the controls.
"""

import pytest
from conftest import program, run
from ladder.core import ladders, results
from ladder.measure import cpu_device

LADDER = ladders.find("inference")
REPLAY = f"{LADDER.path}/model_replay"

SERVED = {  # (input, weight, output) -> kernel
    ("float32", "float32", "float32"): "row_rmsnorm_f32",
    ("float32", "float16", "float32"): "row_rmsnorm_f32_fp16w",
    ("float16", "float16", "float16"): "row_rmsnorm_pure_fp16",
}


def dispatched():
    paths = sorted(results.store().glob(f"*/{LADDER.id}/dispatch.csv"))
    assert paths, "dispatch.csv is not stored: make analyze S=inference/all"
    return [pytest.param(results.read(path), id=path.parent.parent.name) for path in paths]


@pytest.mark.parametrize("rows", dispatched())
def test_the_engine_serves_three_pairs_of_types_and_refuses_others(rows):
    seen = set()
    for row in rows:
        types, dim = (row["input"], row["weight"], row["output"]), " x " in row["dims"]
        if row["answer"].startswith("refused: "):
            assert len(row["answer"].split()) > 8 and row["answer"].count(".") <= 1, row
        elif "(CPU)" in row["asked"]:
            assert row["answer"] == "rmsnorm_kernel_cpu" + ("_dim" if dim else "")
        else:
            assert row["answer"] == SERVED[types] + ("_dim" if dim else ""), row
            seen.add((types, dim))
    assert seen == {(types, dim) for types in SERVED for dim in (False, True)}
    refused = [row for row in rows if row["answer"].startswith("refused: ")]
    assert sum((row["input"], row["weight"], row["output"]) not in SERVED for row in refused) == 4
    layers = [(row["asked"], " x " in row["dims"], row["answer"]) for row in rows if "Layer::forward" in row["asked"]]
    assert len(refused) == (12 if layers else 11)
    if not layers:  # LAYERS
        return
    assert {(name, dim) for name, dim, answer in layers if answer.startswith("row_")} == {
        ("RmsNormLayer::forward", False),
        ("RmsNormLayer::forward", True),
        ("RMSNormDimLayer::forward", True),
    }
    assert [dim for name, dim, answer in layers if answer.startswith("refused: ")] == [False]


def test_ldg_changes_no_access_after_restrict():
    counted = [cpu_device.counted(cpu_device.path_of(LADDER.stage(n)), LADDER.analyze) for n in "345"]
    assert counted[0] == counted[1] == counted[2]


def test_what_the_documents_numbers_exclude():
    """The page's section on section 5, and what it says of the table of counters."""
    page = " ".join((LADDER.folder / "README.md").read_text(encoding="utf-8").split())
    saved_per_token = 1e3 / 96.646 - 1e3 / 135.715  # ms
    assert f"{saved_per_token:.2f} ms for each token" in page and f"{1e3 * saved_per_token / 57:.1f} µs" in page
    assert 1e3 * saved_per_token / 57 > 34.541
    assert f"{(1328.42 - 754.30) / 73:.2f} ms for each of 73 calls" in page
    assert f"{34.422 * 511 / 64:.0f} µs for 511" in page
    saved = 73 * (34.541 - 16.232) / 1e3
    assert (
        f"{saved:.2f} ms of the {1e3 / 10.184:.1f} ms" in page and f"{100 * saved * 10.184 / 1e3:.1f} percent" in page
    )


@pytest.mark.full
@pytest.mark.builds(REPLAY)
@pytest.mark.parametrize(
    "model, calls, heads", [("Qwen3-8B-AWQ", 73, 72), ("Qwen2.5-7B", 57, 0), ("Qwen2.5-7B-fp16", 57, 0)]
)
def test_the_calls_of_a_step_are_right(tmp_path, model, calls, heads):
    result = run(
        program(REPLAY), "--model", model, "--phase", "decode", "--no-timing", "--csv", tmp_path / "replay.csv"
    )
    assert result.returncode == 0, result.stdout + result.stderr
    rows = results.read(tmp_path / "replay.csv")
    assert [row["kernels"] for row in rows] == [
        "before",
        "after",
        "header",
        "header, dependent launch",
        *(["header, dependent launch, to float8"] if model.endswith("fp16") else []),
        "empty kernels",
    ]
    assert {(row["calls"], row["head_norms"], row["step"]) for row in rows} == {(str(calls), str(heads), "decode")}


@pytest.mark.full
@pytest.mark.builds(REPLAY)
@pytest.mark.parametrize(
    "given, said",
    [
        (["--model", "Qwen9"], "no such model; give Qwen3-8B-fp16"),
        (["--phase", "training"], "give decode, prefill or both"),
        (["--tokens", "1"], "from 2 to 65536"),
        (["--iterations", "0"], "from 1 to 100000"),
        (["--csv", ""], "the name of a file"),
        (["--csv", "/no/such/folder/x.csv"], "No such file or directory"),
        (["Qwen3"], "see --help"),
    ],
)
def test_model_replay_refuses_with_one_sentence(given, said):
    result = run(program(REPLAY), *given)
    assert result.returncode == 2 and said in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr
