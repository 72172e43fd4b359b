"""What PROFILING.md and W1L2's page say in words of the stored counters and times, as inequalities.

A new measurement that fails here says which sentence to read again.
"""

import pytest
from ladder.core import results
from test_claims import SQUARE, STORED, counter, times

pytestmark = pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.parent.name)
BYTES = ("dram_read", "dram_written")


def moved(folder, stage):
    return sum(counter(folder, stage, name) for name in BYTES)


def in_all(folder, stage, name):
    """A counter per instruction, of all instructions."""
    return counter(folder, stage, name) * counter(folder, stage, "instructions")


class TestWalks:
    def test_01_a_quarter_of_the_sms_an_eighth_of_their_warps(self, folder):
        assert 0.22 < counter(folder, "01_basic", "active") / counter(folder, "01_basic", "elapsed") < 0.27
        assert counter(folder, "01_basic", "occupancy") == pytest.approx(12.5, abs=0.5)

    def test_03_more_bytes_and_less_throughput(self, folder):
        before, after = "02_reduction5", "03_tiled"
        more_bytes = moved(folder, after) / moved(folder, before)
        less_throughput = counter(folder, before, "dram_busy") / counter(folder, after, "dram_busy")
        assert 1.08 < more_bytes < 1.12 and 1.03 < less_throughput < more_bytes
        for stage in (before, after):  # no conflict by address
            for op in ("load", "store"):
                assert counter(folder, stage, f"{op}_wavefronts") == counter(folder, stage, f"shared_{op}s")

    def test_04_more_cycles_at_half_the_barriers(self, folder):
        assert in_all(folder, "04_hybrid", "barrier") > 1.5 * in_all(folder, "02_reduction5", "barrier")

    def test_06_the_time_falls_by_the_fraction_of_the_bytes(self, folder):
        before, after = "05_warp_shuffle", "06_vectorized"
        fewer = moved(folder, after) / moved(folder, before)
        assert counter(folder, after, "duration") / counter(folder, before, "duration") == pytest.approx(
            fewer, rel=0.03
        )
        assert 2 * counter(folder, after, "instructions") > 2.2 * counter(folder, before, "instructions")

    def test_07_waits_for_memory_as_long_as_06_and_longer_for_its_stores(self, folder):
        before, after = "06_vectorized", "07_registers"
        stalled = in_all(folder, before, "global_wait")
        assert in_all(folder, after, "global_wait") == pytest.approx(stalled, rel=0.02)
        assert counter(folder, after, "drain") > 3.5 * counter(folder, before, "drain")

    def test_08_a_warp_takes_a_third_fewer_cycles(self, folder):
        before, after = "07_registers", "08_critical_path"

        def ratio(name):
            return in_all(folder, after, name) / in_all(folder, before, name)

        assert 0.63 < ratio("waits") < 0.7 and 0.55 < ratio("global_wait") < 0.65 and 0.4 < ratio("shared_wait") < 0.55
        assert counter(folder, after, "shared_loads") == 4 * counter(folder, before, "shared_loads")

    def test_09_no_counter_of_bytes_moves(self, folder):
        before, after = "08_critical_path", "09_streaming"
        for name in (*BYTES, "l2_hits"):
            assert counter(folder, after, name) == pytest.approx(counter(folder, before, name), rel=0.006)
        assert counter(folder, after, "l2_read_hits") < 1
        assert 1.2 < counter(folder, after, "instructions") / counter(folder, before, "instructions") < 1.3

    def test_10_one_block_and_a_third_less_throughput(self, folder):
        before, after = "09_streaming", "10_block_shapes"
        assert counter(folder, after, "limit_registers") == 1 < counter(folder, before, "limit_registers")
        assert 0.65 < counter(folder, after, "dram_busy") / counter(folder, before, "dram_busy") < 0.7
        assert counter(folder, after, "occupancy") == pytest.approx(counter(folder, before, "occupancy"), abs=1)
        assert counter(folder, after, "elapsed") > 1.05 * counter(folder, after, "active")

    def test_11_a_quarter_of_the_stall_and_a_late_end(self, folder):
        after = "11_persistent"
        assert 0.2 < counter(folder, after, "global_wait") / counter(folder, "10_block_shapes", "global_wait") < 0.3
        assert counter(folder, after, "active") == pytest.approx(counter(folder, "09_streaming", "active"), rel=0.025)
        assert 1.04 < counter(folder, after, "elapsed") / counter(folder, "09_streaming", "elapsed") < 1.08

    def test_12_seven_times_the_stall_and_no_wavefront_too_many(self, folder):
        before, after = "11_persistent", "12_bulk_copy"
        assert 6 < counter(folder, after, "global_wait") / counter(folder, before, "global_wait") < 8
        assert counter(folder, after, "load_wavefronts") == 8192 * 896
        assert counter(folder, after, "load_requests") == 0
        assert 0.3 < counter(folder, after, "load_conflicts") / counter(folder, after, "shared_loads") < 0.5

    def test_13_a_quarter_of_the_cycles_has_no_reason(self, folder):
        reasons = "global_wait barrier lg_throttle mio_throttle shared_wait latency math_throttle not_selected fetch"

        def missing(stage):
            named = sum(counter(folder, stage, name) for name in (*reasons.split(), "drain", "selected"))
            return 1 - named / counter(folder, stage, "waits")

        assert 0.2 < missing("13_cluster") < 0.3 and missing("10_block_shapes") < 0.03

    def test_14_is_10(self, folder):
        before, after = "10_block_shapes", "14_dependent_launch"
        for name in ("duration", "dram_busy", "occupancy", "instructions", "waits", "active", "elapsed"):
            assert counter(folder, after, name) == pytest.approx(counter(folder, before, name), rel=0.03)

    def test_15_is_09_with_more_instructions(self, folder):
        before, after = "09_streaming", "15_many_blocks"
        for name in ("threads", "limit_registers"):
            assert counter(folder, after, name) == counter(folder, before, name)
        assert 1.33 < counter(folder, after, "instructions") / counter(folder, before, "instructions") < 1.42
        assert 0.98 < counter(folder, after, "dram_busy") / counter(folder, before, "dram_busy") < 1

    def test_16_has_the_highest_throughput(self, folder):
        stages = [path.stem for path in (folder / "ncu").glob("*.csv")]
        assert max(stages, key=lambda stage: counter(folder, stage, "dram_busy")) == "16_held_reads"


class TestOtherLengths:
    @pytest.fixture
    def slower(self, folder):
        """(stage, columns) -> how many times as long as the copy kernel."""
        rows = results.read(folder / "by_columns.csv", ["stage", "cols", "microseconds", "copy_microseconds"])
        return {
            (row["stage"][:2], int(row["cols"])): float(row["microseconds"]) / float(row["copy_microseconds"])
            for row in rows
        }

    def test_02_04_and_05_at_half_and_a_quarter_of_the_length(self, slower):
        for stage in ("02", "04", "05"):
            assert 0.74 < slower[stage, 4096] / slower[stage, 8192] < 0.85
            assert 1.09 < slower[stage, 4096] < 1.16
        assert slower["05", 2048] < 1.03 < slower["04", 2048] < 1.08 < slower["02", 2048] < 1.17

    def test_06_at_other_lengths(self, slower):
        assert slower["06", 4096] == pytest.approx(1.27, abs=0.015)
        assert slower["06", 2048] == pytest.approx(1.52, abs=0.015)
        assert slower["07", 4096] < 1.03
        assert slower["06", 8192] < slower["06", 16384] < slower["06", 32768]
        for stage in ("02", "04", "05"):
            assert slower["06", 32768] == pytest.approx(slower[stage, 32768], rel=0.1)

    def test_short_rows(self, slower):
        for cols in (256, 512, 1024):
            assert min((f"{stage:02}" for stage in range(1, 7)), key=lambda stage: slower[stage, cols]) == "03"
        assert 2 * slower["10", 256] < slower["03", 256] and 2 * slower["14", 256] < slower["03", 256]
        for stage in ("10", "14"):
            assert max(slower[stage, 256], slower[stage, 512]) < 1.05


def test_the_first_six_stages_are_sorted_by_what_they_read(folder):
    took = times(folder / results.MAIN)
    stages = ["03_tiled", "02_reduction5", "05_warp_shuffle", "04_hybrid", "06_vectorized"]
    for stage in ("02_reduction5", "05_warp_shuffle"):  # either may come first
        assert took["03_tiled", SQUARE] > took[stage, SQUARE] > took["04_hybrid", SQUARE]
        read = [counter(folder, one, "dram_read") for one in ("03_tiled", stage, "04_hybrid")]
        assert read == sorted(read, reverse=True)
    assert min(stages, key=lambda stage: took[stage, SQUARE]) == "06_vectorized"
    assert min(stages, key=lambda stage: counter(folder, stage, "dram_read")) == "06_vectorized"


class TestLecture:
    """W1L2's page on the copy that is no bound and on the runtime's copy."""

    @pytest.fixture
    def peers(self, folder):
        """(rows, cols, type, whether there is a weight, competitor) -> microseconds."""
        rows = results.read(folder.parent / "header/peers_forward.csv", ["competitor", "microseconds"])
        key = ("rows", "cols", "dtype", "weight", "competitor")
        return {tuple(row[name] for name in key): float(row["microseconds"] or "nan") for row in rows}

    def test_the_header_takes_a_percent_less_than_the_copy_kernel(self, peers):
        square = ("8192", "8192", "float32", "1")
        assert 0.985 < peers[(*square, "ours_pdl")] / peers[(*square, "copy_kernel")] < 0.995

    def test_the_runtime_s_copy_drops_beyond_a_gigabyte(self, folder, peers):
        large = ("32768", "8192", "bfloat16", "1")
        assert 0.6 < peers[(*large, "copy_kernel")] / peers[(*large, "copy_memcpy")] < 0.7
        took = {row["stage"]: float(row["microseconds"]) for row in results.read(folder.parent / "W1L2/main.csv", [])}
        assert took["13_memcpy"] == pytest.approx(took["04_float4"], rel=0.01)
