"""What the precision ladder's page says: the limits of float16 sums, computed anew with NumPy's float16; the errors; what
the document's times mean in bytes; that two kernels that differ in the type of the sum ask memory for the same.

The tables are those that make analyze computed without a GPU and, where they are stored, those of a GPU.
"""

import re

import numpy
import pytest
from conftest import program, run
from ladder.core import ladders, results
from ladder.measure import cpu_device

LADDER = ladders.find("precision")
PAGE = (LADDER.folder / "README.md").read_text(encoding="utf-8")
FLOAT16_SUMS = {"03_f16_f16": 1, "04_f16x2_f16": 2, "05_f16x8_f16": 8, "07_f16x8_pack_f16": 8}  # elements per access
FLOAT32_SUMS = ["06_f16x8_f32", "08_f16x8_pack_f32", "09_f16_f32"]
POSITIVE = numpy.arange(1, 0x7C00, dtype=numpy.uint16).view(numpy.float16)  # ascending


def stored(name):
    """The rows of a table, of each device that has one."""
    paths = sorted(results.store().glob(f"*/{LADDER.id}/{name}.csv"))
    assert paths, f"{name}.csv is not stored: make analyze S=precision/all"
    return [pytest.param(results.read(path), id=path.parent.parent.name) for path in paths]


def each_device(name):
    return pytest.mark.parametrize("rows", stored(name))


def half(number):
    with numpy.errstate(over="ignore"):
        return numpy.float16(number)


def sum_of_squares(a, cols, width):
    """Of a row of `cols` times a, as the kernels add it up: every operation rounded to float16."""
    squares = numpy.float64(a) ** 2  # exact
    items = cols // width
    threads = min(1024, (-(-cols // width) + 31) // 32 * 32)
    with numpy.errstate(over="ignore"):
        # Threads with one item more come first; a pair's two halves are equal, and are joined after the last item.
        sums = numpy.zeros(threads, numpy.float16)
        for first in range(0, items, threads):
            busy = numpy.arange(threads) < items - first
            for _ in range(max(width // 2, 1)):
                sums = numpy.where(busy, half(squares + sums.astype(numpy.float64)), sums)
        if width > 1:
            sums = sums + sums
        rest = numpy.arange(threads) < cols - width * items
        sums = numpy.where(rest, half(squares + sums.astype(numpy.float64)), sums)
        warps = numpy.zeros(32, numpy.float16)
        warps[: threads // 32] = butterfly(sums.reshape(-1, 32))
        return butterfly(warps.reshape(1, 32))[0]


def butterfly(lanes):
    for mask in (16, 8, 4, 2, 1):
        lanes = lanes + lanes[:, numpy.arange(32) ^ mask]
    return lanes[:, 0]


def first_infinite(cols, width):
    """The smallest float16 number whose row has an infinite sum."""
    low, high = 0, len(POSITIVE)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if numpy.isinf(sum_of_squares(POSITIVE[middle], cols, width)) else (middle + 1, high)
    return float(POSITIVE[low])


@each_device("thresholds")
def test_a_float16_sum_overflows_where_it_should(rows):
    for row in rows:
        cols, from_formula = int(row["cols"]), (65520 / int(row["cols"])) ** 0.5
        assert float(row["root_of_65520_by_cols"]) == pytest.approx(from_formula, rel=1e-5)
        if row["stage"] in FLOAT16_SUMS:
            wanted = first_infinite(cols, FLOAT16_SUMS[row["stage"]])
            assert float(row["zero_from"]) == wanted, row
            assert wanted == pytest.approx(from_formula, rel=2**-9)  # "about"
        else:
            assert row["stage"] in FLOAT32_SUMS
            assert (row["zero_from"], row["infinite_up_to"], row["of_zeros"]) == ("none", "none", "0"), row


@each_device("thresholds")
def test_a_float16_factor_is_infinite_where_squares_and_eps_vanish(rows):
    assert half(1e-8) == 0 and half(2.0**-25) == 0 and half(1e-6) == 17 * 2.0**-24
    wanted = max(float(x) for x in POSITIVE if half(float(x) ** 2) == 0)
    assert wanted <= 2**-12.5 < float(numpy.nextafter(half(wanted), half(1)))
    for row in rows:
        if row["stage"] in FLOAT16_SUMS:
            assert float(row["infinite_up_to"]) == pytest.approx(wanted, rel=1e-8) and row["of_zeros"] == "NaN", row


@each_device("magnitude")
def test_growing_elements_overflow_float16_sums_first(rows):
    """From 16 on the sum of 1024 squares, and from 32768 on the largest elements themselves."""
    for row in rows:
        magnitude = float(row["magnitude"])
        for stage in FLOAT16_SUMS:
            assert row[stage] == "NaN" if magnitude >= 32768 else (row[stage] == "0") == (magnitude >= 16), row
        for stage in FLOAT32_SUMS:
            assert row[stage] == "NaN" if magnitude >= 32768 else float(row[stage]) < 2e-3, row
        assert max(float(row["01_f32"]), float(row["02_f32x4"])) < 1e-6
        assert max(float(row["10_bf16_bf16"]), float(row["11_bf16x8_pack_f32"])) < 0.03
    near_one = next(row for row in rows if float(row["magnitude"]) == 1)
    assert 6 < float(near_one["11_bf16x8_pack_f32"]) / float(near_one["08_f16x8_pack_f32"]) < 10
    small = [
        max(float(row["03_f16_f16"]) for row in rows if low <= float(row["magnitude"]) < high)
        for low, high in ((0, 2**-8), (2**-4, 8.5))
    ]
    assert small[0] > 4 * small[1]


@each_device("document")
def test_a_float32_sum_leaves_the_last_rounding_alone(rows):
    for row in rows:
        error, stage = float(row["error_in_last_places"]), row["stage"]
        if stage in FLOAT32_SUMS or stage == "11_bf16x8_pack_f32":
            assert error <= 0.51, row
        elif stage in FLOAT16_SUMS or stage == "10_bf16_bf16":
            assert 1 < error < 3, row
    of = {(row["stage"], row["cols"]): row for row in rows}
    float16, float32 = of["03_f16_f16", "4096"], of["09_f16_f32", "4096"]
    assert [float16[place] == float32[place] for place in ("first", "second", "third")] == 3 * [True]
    assert float(float16["error_in_last_places"]) > 2 * float(float32["error_in_last_places"])
    assert {row["cols"] for row in rows} == {"512", "1024", "2048", "4096", "8192"}


PAIRS = [("03_f16_f16", "09_f16_f32"), ("05_f16x8_f16", "06_f16x8_f32"), ("07_f16x8_pack_f16", "08_f16x8_pack_f32")]


@pytest.mark.parametrize("pair", PAIRS)
def test_the_type_of_the_sum_changes_no_access(pair):
    counted = [cpu_device.counted(cpu_device.path_of(LADDER.stage(name)), LADDER.analyze) for name in pair]
    assert counted[0] == counted[1]


def test_what_the_document_s_times_mean_in_bytes():
    """bytes / time, and the growth of the time where the data stops fitting into L2."""
    found = re.findall(r"^\| (\d+) × (\d+) \| ([\d,]+) \| ([\d.]+) \| (\d+) \| [\d.]+ \|$", PAGE, re.M)
    assert len(found) == 6
    times = []
    for rows, cols, moved, milliseconds, rate in found:
        assert int(moved.replace(",", "")) == 2 * 2 * int(rows) * int(cols)
        assert int(rate) == round(4 * int(rows) * int(cols) / float(milliseconds) / 1e6)
        times.append(float(milliseconds))
    assert round(times[4] / times[3], 1) == 10.8


@pytest.mark.full
@pytest.mark.builds(LADDER.path)
@pytest.mark.parametrize(
    "stage, cols, said", [("03", 65505, "no number above 65504"), ("10", 65537, "hold apart"), ("09", 65537, "PASS")]
)
def test_what_a_sum_cannot_hold_is_refused_with_a_reason(stage, cols, said):
    given = ["--stage", stage, "--rows", 1, "--cols", cols, "--no-small", "--no-timing", "--experiment", 1]
    result = run(program(LADDER.path), *given)
    assert said in result.stdout + result.stderr and result.returncode == (0 if said == "PASS" else 2)
