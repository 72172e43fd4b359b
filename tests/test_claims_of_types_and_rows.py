"""What the pages of the precision and vector ladders say in words of the stored times and counters, as inequalities.

As in test_claims.py: a new measurement that fails here says which sentence to read again. Each test names its pages.
"""

import functools

import pytest

from ladder import cpu_device, ladders, results, timed
from ladder.counters import SHORT


def stored(ladder, needed):
    folders = [results.store() / gpu / ladder for gpu in results.stored_gpus(f"{ladder}/{needed}")]
    return pytest.mark.parametrize("folder", folders, ids=lambda folder: folder.parent.name)


@functools.lru_cache(maxsize=None)
def rows(path):
    return results.read(path)


def times(folder):
    return {row["stage"][:2]: float(row["microseconds"]) for row in rows(folder / results.MAIN)}


def counter(folder, stage, name):
    path = next((folder / "ncu").glob(f"{stage}_*.csv"))
    return float({row["metric"]: row["value"] for row in rows(path)}[SHORT[name]])


def ratio(folder, name, after, before):
    return counter(folder, after, name) / counter(folder, before, name)


@stored("precision", "ncu/11_bf16x8_pack_f32.csv")
class TestPrecision:
    def test_02_has_one_block_per_sm_and_takes_longer(self, folder):
        took = times(folder)
        assert took["02"] > took["01"]
        assert [counter(folder, stage, "limit_registers") for stage in ("01", "02")] == [2, 1]
        assert counter(folder, "02", "occupancy") < 50 < 90 < counter(folder, "01", "occupancy")
        assert ratio(folder, "load_requests", "02", "01") < 0.25
        for name in ("waits", "dram_busy", "issue_busy"):
            assert ratio(folder, name, "02", "01") < 1
        shapes = {(row["cols"], row["stage"][:2]): float(row["microseconds"])
                  for row in rows(folder / "document.csv") if row["rows"] == "4096"}  # fmt: skip
        assert all(shapes[cols, "02"] < 0.6 * shapes[cols, "01"] for cols in ("512", "1024", "2048"))
        assert 0.85 < shapes["4096", "02"] / shapes["4096", "01"] < 1 < shapes["8192", "02"] / shapes["8192", "01"]

    def test_half_the_bytes_alone_save_nothing(self, folder):
        took = times(folder)
        for stage in ("03", "09", "10"):
            assert took[stage] == pytest.approx(took["01"], rel=0.04)
            assert ratio(folder, "dram_read", stage, "01") == pytest.approx(0.5, rel=0.01)
            assert ratio(folder, "load_requests", stage, "01") == 1 and counter(folder, stage, "dram_busy") < 30
        assert 0.5 < counter(folder, "03", "global_wait") / counter(folder, "03", "waits") < 0.6
        assert took["04"] < 0.67 * took["03"] and ratio(folder, "load_requests", "04", "03") < 0.5

    def test_05_queues_and_06_queues_less(self, folder):
        took = times(folder)
        assert took["06"] < 0.95 * took["05"] and took["04"] < took["05"]
        for name in ("lg_throttle", "mio_throttle", "shared_wait", "drain"):
            of = {stage: counter(folder, stage, name) for stage in ("04", "05", "06", "07")}
            assert of["06"] < 0.8 * of["05"] and max(of["04"], of["07"]) < 0.5 * of["05"]
        assert ratio(folder, "instructions", "06", "05") == pytest.approx(1.25, rel=0.02)
        assert 1.6 < ratio(folder, "l1_busy", "05", "04") < 2 and ratio(folder, "waits", "05", "04") > 1.3

    def test_wide_accesses_are_fastest_and_float32_sums_cost_a_few_percent(self, folder):
        took = times(folder)
        assert max(took["07"], took["08"], took["11"]) < 0.5 * took["01"] and took["07"] == min(took.values())
        assert 1.04 < took["08"] / took["07"] < 1.1 and 1.01 < took["09"] / took["03"] < 1.05
        assert took["11"] == pytest.approx(took["08"], rel=0.01)
        assert ratio(folder, "instructions", "08", "07") > 1.2 and ratio(folder, "instructions", "11", "08") > 1.1

    def test_the_cache_helps_below_its_size_and_not_above(self, folder):
        for row in rows(folder / "document.csv"):
            moved = int(row["rows"]) * int(row["cols"]) * (8 if row["stage"][:2] in ("01", "02") else 4)
            cold_by_warm = float(row["microseconds"]) / float(row["warm_microseconds"])
            assert cold_by_warm < 1.03 if moved > 60e6 else cold_by_warm > 1.02, row
            assert moved / float(row["warm_microseconds"]) / 1e3 < 4814, row


@stored("vector", "waits.csv")
class TestVector:
    def test_02_is_limited_by_its_own_sums_and_03_is_not(self, folder):
        warm = {row["stage"][:2]: row for row in rows(folder / "warm.csv")}
        warm = {name: float(row["warm_microseconds"]) / float(row["cold_microseconds"]) for name, row in warm.items()}
        assert warm["02"] > 0.95 and warm["01"] < 0.6 and max(warm.values()) == warm["02"]
        assert counter(folder, "02", "l1_busy") > 70 and counter(folder, "02", "issue_busy") > 70
        assert counter(folder, "01", "dram_busy") < 2 and counter(folder, "03", "issue_busy") < 5
        assert counter(folder, "03", "barrier") < 0.03 * counter(folder, "03", "waits")

    def test_float4_halve_the_time_and_quicker_reductions_do_not(self, folder):
        took = times(folder)
        assert took["04"] < 0.6 * took["03"] and took["06"] < 0.6 * took["05"]
        assert 0.94 < took["05"] / took["03"] < 1 and 0.93 < took["06"] / took["04"] < 1
        assert took["06"] < took["01"] / 20

    def test_07_and_10_are_slower_than_where_they_start(self, folder):
        took = times(folder)
        assert took["07"] > 1.05 * took["06"] and took["10"] > 1.05 * took["09"]
        assert ratio(folder, "instructions", "07", "06") < 1
        assert 1 < ratio(folder, "duration", "10", "09") < 1.08

    def test_from_08_on(self, folder):
        took = times(folder)
        assert 0.92 < took["08"] / took["06"] < 1 and 0.88 < took["09"] / took["08"] < 0.96
        assert 0.85 < took["11"] / took["09"] < 0.95 and ratio(folder, "duration", "11", "09") < 1.03
        assert took["12"] == pytest.approx(took["11"], rel=0.03) and 0.9 < took["13"] / took["12"] < 0.98
        assert ratio(folder, "duration", "13", "12") > 1.05 and took["13"] == min(took.values())

    def test_a_barrier_of_words_takes_as_long_and_no_barrier_is_quicker_than_a_launch(self, folder):
        took = {row["kernel"]: float(row["microseconds"]) for row in rows(folder / "waits.csv")}
        one = (took["nine of them"] - took["one grid barrier of cooperative groups"]) / 8
        word = (took["nine of them, of words"] - took["one barrier of 64-bit words"]) / 8
        assert took["nothing"] < min(one, word) and word == pytest.approx(one, rel=0.15)
        assert took["nothing, dependent launch"] < took["nothing"] < took["nothing, cooperative launch"] - 0.2

    def test_warm_another_stage_is_the_fastest(self, folder):
        warm = {row["stage"][:2]: float(row["warm_microseconds"]) for row in rows(folder / "warm.csv")}
        assert warm["11"] < warm["13"] and {row["warm_verdict"] for row in rows(folder / "warm.csv")} == {""}


@pytest.mark.parametrize("ladder, copied", [("precision", 8 * 8192 * 8192), ("vector", 8 << 20)])
def test_the_copy_kernel_s_rate_is_that_of_its_own_bytes(ladder, copied):
    """Stages that move other bytes stand beside it: 16-bit elements, and a weight."""
    for gpu in results.stored_gpus(f"{ladder}/main.csv"):
        measured = timed.read(results.store() / gpu / ladder / results.MAIN, ladders.find(ladder))
        rate = timed.copy_rate(measured)[0]
        assert rate * float(measured[0]["copy_microseconds"]) * 1e3 == pytest.approx(copied, rel=0.005)


def test_the_counts_that_agree_are_those_that_the_vector_page_names():
    same = [stage.name[:2] for stage in ladders.find("vector").stages
            if all(cpu_device.agree(*both) for both in cpu_device.comparison(results.store() / "h200", stage).values())]
    assert same == ["03", "05"]
