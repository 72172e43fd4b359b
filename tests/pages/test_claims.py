"""What the matrix ladder's pages say in words of the stored times and counters, as inequalities.

The tables are generated (test_readme.py); a sentence beside them is not. A new measurement that fails here says which
sentence to read again. Each test names its page.
"""

import functools

import pytest
from ladder.core import ladders, results
from ladder.measure.counters import SHORT

LADDER = ladders.all_ladders()[0]
STORED = [results.store() / gpu / LADDER.id for gpu in results.stored_gpus(f"{LADDER.id}/controls.csv")]
pytestmark = pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.parent.name)
SQUARE, SHORTER, SHORT_ROWS, ONE_ROW = "8192x8192", "16384x4096", "262144x256", "1x4096"
OF_512 = "131072x512"


@functools.cache
def times(path):
    """{(stage, "ROWSxCOLS"): microseconds} of a stored CSV."""
    rows = results.read(path, ["stage", "rows", "cols", "microseconds"])
    return {(row["stage"], f"{row['rows']}x{row['cols']}"): float(row["microseconds"]) for row in rows}


@functools.cache
def stored_counters(path):
    return {row["metric"]: row["value"] for row in results.read(path, ["metric", "value"])}


def counter(folder, stage, name, profile=""):
    return float(stored_counters(folder / (f"ncu_{profile}" if profile else "ncu") / f"{stage}.csv")[SHORT[name]])


def share(first, between, last):
    """How much of the way from first to last a control between them goes."""
    return (first - between) / (first - last)


class TestControls:
    def test_03_the_tile_costs_less_than_half_and_at_4096_columns_the_block_size_most(self, folder):
        took = times(folder / "controls.csv")
        names = ("02_reduction5", "03_with_256_threads", "03_tiled")
        assert 0.3 < share(*(took[name, SQUARE] for name in names)) < 0.5
        assert 0 < share(*(took[name, SHORTER] for name in names)) < 0.3
        assert took["03_tiled", SHORT_ROWS] < 0.8 * took["03_with_256_threads", SHORT_ROWS]

    def test_04_the_wide_loads_are_the_gain_and_the_tree_is_not(self, folder):
        took = times(folder / "controls.csv")
        before, control, stage = "02_reduction5", "04_with_tree_of_02", "04_hybrid"
        assert took[stage, SQUARE] < 0.985 * took[before, SQUARE]
        assert took[stage, SHORTER] > 1.02 * took[before, SHORTER]
        for given in (SQUARE, SHORTER):
            assert took[control, given] == pytest.approx(took[stage, given], rel=0.01)
        assert took[stage, SHORT_ROWS] < 0.95 * took[control, SHORT_ROWS]

    def test_06_the_512_threads_bring_nine_tenths_and_the_128_bits_less_than_half(self, folder):
        took = times(folder / "controls.csv")
        before, threads, wide, stage = "05_warp_shuffle", "05_with_512_threads", "06_with_256_threads", "06_vectorized"
        assert 0.85 < share(took[before, SQUARE], took[threads, SQUARE], took[stage, SQUARE]) < 0.95
        assert share(took[before, SQUARE], took[wide, SQUARE], took[stage, SQUARE]) < 0.5
        # At 4096 columns each alone saves time, and both together cost time.
        assert max(took[threads, SHORTER], took[wide, SHORTER]) < took[before, SHORTER] < 0.9 * took[stage, SHORTER]

    def test_08_the_early_load_of_the_weight_is_the_gain(self, folder):
        took = times(folder / "controls.csv")
        before, weight, short, stage = (
            *("07_registers", "07_with_weight_first"),
            *("07_with_weight_first_and_short_sum", "08_critical_path"),
        )
        for given, gain in ((SQUARE, 0.99), (ONE_ROW, 0.9)):
            assert took[weight, given] < gain * took[before, given]
            assert took[weight, given] == pytest.approx(took[stage, given], rel=0.015)
        for given in (SQUARE, SHORTER, SHORT_ROWS, ONE_ROW):
            assert took[short, given] > 0.995 * took[weight, given]
        for given in (SQUARE, SHORTER, ONE_ROW):
            assert took[stage, given] == pytest.approx(took[short, given], rel=0.015)
        assert took[stage, SHORT_ROWS] < 0.96 * took[short, SHORT_ROWS]

    def test_09_the_hints_cost_nothing_and_the_new_reduction_does(self, folder):
        took = times(folder / "controls.csv")
        before, hints, stage = "08_critical_path", "09_with_sum_of_08", "09_streaming"
        for given in (SQUARE, SHORTER, SHORT_ROWS, ONE_ROW):
            assert took[hints, given] == pytest.approx(took[before, given], rel=0.01)
        assert took[stage, SHORTER] > 1.25 * took[before, SHORTER]
        for given in (SHORT_ROWS, ONE_ROW):
            assert took[stage, given] > 1.1 * took[hints, given]

    @pytest.mark.parametrize(
        "control, stage, shares",
        (  # of the stage's time, at each shape that the answer speaks of
            ("05_with_streamed_stores", "05_warp_shuffle", {SQUARE: 0.97, SHORTER: 0.99, OF_512: 1, SHORT_ROWS: 1}),
            (
                "03_without_barriers",
                "03_tiled",
                {SQUARE: 0.96, SHORTER: 0.95, OF_512: 0.965, SHORT_ROWS: 0.95, ONE_ROW: 0.9},
            ),
            (
                "08_with_weight_before_row",
                "08_critical_path",
                {SQUARE: 1, SHORTER: 1, OF_512: 1, SHORT_ROWS: 1, ONE_ROW: 1.04},
            ),
            (
                "09_with_streamed_weight",
                "09_streaming",
                {SQUARE: 1, SHORTER: 0.84, OF_512: 1, SHORT_ROWS: 1, ONE_ROW: 0.95},
            ),
            ("09_with_ldcg", "09_streaming", {SQUARE: 1.01, SHORTER: 1, OF_512: 1, SHORT_ROWS: 1, ONE_ROW: 1}),
            ("09_with_ldlu", "09_streaming", {SQUARE: 1, SHORTER: 1, OF_512: 1, SHORT_ROWS: 1, ONE_ROW: 1}),
            ("09_with_ldcv", "09_streaming", {SQUARE: 1.01, SHORTER: 1, OF_512: 1, SHORT_ROWS: 1, ONE_ROW: 1}),
            ("10_with_1_vector", "10_block_shapes", {SHORTER: 1.19, OF_512: 1.03, SHORT_ROWS: 1.34}),
            ("10_with_4_vectors", "10_block_shapes", {SQUARE: 0.68, SHORTER: 0.82, OF_512: 1.4, SHORT_ROWS: 2.31}),
            ("11_with_drawn_rows", "11_persistent", {SQUARE: 1.08, SHORTER: 0.97, OF_512: 1.77}),
            (
                "11_without_prefetch",
                "11_persistent",
                {SQUARE: 1.3, SHORTER: 1.08, OF_512: 1.21, SHORT_ROWS: 1.03, ONE_ROW: 0.94},
            ),
            ("12_with_block_per_row", "12_bulk_copy", {SQUARE: 1, SHORTER: 1.08, OF_512: 2.4, SHORT_ROWS: 2.6}),
            ("16_with_held_stores", "09_streaming", {SQUARE: 1.04, SHORTER: 1, OF_512: 1, SHORT_ROWS: 1, ONE_ROW: 1}),
            ("16_with_plain_stores", "16_held_reads", {SQUARE: 1, SHORTER: 1, OF_512: 1, SHORT_ROWS: 1, ONE_ROW: 1}),
        ),
    )
    def test_what_the_controls_beside_one_stage_answer(self, folder, control, stage, shares):
        took = times(folder / "controls.csv")
        for given, share in shares.items():
            assert took[control, given] / took[stage, given] == pytest.approx(share, abs=0.01), given

    def test_14_nearly_half_of_the_gain_remains_without_the_trigger(self, folder):
        took = times(folder / "controls.csv")
        of = [took[stage, ONE_ROW] for stage in ("09_streaming", "14_without_trigger", "14_with_blocks_of_09")]
        assert 0.4 < share(*of) < 0.5

    def test_rows_of_8192(self, folder):
        took = times(folder / "rows_of_8192.csv")
        held = {
            rows: took["16_held_reads", f"{rows}x8192"] / took["09_streaming", f"{rows}x8192"]
            for rows in (1, 16, 64, 256, 512, 1024, 2048, 4096)
        }
        assert all(1.09 < held[rows] < 1.12 for rows in (16, 64)) and held[4096] < 1
        assert all(1.03 < held[rows] < 1.045 for rows in (256, 512, 1024)) and 1 <= held[2048] < 1.01
        assert all(took["10_block_shapes", f"{rows}x8192"] < took["13_cluster", f"{rows}x8192"] for rows in held)


class TestCounters:
    """Where an idea does not show at 8192 x 8192, on the input where it does."""

    def test_08_one_row_is_done_in_a_third_fewer_cycles(self, folder):
        def count(stage, name):
            return counter(folder, stage, name, "one_row")

        before, after = "07_registers", "08_critical_path"
        assert 0.6 < count(after, "most_active") / count(before, "most_active") < 0.75

        def stalled(stage):
            return count(stage, "global_wait") * count(stage, "instructions")

        assert stalled(after) < 0.5 * stalled(before)

    def test_09_keeps_some_of_the_weight_in_local_memory_at_4096_columns(self, folder):
        def count(stage, name):
            return counter(folder, stage, name, "columns_4096")

        for name in ("local_loads", "local_stores"):
            assert count("08_critical_path", name) == 0 < count("09_streaming", name)
        assert count("09_streaming", "registers") < count("08_critical_path", "registers")
        assert count("09_streaming", "dram_busy") < 0.85 * count("08_critical_path", "dram_busy")

    def test_13_a_cluster_is_six_times_as_much_memory_at_work_as_a_block(self, folder):
        def count(stage, name):
            return counter(folder, stage, name, "long_row")

        before, after = "10_block_shapes", "13_cluster"
        assert count(before, "active") < 0.01 * count(before, "most_active")
        assert 6 < count(before, "most_active") / count(after, "most_active") < 8
        assert 5.5 < count(after, "dram_busy") / count(before, "dram_busy") < 7

    def test_14_one_row_leaves_every_sm_idle_for_half_of_the_time(self, folder):
        def count(stage, name):
            return counter(folder, stage, name, "one_row")

        before, after = "10_block_shapes", "14_dependent_launch"
        assert 1.8 < count(before, "elapsed") / count(before, "most_active") < 2.3
        assert 1.05 < count(after, "most_active") / count(before, "most_active") < 1.2

    def test_15_all_sms_work_on_one_long_row(self, folder):
        def count(stage, name):
            return counter(folder, stage, name, "long_row")

        assert count("15_many_blocks", "active") > 0.9 * count("15_many_blocks", "most_active")
        assert 2.7 < count("15_many_blocks", "dram_busy") / count("13_cluster", "dram_busy") < 3.6
        assert 0.15 < 1 - count("15_many_blocks", "most_active") / count("15_many_blocks", "elapsed") < 0.25

    def test_16_moves_the_bytes_of_09_in_less_time(self, folder):
        before, after = "09_streaming", "16_held_reads"
        took = times(folder / results.MAIN)
        assert 0.98 < took[after, SQUARE] / took[before, SQUARE] < 0.995
        for name, within in (("dram_read", 0.001), ("dram_written", 0.01), ("l2_hits", 0.01)):
            assert counter(folder, after, name) == pytest.approx(counter(folder, before, name), rel=within)
        assert counter(folder, after, "dram_written") < counter(folder, before, "dram_written")
        assert counter(folder, after, "dram_busy") > 1.01 * counter(folder, before, "dram_busy")
        copy = float(results.read(folder / results.MAIN, ["copy_microseconds"])[0]["copy_microseconds"])
        assert took[after, SQUARE] < 1.005 * copy and took[after, SQUARE] == min(took.values())


@pytest.mark.parametrize("sweep", [name for name, described in LADDER.sweeps.items() if "program" not in described])
def test_every_sweep_has_every_stage(folder, sweep):
    if not (folder / f"{sweep}.csv").is_file():
        pytest.skip(f"{sweep} is not stored yet; make bench on that GPU measures it")
    timed = {stage for stage, _ in times(folder / f"{sweep}.csv")}
    wanted = set(LADDER.timed_by(sweep))
    if wanted - timed == {"16_held_reads"}:
        pytest.skip(f"{sweep}.csv was stored before 16_held_reads; make bench on that GPU measures it again")
    assert timed == wanted
