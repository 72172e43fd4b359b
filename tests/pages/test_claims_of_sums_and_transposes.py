"""What the pages of W2L1, W2L3 and the vector ladder's sweeps say in words of the stored times and counters.

A new measurement that fails here says which sentence to read again. Each class names its pages.
"""

import pytest
from ladder.core import results
from test_claims_of_types_and_rows import counter, rows, stored


def times(path, *names):
    """{(stage, value of each name): microseconds} of a stored CSV."""
    return {(row["stage"], *(row[name] for name in names)): float(row["microseconds"]) for row in rows(path)}


def more(took, stage, than, *given):
    """1.05 where the stage takes 5 percent more time than the other."""
    return took[(stage, *given)] / took[(than, *given)]


@stored("W2L1", "peers.csv")
class TestSums:
    SIZES = "65536 1048576 4194304 67108864 268435456".split()

    def test_first_half_by_counters(self, folder):
        took = times(folder / results.MAIN)
        names = "instructions shared_wait load_wavefronts store_wavefronts dram_busy lg_throttle".split()
        of = {name: {stage: counter(folder, f"reduction{stage}", name) for stage in range(8)} for name in names}
        assert more(took, "reduction1", "reduction0") > 1.2 and of["instructions"][1] > 1.07 * of["instructions"][0]
        assert of["shared_wait"][1] > 1.4 * of["shared_wait"][0]
        wavefronts = [of["load_wavefronts"][stage] + of["store_wavefronts"][stage] for stage in range(3)]
        assert wavefronts[0] > wavefronts[1] > 3 * wavefronts[2] and 0.97 < more(took, "reduction2", "reduction0") < 1
        for stage, share, instructions in ((3, 0.56, 0.54), (4, 0.74, 0.58), (5, 0.58, 0.36)):
            assert more(took, f"reduction{stage}", f"reduction{stage - 1}") == pytest.approx(share, abs=0.02)
            assert of["instructions"][stage] / of["instructions"][stage - 1] == pytest.approx(instructions, abs=0.02)
        assert max(of["dram_busy"][stage] for stage in range(5)) < 50 < 70 < of["dram_busy"][5]
        assert (
            of["lg_throttle"][7] < 0.02 * of["lg_throttle"][6] and of["instructions"][7] < 0.41 * of["instructions"][6]
        )

    def test_what_gains_nothing_and_what_loses(self, folder):
        took = times(folder / "by_size.csv", "n")
        for n in self.SIZES:
            assert more(took, "reduction6", "reduction5", n) == pytest.approx(1, abs=0.005)
            assert (more(took, "reduction7", "reduction6", n) < 1) == (int(n) > 1 << 24)
            assert (more(took, "reduction8", "reduction7", n) < 1) == (int(n) > 1 << 24)
            assert 1.05 < more(took, "reduction9", "reduction8", n) < 1.22
            assert min(took[f"reduction{stage}", n] for stage in range(10)) < took["reduction9", n]
        assert min((took[f"reduction{stage}", "65536"], stage) for stage in range(10))[1] == 4
        stages = ("reduction7", "reduction9")
        uneven = [counter(folder, stage, "most_active") / counter(folder, stage, "active") for stage in stages]
        assert uneven[0] < 1.07 and uneven[1] > 1.25 and counter(folder, "reduction9", "blocks") == 992

    def test_beside_cub_and_the_reading(self, folder):
        took = times(folder / "peers.csv", "n")

        def first(n, kind):
            return min((us, stage) for (stage, of), us in took.items() if of == n and stage.startswith(kind))

        reading = {n: first(n, "read_only")[0] for _, n in took}
        ours = {n: first(n, "reduction") for _, n in took}
        best = "268435456"
        assert reading[best] / took["reduction8", best] > 0.97
        assert 4 * int(best) / reading[best] / 1e6 == pytest.approx(4.65, abs=0.01)
        assert reading["67108864"] / took["reduction8", "67108864"] > 0.97
        for n in ("67108864", best):
            assert 0.99 < more(took, "reduction8", "cub_device_reduce", n) < 0.996
        assert ours["16777216"][1] == "reduction8_1024_threads"
        assert 1.02 < ours["16777216"][0] / took["cub_device_reduce", "16777216"] < 1.04
        assert ours["1048576"][1] == "reduction6" and more(took, "reduction6", "cub_device_reduce", "1048576") < 0.98
        assert more(took, "reduction9_4_waves", "reduction9", best) < 0.97
        assert more(took, "reduction8_no_loop", "reduction8", best) > 1.15


@stored("W2L3", "controls.csv")
class TestTransposes:
    def test_stages(self, folder):
        took = times(folder / results.MAIN)
        percent = {row["stage"][-2:]: float(row["percent_of_copy"]) for row in rows(folder / results.MAIN)}
        assert percent["v6"] > 97 and percent["v7"] > 95 > 90 > percent["v5"]
        for stage, share in (("v1", 0.56), ("v2", 0.66), ("v3", 0.44), ("v4", 1.03), ("v7", 1.02)):
            assert more(took, f"transpose_{stage}", f"transpose_v{int(stage[1]) - 1}") == pytest.approx(
                share, abs=0.015
            )
        assert 0.93 < more(took, "transpose_v8", "transpose_v3") < 0.97
        assert 0.88 < more(took, "transpose_v6", "transpose_v5") < 0.92

    def test_counters(self, folder):
        def of(stage, name):
            return counter(folder, f"transpose_v{stage}", name)

        assert of(0, "drain") > 0.5 * of(0, "waits") and of(0, "global_wait") < of(0, "waits") / 3
        assert of(1, "shared_wait") > 0.2 * of(1, "waits") and of(2, "shared_wait") < 0.05 * of(2, "waits")
        assert of(2, "dram_busy") < 31 and of(3, "dram_busy") > 69
        assert of(4, "instructions") == pytest.approx(1.25 * of(3, "instructions"), rel=0.01)
        assert of(5, "mio_throttle") > 0.3 * of(5, "waits")
        assert of(7, "instructions") < 0.8 * of(6, "instructions") and of(7, "occupancy") < of(6, "occupancy")
        assert of(6, "global_wait") / of(6, "waits") < 0.55 and of(7, "global_wait") / of(7, "waits") > 0.8
        assert of(6, "issue_busy") < 30

    def test_controls(self, folder):
        took = times(folder / "controls.csv", "rows", "cols")
        square, odd, small = ("8192", "8192"), ("8191", "8193"), ("1024", "1024")
        halves = [more(took, "transpose_v0", "v0_strided_reads", *given) for given in (square, odd)]
        assert 2.3 < halves[0] < 2.5 < halves[1]
        assert more(took, "v5_with_tile_32", "transpose_v3", *square) > 1.2
        assert more(took, "v5_with_tile_64", "v5_with_tile_32", *square) < 0.72
        assert 1.05 < more(took, "transpose_v5", "v5_with_tile_64", *square) < 1.08
        assert more(took, "transpose_v5", "v5_with_tile_64", *odd) < 1
        for control, share in (("v6_across", 1.03), ("v6_with_tile_32", 1.04), ("v6_without_tile", 1.13)):
            assert more(took, control, "transpose_v6", *square) == pytest.approx(share, abs=0.01)
        assert (
            more(took, "transpose_v6", "transpose_v5", *odd) > 1.3
            and more(took, "transpose_v6", "transpose_v3", *odd) > 1
        )
        assert min((us, stage) for (stage, *given), us in took.items() if tuple(given) == small)[1] == "transpose_v3"


@stored("vector", "controls.csv")
class TestVectorSweeps:
    def test_lengths(self, folder):
        took = times(folder / "lengths.csv", "n")
        assert all(
            0.5 < took[stage, "65536"] / took[stage, "1048576"] < 0.6
            for stage, n in took
            if n == "65536" and stage[:2] in ("09", "10", "11", "12", "13", "14")
        )
        assert more(took, "09_registers", "06_vectorized", "2097152") < 0.94
        assert more(took, "09_registers", "06_vectorized", "4194304") > 0.99
        for stage in ("13_prefetch", "14_copied_words"):
            assert took[stage, "4194304"] > 2.1 * took[stage, "2097152"]
            assert 1.05 < more(took, stage, "12_one_word", "4194304") < 1.08
        assert more(took, "12_one_word", "11_dependent_launch", "65536") > 1.04

    def test_controls(self, folder):
        long, short = "1048576", "65536"
        took = times(folder / "controls.csv", "n")
        for control, share, of_short in (
            ("13_prefetch", 1.11, 1.12),
            ("12_early_trigger", 1.13, 1.09),
            ("12_with_prefetch", 1.03, 1.22),
            ("13_bulk_prefetch", 0.97, 0.95),
            ("13_one_warp", 1.08, 1.22),
            ("13_every_warp", 1.87, 2.67),
            ("13_cluster_8", 1.23, 1.52),
            ("13_cluster_16", 1.21, 1.45),
            ("13_256_threads", 0.99, 1.01),
            ("13_1024_threads", 1.01, 1.18),
            ("13_132_blocks", 0.91, 0.93),
            ("13_64_blocks", 0.98, 1.11),
            ("14_copied_words", 0.85, 0.91),
            ("14_one_copy", 0.98, 1.09),
            ("14_trigger_at_once", 0.90, 0.99),
        ):
            assert more(took, control, "13_fixed_shape", long) == pytest.approx(share, abs=0.015)
            assert more(took, control, "13_fixed_shape", short) == pytest.approx(of_short, abs=0.015)
        assert more(took, "12_plain_launch", "12_early_trigger", long) == pytest.approx(1.09, abs=0.015)
        for n, shares in ((long, (0.65, 1.02)), ("262144", (0.86, 0.94)), (short, (1.09, 0.96))):
            for (control, stage), share in zip(
                (("02_three_kernels", "02_two_kernels"), ("12_plain_launch_late_weight", "12_plain_launch")), shares
            ):
                assert more(took, control, stage, n) == pytest.approx(share, abs=0.01)

    def test_controls_of_14(self, folder):
        took = times(folder / "controls.csv", "n")
        assert more(took, "14_copied_words", "14_one_copy", "1048576") == pytest.approx(0.87, abs=0.015)
        for name, shares in (("controls", (1.04, 1.01, 1.16, 1.14)), ("bfloat16", (0.99, 0.94, 1.18, 1.29))):
            took = times(folder / f"{name}.csv", "n")
            controls = ("14_own_copy", "14_copy_for_four", "14_without_prefetch", "14_trigger_after_sum")
            for control, share in zip(controls, shares):
                assert more(took, control, "14_copied_words", "1048576") == pytest.approx(share, abs=0.015)
        took = times(folder / "controls.csv", "n")
        for control, share in (("14_own_copy", 1.14), ("14_copy_for_four", 1.08)):
            assert more(took, control, "14_copied_words", "65536") == pytest.approx(share, abs=0.015)

    def test_bfloat16_reaches_the_aim_with_copies_of_the_words_only(self, folder):
        took = {stage: us for (stage, n), us in times(folder / "bfloat16.csv", "n").items() if n == "1048576"}
        reached = {stage for stage, us in took.items() if us <= 3.6}
        assert reached == {"14_copied_words", "14_own_copy", "14_copy_for_four", "14_trigger_at_once"}
        assert 0.73 < took["14_copied_words"] / took["13_prefetch"] < 0.77
        assert took["14_copied_words"] / took["13_fixed_shape"] == pytest.approx(0.87, abs=0.015)
        stages = ("12_early_trigger", "12_with_prefetch", "13_fixed_shape")
        trigger, prefetch, both = (1 - took[stage] / took["12_one_word"] for stage in stages)
        assert trigger + prefetch < 0.05 < 0.12 < both
