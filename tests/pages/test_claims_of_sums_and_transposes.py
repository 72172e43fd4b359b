"""What the pages of W2L1, W2L3 and the vector ladder's sweeps say in words of the stored times and counters.

A new measurement that fails here says which sentence to read again. Each class names its pages.
"""

import pytest
from test_claims_of_types_and_rows import rows, stored


def times(path, *names):
    """{(stage, value of each name): microseconds} of a stored CSV."""
    return {(row["stage"], *(row[name] for name in names)): float(row["microseconds"]) for row in rows(path)}


def more(took, stage, than, *given):
    """1.05 where the stage takes 5 percent more time than the other."""
    return took[(stage, *given)] / took[(than, *given)]


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
