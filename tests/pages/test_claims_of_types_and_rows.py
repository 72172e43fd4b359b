"""What the pages of four ladders say in words of the stored times and counters, as inequalities.

A new measurement that fails here says which sentence to read again. Each test names its pages.
"""

import functools

import pytest
from ladder.core import ladders, results
from ladder.measure import cpu_device
from ladder.measure.counters import SHORT
from ladder.pages import grid_tables


def stored(ladder, needed):
    folders = [results.store() / gpu / ladder for gpu in results.stored_gpus(f"{ladder}/{needed}")]
    return pytest.mark.parametrize("folder", folders, ids=lambda folder: folder.parent.name)


@functools.cache
def rows(path):
    return results.read(path)


def times(folder):
    return {row["stage"][:2]: float(row["microseconds"]) for row in rows(folder / results.MAIN)}


def counter(folder, stage, name):
    path = next(
        path
        for path in (folder / "ncu").glob(f"{stage}*.csv")
        if path.stem.split("_")[0] == stage or path.stem == stage
    )
    return float({row["metric"]: row["value"] for row in rows(path)}[SHORT[name]])


def ratio(folder, name, after, before):
    return counter(folder, after, name) / counter(folder, before, name)


def table(folder, name):
    """{(stage, first two letters or all, and the shape): microseconds} of a sweep."""
    found = {}
    for row in rows(folder / name):
        shape = f"{row.get('num-tokens') or row['rows']}x{row.get('hidden-size') or row['cols']}"
        found[row["stage"], shape] = found[row["stage"][:2], shape] = float(row["microseconds"])
    return found


TOKENS = ("256", "512", "1024", "2048", "4096", "8192")


@stored("serving", "grid.csv")
class TestServing:
    def test_no_claim_holds_and_the_wider_accesses_are_the_gain(self, folder):
        factors = {}
        for row in rows(folder / "claims.csv"):
            assert row["holds"] == "at 0 of 6"
            factors[row["change"], row["dtype"]] = [
                float(row[f"factor_{n}"]) for n in (768, 1024, 2048, 4096, 5120, 8192)
            ]
        wide, both = (factors[change, "half"] for change in ("vectorized normalization pass", "combined effect"))
        assert 1.12 < wide[0] < 1.2 and 1.45 < wide[-1] < 1.55 and both == pytest.approx(wide, rel=0.02)
        assert all(1.04 < factor < 1.11 for factor in factors["vectorized normalization pass", "float"])
        assert factors["loop unrolling", "half"][0] < 1.01 and max(factors["loop unrolling", "half"]) < 1.08
        assert min(factors["loop unrolling", "half"][1:]) > 1.01
        assert (
            max(factors["combined effect", "float"]) < 1.11 and max(factors["fused: combined effect", "float"]) < 1.045
        )
        for (change, _), of_sizes in factors.items():
            if change not in ("vectorized normalization pass", "combined effect", "loop unrolling"):
                assert all(0.98 < factor < 1.045 for factor in of_sizes), change
        assert 1.7 < 100 / float(rows(folder / "main.csv")[0]["percent_of_copy"]) < 1.85

    def test_where_after_and_the_header_are_slower(self, folder):
        kinds = {}
        for row in rows(folder / "grid.csv"):
            kinds.setdefault((row["function"], row["dtype"]), []).append(row)
        slower = {kind: grid_tables.slower_shapes(of_kind, "before", "after") for kind, of_kind in kinds.items()}
        assert {kind for kind, shapes in slower.items() if shapes} == {
            ("fused_add_rms_norm", "half"),
            ("fused_add_rms_norm", "bfloat16"),
            ("rms_norm", "float"),
        }
        shapes = len(TOKENS) * len(next(iter(kinds.values())))
        assert len(slower["fused_add_rms_norm", "half"]) > shapes / 2
        assert 0 < len(slower["rms_norm", "float"]) < len(slower["fused_add_rms_norm", "bfloat16"]) < shapes / 3
        assert {slower["fused_add_rms_norm", dtype][0][1] for dtype in ("half", "bfloat16")} == {256}
        behind = {kind: grid_tables.slower_shapes(of_kind, "after", "header") for kind, of_kind in kinds.items()}
        fused = {("fused_add_rms_norm", "half"), ("fused_add_rms_norm", "bfloat16")}
        assert {kind for kind, found in behind.items() if found} == fused
        assert all(ratio < 1.001 and shape == [8192, 4096] for found in behind.values() for ratio, *shape in found)

    def test_08_trades_warps_for_a_reading_and_09_loses(self, folder):
        took = table(folder, "hidden_sizes.csv") | table(folder, "tokens.csv") | table(folder, "main.csv")
        for shape in ("4096x768", "4096x2048", "7x8192", "256x8192"):
            assert 0.97 < took["08", shape] / took["06", shape] < 1
        for shape in ("4096x4096", "4096x8192", "1024x8192"):
            assert 1.01 < took["08", shape] / took["06", shape] < 1.07
        assert all(took["09", shape] > took["08", shape] for stage, shape in took if stage == "09")
        assert [counter(folder, stage, "limit_registers") for stage in ("06", "08", "09")] == [8, 5, 3]
        for after, before in (("08", "06"), ("09", "08")):
            assert ratio(folder, "dram_read", after, before) == pytest.approx(1, rel=0.005)
            assert ratio(folder, "load_requests", after, before) < 0.76
        assert ratio(folder, "dram_busy", "09", "08") < 0.92 and counter(folder, "09", "l1_hits") < 5

    def test_the_fused_kernel_waits_for_memory_before_and_after(self, folder):
        took = times(folder)
        assert took["05"] == pytest.approx(took["04"], rel=0.005) and took["06"] == pytest.approx(took["05"], rel=0.005)
        assert ratio(folder, "barrier", "05", "04") > 1 and 0.93 < ratio(folder, "instructions", "06", "05") < 0.97
        for stage in ("05", "06"):
            assert counter(folder, stage, "global_wait") > 0.75 * counter(folder, stage, "waits")
        assert took["07"] > 2 * took["06"] and ratio(folder, "dram_busy", "07", "06") < 0.5

    def test_streams_and_block_sizes(self, folder):
        for row in rows(folder / "multi_stream.csv"):
            one, eight, launch = (
                float(row[f"{way}_microseconds"]) for way in ("one_stream", "eight_streams", "one_launch")
            )
            assert launch < min(one, eight)
            assert 1.1 < eight / one < 1.34 if int(row["num_tokens"]) <= 64 else 0.75 < eight / one < 0.85
        sizes = rows(folder / "block_sizes.csv")
        assert sum(row["fastest"] == row["of_the_ladder"] for row in sizes) == 5
        (short,) = (row for row in sizes if (row["num_tokens"], row["hidden_size"]) == ("8192", "768"))
        assert 1.45 < float(short["threads_256_microseconds"]) / float(short["threads_64_microseconds"]) < 1.6


@stored("inference", "replay.csv")
class TestInference:
    ONE, MANY = "1x4096", "2048x4096"

    def test_no_general_change_is_worth_anything_alone_and_all_together_are(self, folder):
        took = table(folder, "controls.csv")
        for change in ("shuffle", "restrict", "unroll", "ldg", "block_dim"):
            for shape in (self.ONE, self.MANY):
                assert 0.995 < took[f"01_with_{change}", shape] / took["01_before_f32", shape] < 1.035
        assert took["06_block_dim", self.ONE] < 0.65 * took["01_before_f32", self.ONE]
        assert 0.86 < took["06_block_dim", self.MANY] / took["01_before_f32", self.MANY] < 0.9
        for shape in (self.ONE, self.MANY):
            assert took["07_with_weight_64_bit", shape] == pytest.approx(took["07_before_fp16w", shape], rel=0.005)
            assert took["06_256_threads", shape] < 0.93 * took["06_block_dim", shape]
            assert took["06_through_factory", shape] == pytest.approx(took["06_block_dim", shape], rel=0.005)
        assert 2.2 < took["09_before_pure_fp16", self.ONE] / took["09_with_128_bit", self.ONE] < 2.5
        assert took["09_with_128_bit", self.MANY] < 0.95 * took["10_loads_128_bit", self.MANY]

    def test_the_counters_of_06_and_of_the_second_reading(self, folder):
        assert ratio(folder, "instructions", "04", "03") > 1.01 and ratio(folder, "instructions", "03", "02") == 1
        assert ratio(folder, "global_wait", "06", "05") < 0.65 and ratio(folder, "occupancy", "06", "05") < 0.8
        matrix = 4 * 2048 * 4096
        assert counter(folder, "01", "dram_read") > 1.25 * matrix and counter(folder, "06", "dram_read") < 1.06 * matrix
        assert [counter(folder, stage, "limit_registers") for stage in ("06", "08", "10")] == [12, 16, 12]
        took = times(folder)
        assert ratio(folder, "load_requests", "07", "01") == 2 and took["07"] == pytest.approx(took["01"], rel=0.01)

    def test_the_documents_table(self, folder):
        for row in rows(folder / "document.csv"):
            before, after, header = (float(row[f"{what}_microseconds"]) for what in ("before", "after", "header"))
            assert 1.27 < before / after < 3.1 and 1.15 < after / header < 1.67, row
            warm = float(row["warm_before_microseconds"]) / float(row["warm_after_microseconds"])
            assert min(before / after, warm) > float(row["document_factor"] or 0), row

    def test_a_step_beside_its_floor(self, folder):
        took = {(row["model"], row["step"][:6], row["kernels"]): row for row in rows(folder / "replay.csv")}
        for (_, step, kernels), row in took.items():
            if step == "decode" and kernels not in ("before", "empty kernels"):
                assert 1.9 < float(row["launches_microseconds"]) / float(row["graph_microseconds"]) < 3.3
        took = {given: float(row["graph_microseconds"]) for given, row in took.items()}
        for (model, step, kernels), floor in took.items():
            if kernels != "empty kernels":
                continue
            ways = [took[model, step, way] for way in ("before", "after", "header", "header, dependent launch")]
            assert ways == sorted(ways, reverse=True)
            if step == "decode":
                for way, (least, most) in zip(ways, [(4, 8.3), (2.7, 4.5), (2, 2.3), (1.4, 1.6)]):
                    assert least < way / floor < most, (model, way)
            elif model.startswith("Qwen3"):  # 16,384 blocks that do nothing, and the header has fewer
                assert ways[2] < floor < ways[1]
            else:
                assert ways[3] > 2 * floor


def test_the_counts_that_agree_are_those_that_the_vector_page_names():
    same = [
        stage.name[:2]
        for stage in ladders.find("vector").stages
        if all(cpu_device.agree(*both) for both in cpu_device.comparison(results.store() / "h200", stage).values())
    ]
    assert same == ["03", "05"]
