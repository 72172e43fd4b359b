"""What the q4_gemm ladder's pages say of bytes, requests, errors and tiles, from what make analyze counted and computed."""

import re

import pytest
from conftest import program, run
from ladder.core import ladders, results
from ladder.measure import cpu_device

LADDER = ladders.find("q4_gemm")
GIVEN = LADDER.analyze
BLOCKS = GIVEN["m"] * GIVEN["k"] // 32  # of weights


def sums(stage, what, column):
    return cpu_device.total(cpu_device.read(cpu_device.path_of(LADDER.stage(stage)))[0], what, column)


def of_weights(stage, column):
    """Of the global loads of weights: what the loads of x ask for besides is the same words in all stages from 05 on."""
    return sums(stage, "global load", column) - sums("07_repacked", "global load", column)


def stored(name):
    rows = results.read(results.store() / results.CPU_DEVICE / LADDER.id / f"{name}.csv")
    assert rows
    return rows


def test_a_tile_reads_weights_once_for_four_columns():
    """18 bytes a block, and 20 where two lanes load the scale; x is the rest."""
    weights, activations = 18 * BLOCKS, 36 * GIVEN["n"] * GIVEN["k"] // 32
    assert sums("04_smem_large", "global load", "bytes") == 4 * (weights + activations)
    assert sums("05_tile2d", "global load", "bytes") == 20 * BLOCKS + 4 * activations
    for stage in ("06_vector_loads", "07_repacked", "08_async", "09_multi_stage", "10_persistent"):
        assert sums(stage, "global load", "bytes") == weights + 4 * activations, stage


def test_loads_of_a_block_become_fewer_and_touch_fewer_sectors():
    """Requests for 32 blocks: 9 where a lane loads words of 2 bytes, 5 of up to 4 bytes, 2 where they are repacked."""
    assert of_weights("06_vector_loads", "requests") == (5 - 2) * BLOCKS / 32
    assert sums("04_smem_large", "global load", "requests") > 4 * 9 * BLOCKS / 32
    repacked = sums("07_repacked", "global load", "sectors")
    assert sums("06_vector_loads", "global load", "sectors") > 4 * repacked
    for stage in ("08_async", "09_multi_stage", "10_persistent"):
        assert sums(stage, "global load", "sectors") == repacked


def test_shared_loads_are_nine_per_block_and_column():
    assert sums("07_repacked", "shared load", "requests") == 9 * GIVEN["n"] * BLOCKS / 32
    assert sums("08_async", "shared load", "requests") == (9 * GIVEN["n"] + 1) * BLOCKS / 32


def test_the_error_of_a_format_hides_that_of_a_kernel():
    for k in ("256", "4096", "14336"):
        error = {row["what"]: float(row["error"]) for row in stored("quantization") if row["k"] == k}
        kernel, from_s = error["float32 sums of the least exact stage"], error["sums of x from s, a float16"]
        assert error["both"] == pytest.approx(error["weights in q4_0"], rel=0.02)
        assert error["weights in q4_0"] > 10 * error["x in q8_1"] and error["both"] > 1e5 * kernel
        rounded = error["weights and x times their scales, in float16"]
        assert 10 * from_s < error["both"] and from_s > 1000 * kernel
        assert 200 * rounded < error["both"] and rounded > 500 * kernel
        assert error["both"] == pytest.approx(0.085, rel=0.05)  # at every k


def test_the_documents_table_has_every_stage_right():
    rows = stored("document")
    assert {row["stage"] for row in rows} == {stage.name for stage in LADDER.stages}
    for row in rows:
        assert row["wrong"] == f"0 of {int(row['m']) * int(row['n'])}" and float(row["largest_error"]) < 1e-4


def test_tiles_ask_for_what_their_sizes_say():
    rows = stored("tiles")
    named = {(row["tile_m"], row["tile_n"], row["tile_k"], row["rows_per_warp"]) for row in rows}
    assert {
        ("64", "4", "128", "4"),
        ("64", "8", "256", "4"),
        ("128", "4", "128", "4"),
        ("64", "4", "128", "8"),
    } <= named
    for row in rows:
        m, n, k, tile_m, tile_n = (int(row[name]) for name in ("m", "n", "k", "tile_m", "tile_n"))
        assert float(row["weights_megabytes"]) == pytest.approx(m * k / 32 * 18 * -(-n // tile_n) / 1e6, abs=6e-4)
        assert float(row["activations_megabytes"]) == pytest.approx(n * k / 32 * 36 * -(-m // tile_m) / 1e6, abs=6e-4)


@pytest.mark.full
@pytest.mark.builds(LADDER.path)
@pytest.mark.parametrize(
    "m, n, k, said",
    [
        (5, 3, 33, "multiple of 32"),
        (5, 3, 31, "multiple of 32"),
        (7, 5, 96, ""),
        (1, 1, 32, ""),
        (65, 17, 288, ""),
    ],
)
def test_any_size_is_right_or_refused_with_a_sentence(m, n, k, said):
    given = ["--m", m, "--n", n, "--k", k, "--no-small", "--experiment", 1]
    result = run(program(LADDER.path), *given)
    assert (result.returncode, said in result.stderr) == (2 if said else 0, True), result.stdout + result.stderr
    assert result.stdout.count("PASS") == (0 if said else len(LADDER.stages))


@pytest.mark.full
@pytest.mark.builds(f"{LADDER.path}/benchmark_best")
def test_benchmark_best_takes_three_numbers():
    best = program(f"{LADDER.path}/benchmark_best")
    right = run(best, 96, 3, 320)
    assert right.returncode == 0 and "96 x 3 x 320" in right.stdout and "FAIL" not in right.stdout
    assert right.stdout.count("PASS") == len(LADDER.stages)
    for words in ([], [4096, 2], ["--m", 4, 5]):
        wrong = run(best, *words)
        assert wrong.returncode == 2 and "say M, N and K" in wrong.stderr


def test_the_page_counts_stages_as_they_are():
    page = " ".join((LADDER.folder / "README.md").read_text(encoding="utf-8").split())
    said = re.search(
        r"\(01 to (\d\d)\) read the weights as llama.cpp stores them, .* \(07 to (\d\d)\) read repacked .* last two \((\d\d), (\d\d)\)",
        page,
    )
    blocks, repacked, *fragments = map(int, said.groups())
    for stage in LADDER.stages:
        source = stage.source.read_text()
        assert ("Q4GemmFragments>" in source) == (stage.number in fragments)
        assert ("Q4GemmRepacked>" in source) == (blocks < stage.number <= repacked)


def test_tensor_cores_ask_for_the_same_bytes():
    """What 12 reads of weights and x is what 07 reads, in the same sectors of weights; x comes in shorter runs."""
    assert sums("12_tensor_cores", "global load", "bytes") == sums("07_repacked", "global load", "bytes")
    _, rows = cpu_device.read(cpu_device.path_of(LADDER.stage("12_tensor_cores")))
    (weights,) = [row for row in rows if row["what"].startswith("global load") and row["bytes_per_lane"] == "16"]
    assert int(weights["sectors"]) == 16 * BLOCKS / 32


def test_weights_in_the_order_of_the_tensor_cores_are_read_once_without_gaps():
    """14: 16 bytes a lane, 512 neighbouring bytes a request. 15 loads neither weights nor x, and has no barrier a chunk."""
    _, rows = cpu_device.read(cpu_device.path_of(LADDER.stage("14_wgmma")))
    (weights,) = [row for row in rows if row["what"] == "global load" and row["bytes_per_lane"] == "16"]
    ahead = GIVEN["m"] // 16  # each warp asks for one chunk more than there are
    assert int(weights["requests"]) == BLOCKS / 32 + ahead and int(weights["sectors"]) == 16 * int(weights["requests"])
    product, (_, rows) = "gemm_q4_0_f16", cpu_device.read(cpu_device.path_of(LADDER.stage("15_warp_specialized")))
    assert not [row for row in rows if product in row["kernel"] and row["what"] == "global load"]
    copied = [row for row in rows if product in row["kernel"] and row["what"] == "global load async"]
    assert sum(int(row["bytes"]) for row in copied if row["bytes_per_lane"] in ("8192", "1024")) == 18 * BLOCKS


def test_a_sum_by_atomics_has_other_bits_in_another_order():
    rows = stored("atomics")
    assert {row["variant"] for row in rows} == {"shuffles", "atomics in shared memory", "atomics in L2"}
    for row in rows:
        assert row["wrong"] == f"0 of {int(row['m']) * int(row['n'])}"
        assert row["bits"] == ("equal" if row["variant"] == "shuffles" else "differ"), row


@pytest.mark.full
@pytest.mark.builds(f"{LADDER.path}/benchmark_best")
def test_benchmark_best_helps():
    shown = run(program(f"{LADDER.path}/benchmark_best"), "--help")
    assert shown.returncode == 0 and shown.stderr == ""
    once = run(program(f"{LADDER.path}/benchmark_best"), 96, 3, 320, "--profile", "--stage", "tile2d")
    assert once.returncode == 0 and once.stdout.count("launched once") == 1
    for word in ("benchmark_best M N K", "benchmark_best 4096 2 14336", "--iterations", "--pause"):
        assert word in shown.stdout


@pytest.mark.full
@pytest.mark.builds(f"{LADDER.path}/benchmark_warp_optimized")
def test_benchmark_warp_optimized_runs_the_documents_five_kernels():
    done = run(program(f"{LADDER.path}/benchmark_warp_optimized"), "--m", 64, "--k", 1024, "--no-small", "--pause", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    named = [stage.name for stage in LADDER.stages[:5]]
    for name in named:
        assert len(re.findall(rf"^{name} +PASS ", done.stdout, re.MULTILINE)) == 1
    rows = re.findall(r"^(\d+) +(\d+) +(\d+) +(\d\d_\w+) +0 of (\d+) ", done.stdout, re.MULTILINE)
    shapes = {row[:3] for row in rows}
    assert len(rows) == 5 * len(shapes) and len(shapes) >= 3 and {row[3] for row in rows} == set(named)
    refused = run(program(f"{LADDER.path}/benchmark_warp_optimized"), "--pause", "-1")
    assert refused.returncode == 2 and "--pause" in refused.stderr
