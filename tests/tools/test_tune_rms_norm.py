"""make tune: the choice of the header's kernels, on invented times, and every candidate's check on the CPU device."""

import csv
import math
import random
import re
import shutil
import statistics

import pytest
from conftest import BUILD, CLANG_FORMAT, ROOT, program, run
from fakes import Machine, executable, refused
from ladder import __main__ as command_line
from ladder.core import results
from test_header import build, summary
from tuner import linked, measures, shorten_contests

from bench.tune import policies
from bench.tune.policy_tables import loss, measured, ratios, said
from bench.tune.rms_norm import policy as tune

PROGRAM = program("bench/tune/rms_norm")
builds = pytest.mark.builds("bench/tune/rms_norm")
POLICIES = "include/rms_norm/policies"
POLICY = f"{POLICIES}/fake_9000.cuh"
STORED = "profiling_results/fake-9000/header"
LARGE = [4096, 32768, 131072, 524288]
SIZES = {"forward": [64, 512, *LARGE], "fused_add_rms_norm": [128, 1024, *LARGE]}

# Stands in for the program: what it would have measured is in FAKE_TUNE_CSV.
PROGRAM_FAKE = """\
#!/bin/bash
[ "$1" = --csv ] || exit 2
[ -z "$FAKE_TUNE_FAILS" ] || { echo "forward of 2 x 256: 7 of 512 elements of y are wrong" >&2; exit 1; }
cp "$FAKE_TUNE_CSV" "$2"
"""

A = dict(vectors=1, block=256, parts=1, access="strided", reads="first", kernel_threads=256)
A_LAST = {**A, "reads": "last"}
B = dict(vectors=2, block=128, parts=1, access="strided", reads="first", kernel_threads=256)
B_WIDER = {**B, "block": 256}  # the same kernel
WIDE = dict(vectors=2, block=512, parts=1, access="strided", reads="last", kernel_threads=1024)
CLUSTER = dict(vectors=4, block=256, parts=4, access="strided", reads="first", kernel_threads=256)
FLAT = dict(vectors=1, block=128, parts=1, access="contiguous", reads="last", kernel_threads=128)
FLATTER = {**FLAT, "vectors": 2}
FLAT_WIDE = {**FLAT, "block": 256, "kernel_threads": 256}
NAMES = ("A", "A_LAST", "B", "B_WIDER", "WIDE", "CLUSTER", "FLAT", "FLATTER", "FLAT_WIDE")


SOURCE = (ROOT / "bench/tune/rms_norm/measurements.cpp").read_text(encoding="utf-8")
HEADER = [*tune.COLUMNS, "reason", "copies"]  # what is read of the CSV


def row(shape, microseconds, packs=64, kilobytes=512, operator="forward", **values):
    rows = max(1, kilobytes * 1024 // (packs * 8 * (4 if operator == "forward" else 8)))
    known = dict(operator=operator, rows=rows, cols=packs * 8, packs=packs, kilobytes=kilobytes, role="candidate")
    known.update(launch="plain", verdict="ok" if microseconds else "refused", microseconds=microseconds or "", **shape)
    known.update(device="NVIDIA Fake 9000", multiprocessors=99, runtime=13000, date="2026-01-31")
    return {name: str({**dict.fromkeys(HEADER, ""), **known, **values}[name]) for name in HEADER}


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    results.write_csv(path, HEADER, [list(row.values()) for row in rows])
    return path


def listed():
    """{(operator, packs): shapes} of every candidate that the program has."""
    lines = run(PROGRAM, "--list").stdout.splitlines()
    names, found = lines[0].split(), {}
    for line in csv.DictReader([" ".join(text.split()) for text in lines[1:]], fieldnames=names, delimiter=" "):
        shape = {name: line[name] for name in tune.Shape._fields}
        found.setdefault((line["operator"], int(line["packs"])), []).append(shape)
    return found


def measurement(candidates):
    """A whole measurement: every candidate in every cell, times by chance. candidates: {(operator, packs): shapes}."""
    chance, rows = random.Random(5), []
    for (operator, packs), shapes in candidates.items():
        for size in SIZES[operator]:
            for shape in shapes:
                if shape["access"] == "contiguous" and size > LARGE[1]:
                    continue
                rows.append(row(shape, f"{chance.uniform(1, 1.3):.3f}", packs, size, operator))
                if size <= LARGE[1]:
                    time = f"{chance.uniform(0.8, 1.2):.3f}"
                    rows.append(row(shape, time, packs, size, operator, launch="dependent"))
            for launch, time in (("plain", 1.0), ("dependent", 0.9 if size < 100000 else 1.1)):
                rows.append(row(shapes[-1], time, packs, size, operator, role="winner", launch=launch))
    return rows


@pytest.fixture(scope="module")
def invented():
    """With as many candidates as the table takes to look like the real one."""
    short, long = [FLAT, A, A_LAST, B, WIDE], [FLAT, A, A_LAST, B, WIDE, CLUSTER]
    shapes = {packs: long if packs >= 1024 else short for packs in (16, 64, 256, 1024, 4096, 8192)}
    return measurement({(operator, packs): shapes[packs] for operator in SIZES for packs in shapes})


def operator_of(rows):
    return tune.Operator(
        [{**r, **{n: int(r[n]) for n in tune.NUMBERS}, "microseconds": float(r["microseconds"])} for r in rows],
        "forward",
    )


def shapes_of(lines):
    """[(packs, limit, name of the shape)]"""
    names = {tune.Shape(**globals()[name]): name for name in NAMES}
    return [(line.packs, line.limit, names[line.shape]) for line in lines]


# The choice.


def test_the_fastest_is_chosen():
    operator = operator_of([row(A, 2.0), row(B, 1.5), row(WIDE, 1.9)])
    (line,) = tune.table(operator)
    assert (line.shape.vectors, line.limit) == (2, tune.ANY_SIZE)
    assert line.comment == "1.50 us at 256 x 512, next 1.90"


def test_of_equals_the_simpler_one_is_chosen():
    assert shapes_of(tune.table(operator_of([row(A, 1.000), row(B, 1.009)]))) == [(64, tune.ANY_SIZE, "B")]
    assert shapes_of(tune.table(operator_of([row(A, 1.000), row(B, 1.011)]))) == [(64, tune.ANY_SIZE, "A")]
    cluster = operator_of([row(WIDE, 1.009), row(CLUSTER, 1.000)])
    assert shapes_of(tune.table(cluster)) == [(64, tune.ANY_SIZE, "WIDE")]
    (line,) = tune.table(cluster)
    assert line.comment.endswith("fastest 1.00")


def test_a_neighbour_s_shape_is_kept_within_a_percent_and_given_up_beyond():
    def sizes(time):
        return operator_of([row(A, 1.0), row(B, 2.0), row(A, time, kilobytes=4096), row(B, 1.0, kilobytes=4096)])

    assert shapes_of(tune.table(sizes(1.009))) == [(64, tune.ANY_SIZE, "A")]
    assert shapes_of(tune.table(sizes(1.011))) == [(64, 1448, "A"), (64, tune.ANY_SIZE, "B")]

    lengths = operator_of([row(A, 1.0), row(B, 2.0), row(A, 1.009, packs=256), row(B, 1.0, packs=256)])
    assert shapes_of(tune.table(lengths)) == [(256, tune.ANY_SIZE, "A")]


def test_the_smaller_size_counts_more_than_the_shorter_row():
    rows = [row(A, 1.0), row(B, 2.0), row(A, 2.0, packs=256), row(B, 1.0, packs=256)]  # at 512 KB: A, then B
    rows += [row(A, 1.0, kilobytes=4096), row(B, 2.0, kilobytes=4096)]
    rows += [row(A, 1.0, packs=256, kilobytes=4096), row(B, 1.009, packs=256, kilobytes=4096)]
    assert shapes_of(tune.table(operator_of(rows))) == [(64, tune.ANY_SIZE, "A"), (256, tune.ANY_SIZE, "B")]


def test_kernels_of_one_shape_for_other_lengths_of_rows_are_not_merged():
    """A row of 64 packs may be a warp's, where a longer one of the same shape is a block's: two kernels."""
    rows = [row({**B, "kernel_threads": 32}, 1.0), row(B, 1.0, packs=256)]
    assert [line.packs for line in tune.table(operator_of(rows))] == [64, 256]


def test_contiguous_rows_and_clusters_are_followed_by_a_shape_for_everyone():
    large = {"kilobytes": 131072}
    rows = [row(FLAT, 1.0, **large), row(CLUSTER, 1.1, **large), row(A, 1.3, **large), row(B, 1.2, **large)]
    assert [name for _, _, name in shapes_of(tune.table(operator_of(rows)))] == ["FLAT", "CLUSTER", "B"]
    rows = [row(CLUSTER, 1.0, **large), row(FLAT, 1.1, **large), row(A, 1.2, **large)]
    assert [name for _, _, name in shapes_of(tune.table(operator_of(rows)))] == ["CLUSTER", "FLAT", "A"]


def test_of_shapes_that_differ_in_reads_the_one_that_keeps_them_is_chosen():
    """Unless it is more than a percent slower, and whichever the neighbour has: both are one kernel."""

    def sizes(time):
        rows = [row(A, 1.000), row(A_LAST, time), row(B, 1.5)]
        return rows + [row(A, 1.000, kilobytes=4096), row(A_LAST, 0.999, kilobytes=4096), row(B, 2, kilobytes=4096)]

    assert shapes_of(tune.table(operator_of(sizes(0.999)))) == [(64, tune.ANY_SIZE, "A_LAST")]
    assert shapes_of(tune.table(operator_of(sizes(1.009)))) == [(64, tune.ANY_SIZE, "A_LAST")]
    slower = operator_of(sizes(1.011))
    assert shapes_of(tune.table(slower)) == [(64, 1448, "A"), (64, tune.ANY_SIZE, "A_LAST")]
    assert tune.table(slower)[0].comment == "1.00 us at 256 x 512, next 1.01"


@pytest.mark.parametrize("slower, chosen", [(1.009, "WIDE"), (1.011, "A")])
def test_above_128_mb_reads_that_are_kept_are_chosen_within_a_percent(slower, chosen):
    rows = [row(A, 1.0, kilobytes=524288), row(WIDE, slower, kilobytes=524288)]
    assert shapes_of(tune.table(operator_of(rows))) == [(64, tune.ANY_SIZE, chosen)]


def test_a_neighbour_s_kernel_is_kept_whatever_its_reads_and_block():
    rows = [row(A, 1.0), row(B, 2.0)]
    rows += [row(A_LAST, 1.009, kilobytes=4096), row(B, 1.0, kilobytes=4096)]
    assert shapes_of(tune.table(operator_of(rows))) == [(64, 1448, "A"), (64, tune.ANY_SIZE, "A_LAST")]

    rows = [row(B, 1.0), row(A, 2.0)]
    rows += [row(B_WIDER, 1.005, kilobytes=4096), row(WIDE, 1.0, kilobytes=4096), row(A, 1.0, kilobytes=4096)]
    assert shapes_of(tune.table(operator_of(rows))) == [(64, 1448, "B"), (64, tune.ANY_SIZE, "B_WIDER")]
    # The neighbour's block too, if it is as good.
    rows += [row(B, 1.009, kilobytes=4096)]
    assert shapes_of(tune.table(operator_of(rows))) == [(64, tune.ANY_SIZE, "B")]


@pytest.mark.parametrize("kilobytes, chosen", [(64, "FLAT"), (32768, "FLAT"), (131072, "FLAT"), (131073, "B")])
def test_up_to_128_mb_a_contiguous_shape_is_chosen_within_a_percent(kilobytes, chosen):
    def first(contiguous, *more):
        rows = [row(FLAT, contiguous, kilobytes=kilobytes), row(B, 1.000, kilobytes=kilobytes), *more]
        operator = operator_of(rows + [row(A, 1.0, kilobytes=524288)])
        return shapes_of(tune.table(operator))[0][2]

    assert first(1.009) == chosen
    assert first(1.011) == "B"
    # Of several, the one whose kernel is there already, as always.
    operator = operator_of(
        [row(FLAT_WIDE, 1.0), row(FLAT_WIDE, 1.009, kilobytes=4096), row(FLAT, 1.0, kilobytes=4096)]
        + [row(A, 1.0, kilobytes=size) for size in (4096, 524288)]
    )
    assert shapes_of(tune.table(operator)) == [(64, 46340, "FLAT_WIDE"), (64, tune.ANY_SIZE, "A")]


@pytest.mark.parametrize(
    "kilobytes, slower, chosen",
    [
        (511, 1.019, "FLATTER"),
        (512, 1.019, "FLAT"),
        (4096, 1.019, "FLAT"),
        (4096, 1.021, "FLATTER"),
        (4097, 1.019, "FLATTER"),
    ],
)
def test_from_512_kb_to_4_mb_the_shortest_contiguous_program_is_chosen_within_two_percent(kilobytes, slower, chosen):
    rows = [
        row(FLATTER, 1.0, kilobytes=kilobytes),
        row(FLAT, slower, kilobytes=kilobytes),
        row(A, 1.0, kilobytes=524288),
    ]
    assert shapes_of(tune.table(operator_of(rows)))[0][2] == chosen
    # Not with larger blocks, and not where a shape of another access is more than a percent faster than each of them.
    assert shapes_of(tune.table(operator_of([*rows, row(B, 0.985, kilobytes=kilobytes)])))[0][2] == "B"
    large = row({**FLAT, "block": 512, "kernel_threads": 512}, 1.0, kilobytes=kilobytes)
    lines = tune.table(operator_of([rows[0], large, rows[2]]))
    assert (lines[0].shape.vectors, lines[0].shape.block) == (2, 128)


@pytest.mark.parametrize("kilobytes, chosen", [(65536, "FLATTER"), (65537, "FLAT")])
def test_above_64_mb_the_packs_of_a_contiguous_shape_make_no_difference(kilobytes, chosen):
    """Up to there the most packs are chosen, and above it the kernel that the next smaller problem has."""
    rows = [row(FLAT, 1.0, kilobytes=512), row(FLATTER, 1.1, kilobytes=512), row(A, 1.0, kilobytes=524288)]
    rows += [row(FLATTER, 1.0, kilobytes=kilobytes), row(FLAT, 1.019, kilobytes=kilobytes)]
    assert [name for _, _, name in shapes_of(tune.table(operator_of(rows)))][-2] == chosen


def test_a_contiguous_shape_goes_before_a_neighbour_s():
    rows = [row(A, 1.0), row(FLAT, 2.0), row(A, 1.0, kilobytes=4096), row(FLAT, 1.009, kilobytes=4096)]
    rows += [row(A, 1.0, kilobytes=131072)]
    assert [name for _, _, name in shapes_of(tune.table(operator_of(rows)))] == ["A", "FLAT", "A"]


def test_the_mean_of_plain_and_dependent_launches_counts_where_both_were_measured():
    both = [row(A, 1.0), row(A, 1.0, launch="dependent"), row(B, 1.2), row(B, 0.6, launch="dependent"), row(WIDE, 0.1)]
    (line,) = tune.table(operator_of(both))
    assert line.shape.vectors == 2 and line.comment == "0.90 us at 256 x 512, next 1.00"
    (line,) = tune.table(operator_of([each for each in both if each["launch"] == "plain"]))
    assert line.shape.block == 512 and line.comment == "0.10 us at 256 x 512, next 1.00"


def test_shapes_of_one_kernel():
    """The reads are an argument of a kernel, and so is the block, as far as kernel_threads does not follow it."""
    known = [tune.Shape(**shape) for shape in (A, A_LAST, B, B_WIDER, FLAT, FLATTER)]
    assert [len({of(shape) for shape in known}) for of in (tune.kernel, tune.launch_of)] == [4, 5]


def test_neighbours_of_one_shape_are_one_line():
    """With and without clusters; the time is that of the largest problem with the longest rows."""
    rows = []
    for time, size in enumerate(SIZES["forward"], start=1):
        for packs in (4096, 8192):
            rows += [row(CLUSTER, time, packs, size), row(WIDE, 1.5 * time, packs, size)]
    lines = tune.table(operator_of(rows))
    assert shapes_of(lines) == [(8192, tune.ANY_SIZE, "CLUSTER"), (8192, tune.ANY_SIZE, "WIDE")]
    assert lines[1].comment == "9.00 us at 2048 x 65536, fastest 6.00"


def test_what_was_refused_is_never_chosen(tmp_path):
    path = write(tmp_path / "tune.csv", [row(A, 2.0), row(CLUSTER, None, reason="no clusters")])
    assert shapes_of(tune.table(tune.Operator(tune.read(path), "forward"))) == [(64, tune.ANY_SIZE, "A")]


def test_a_cell_without_a_kernel_for_everyone_is_an_error():
    with pytest.raises(results.Unusable, match="no candidate for every GPU"):
        tune.table(operator_of([row(FLAT, 1.0)]))
    with pytest.raises(results.Unusable, match="64 packs and 4096 KB"):
        tune.table(operator_of([row(A, 1.0), row(A, 1.0, packs=256, kilobytes=4096)]))
    with pytest.raises(results.Unusable, match="no time of forward"):
        tune.table(operator_of([row(A, 1.0, operator="fused_add_rms_norm")]))


def test_the_short_table_chooses_what_the_long_one_does(tmp_path, invented):
    """For whoever cannot have a cell's first shape, that one or another that is about as fast."""
    rows = tune.read(write(tmp_path / "tune.csv", invented))
    for name in SIZES:
        operator = tune.Operator(rows, name)
        long, short = tune.all_lines(operator), tune.table(operator)
        assert len(short) < sum(len(lines) for lines in long.values())
        for (packs, size), lines in long.items():
            for other in ((0, 0), (0, 1), (1, 0), (1, 1)):
                wanted = tune.taken(lines, packs, 0, *other)
                good = {wanted}
                if not tune.is_possible(lines[0].shape, *other):
                    good |= {timed.shape for timed in tune.as_good(operator.plain[packs, size], *other)}
                assert tune.taken(short, packs, operator.limit(size), *other) in good


def test_whoever_cannot_have_a_shape_gets_one_that_is_about_as_fast():
    """By the times of plain launches, and of a kernel that is there already, if one is as fast."""

    def others(cluster, strided, first=FLAT):
        rows = [row(first, 1.0), row(CLUSTER, cluster), row(A, strided), row(B, 2.0)]
        rows += [row(B, 1.0, kilobytes=524288), row(A, 1.5, kilobytes=524288)]
        return [name for _, _, name in shapes_of(tune.table(operator_of(rows)))]

    assert others(cluster=1.5, strided=1.2) == ["FLAT", "A", "B"]
    assert others(cluster=1.2, strided=1.5) == ["FLAT", "CLUSTER", "A", "B"]
    assert others(cluster=3.0, strided=1.95) == ["FLAT", "B"]
    assert others(cluster=3.0, strided=1.93) == ["FLAT", "A", "B"]


@pytest.mark.parametrize(
    "ratios, limit",
    [
        ([0.9, 0.9, 0.95, 0.99, 0.995, 1.0], math.inf),
        ([0.9, 0.9, 0.95, 1.01, 0.9, 0.9], 11585),  # what is won beyond a loss does not count
        ([1.1, 0.9, 0.9, 0.9, 0.9, 0.9], 0),
        ([0.9, 0.9, 1.001, 1.0, 1.0, 1.0], 1448),
    ],
)
def test_dependent_launches_up_to_where_they_pay(tmp_path, ratios, limit):
    rows = []
    for operator, sizes in SIZES.items():
        for ratio, size in zip(ratios, sizes):
            for packs in (64, 256):
                rows.append(row(A, 1.0, packs, size, operator))
                factor = 1.1 if packs == 64 else 1 / 1.1  # of which the geometric mean is 1
                rows.append(row(A, 2.0, packs, size, operator, role="winner"))
                rows.append(row(A, 2.0 * ratio * factor, packs, size, operator, role="winner", launch="dependent"))
    rows = tune.read(write(tmp_path / "tune.csv", rows))
    assert tune.dependent_limit(rows, {name: tune.Operator(rows, name) for name in SIZES})[0] == limit


def test_without_dependent_launches_there_is_no_limit_and_the_table_says_why(tmp_path, invented):
    path = write(tmp_path / STORED / "tune.csv", [line for line in invented if line["launch"] == "plain"])
    text = tune.policy(tune.read(path), path)
    assert "static constexpr int kDependentKilobytes = 0;" in text and "compute capability 9.0" in text
    assert "the mean of" not in text


# The policies of this tree.


@pytest.mark.parametrize("gpu", ["h100", "h200"])
def test_without_clusters_a_policy_is_almost_as_good_as_one_that_is_made_without_them(gpu):
    own = measured(gpu, clusters=False)
    found = [*ratios(measured(gpu), own, clusters=False, layouts=(True, False))]
    assert len(found) == 264
    assert statistics.geometric_mean(found) < 1.003
    assert sum(ratio > 1.03 for ratio in found) <= 6 and max(found) < 1.08


@pytest.mark.parametrize("gpu, other, mean, most", [("h100", "h200", 1.003, 1.09), ("h200", "h100", 1.014, 1.23)])
def test_the_policy_of_the_other_gpu_is_slower(gpu, other, mean, most):
    """On average by so much, and in the worst cell by so much: hence the default is chosen by the GPU."""
    found = [*ratios(measured(other), measured(gpu))]
    assert mean - 0.002 < statistics.geometric_mean(found) < mean and most - 0.01 < max(found) < most
    assert loss(measured(other), measured(gpu)) == found
    assert said(found) == f"{statistics.geometric_mean(found):.3f}, up to {max(found):.2f}"
    assert loss(measured(other), measured(gpu, clusters=False))  # as of a GPU without clusters


# The job.


@pytest.fixture
def machine(tmp_path, invented):
    machine = Machine(tmp_path)
    shutil.copytree(ROOT / "include", machine.root / "include")
    shutil.rmtree(machine.root / "include/q4_gemm/policies")  # they name their measurement, which is not there
    executable(machine.root / "build/cuda/bench/tune/rms_norm/tune", PROGRAM_FAKE)
    write(tmp_path / "invented.csv", invented)
    return machine


def start(machine, *arguments, how=Machine.run, **environment):
    measured = str(machine.root.parent / "invented.csv")
    return how(machine, "tune", *arguments, **{"FAKE_TUNE_CSV": measured, **environment})


def policy_of(machine):
    return (machine.root / POLICY).read_text(encoding="utf-8")


def test_measures_stores_and_writes_a_policy(machine):
    others = {path: path.read_text() for path in (machine.root / "include").rglob("*.*")}
    result = start(machine)
    assert result.returncode == 0, result.stderr
    assert machine.files() == ["fake-9000/header/tune.csv", "fake-9000/header/tune_environment.txt"]
    assert "GPU: NVIDIA Fake 9000" in (machine.root / STORED / "tune_environment.txt").read_text().splitlines()
    for words in ("#include <rms_norm/policies/fake_9000.cuh>", "rms_norm::forward<rms_norm::policies::Fake9000>("):
        assert words in result.stdout
    assert {path: path.read_text() for path in others} == others
    assert sorted((machine.root / "include").rglob("*.*")) == sorted([*others, machine.root / POLICY])

    text = policy_of(machine)
    for words in (
        "NVIDIA Fake 9000, CUDA 13.0, 2026-01-31",
        f"{STORED}/tune.csv",
        "struct Fake9000 {\n",
        "  static constexpr Shape kForward[] = {\n",
        "  static constexpr Shape kFusedAdd[] = {\n",
        "  static constexpr int kDependentKilobytes = 65536;\n",
        "  static constexpr int kMultiprocessors = 99;\n",
    ):
        assert words in text, text
    said = " ".join(text.split("\n  // "))
    assert "0.900 at 512/1024 KB, 0.900 at 4096 KB, 0.900 at 32768 KB, 1.100 at 131072 KB." in said
    assert "Up to 32768 KB a time is the mean of a plain and a dependent launch; of a second" in said
    lines = re.findall(r"^      \{.*", text, re.MULTILINE)
    entry = r"      \{\d+, (\d+|kAnySize), \d, \d+, \d, Access::(contiguous|strided), Eviction::(first|last)\},"
    remark = r"// \d\.\d\d us at \d+ x \d+, (next|fastest) \d\.\d\d"
    assert len(lines) > 20 and all(re.fullmatch(f"{entry} +{remark}", line) for line in lines), text

    again = start(machine)  # what is known is not explained
    assert again.returncode == 0 and "#include" not in again.stdout and policy_of(machine) == text


def test_the_policy_is_as_clang_format_leaves_it(machine):
    start(machine)
    shutil.copy(ROOT / ".clang-format", machine.root)
    formatted = run(CLANG_FORMAT, machine.root / POLICY, cwd=machine.root)
    assert formatted.stdout == policy_of(machine)


@pytest.mark.parametrize(
    "gpu, name, struct",
    [
        ("h200", "h200", "H200"),
        ("geforce-rtx-4090", "rtx_4090", "Rtx4090"),
        ("a100-sxm4-80gb", "a100_sxm4_80gb", "A100Sxm480gb"),
    ],
)
def test_names_of_a_policy(gpu, name, struct):
    assert policies.names(gpu, POLICIES) == (f"{POLICIES}/{name}.cuh", struct)


def test_check(machine):
    shutil.rmtree(machine.root / POLICIES)
    hand_made = "// Made by hand.\n"
    (machine.root / POLICIES).mkdir()
    (machine.root / POLICIES / "mine.cuh").write_text(hand_made, encoding="utf-8")
    result = start(machine, "--check")
    assert result.returncode == 0 and "no measurement is stored" in result.stdout
    start(machine)
    assert start(machine, "--check").returncode == 0
    text = policy_of(machine)
    for stale in (hand_made, text.replace("kDependentKilobytes = 65536", "kDependentKilobytes = 65537")):
        (machine.root / POLICY).write_text(stale, encoding="utf-8")
        result = start(machine, "--check")
        assert result.returncode == 1 and "make tune GPU=fake-9000" in result.stderr
        assert policy_of(machine) == stale

    # Every stored measurement has its policy, and every policy that names its measurement has that one.
    (machine.root / POLICY).write_text(text, encoding="utf-8")
    other = machine.root / "profiling_results/geforce-rtx-4090/header"
    shutil.copytree(machine.root / STORED, other)
    result = start(machine, "--check")
    assert result.returncode == 1 and f"{POLICIES}/rtx_4090.cuh cannot be read" in result.stderr
    assert start(machine, "--check", "--gpu", "fake-9000").returncode == 0
    assert start(machine, "--gpu", "geforce-rtx-4090").returncode == 0
    result = start(machine, "--check")
    assert result.returncode == 0 and result.stdout.count(" is what ") == 2
    assert "struct Rtx4090 {" in (machine.root / POLICIES / "rtx_4090.cuh").read_text(encoding="utf-8")
    shutil.rmtree(machine.root / STORED)
    result = start(machine, "--check")
    assert result.returncode == 1 and f"{STORED}/tune.csv cannot be read" in result.stderr


def test_the_policies_of_this_tree_are_what_is_stored(capsys):
    assert command_line.main(["tune", "--check"]) == 0, capsys.readouterr().err
    assert f"{POLICIES}/h200.cuh is what profiling_results/h200/header/tune.csv gives" in capsys.readouterr().out


def test_without_a_gpu_it_says_what_can_be_done(machine):
    executable(machine.bin / "nvidia-smi", "#!/bin/bash\nexit 9\n")
    result = start(machine)
    assert result.returncode == 0 and "no GPU here" in result.stdout and "make tune GPU=h200" in result.stdout
    assert machine.files() == [] and not (machine.root / POLICY).exists()


@pytest.mark.parametrize(
    "environment, words",
    [
        ({"FAKE_TUNE_FAILS": "1"}, ["7 of 512 elements", "exit code 1", "nothing was stored"]),
        ({"FAKE_BUILD_FAILS": "1"}, ["no nvcc", "the build failed"]),
        ({"FAKE_TUNE_CSV": "/dev/null"}, ["lacks the column"]),
    ],
)
def test_a_failure_leaves_policy_and_results_as_they_were(machine, environment, words):
    before = machine.write(POLICY, "// as before\n").read_text(encoding="utf-8")
    refused(start(machine, how=Machine.start, **environment), *words)
    assert machine.files() == [] and policy_of(machine) == before


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--gpu", "none-such"], ["h200"]])
def test_bad_command_lines_of_the_job(machine, arguments):
    result = start(machine, *arguments)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    assert "none-such" not in arguments or "there is: none" in result.stderr


# The program.


@pytest.mark.full
@builds
def test_every_candidate_is_right_on_the_cpu_device():
    result = run(PROGRAM)
    assert result.returncode == 0, result.stdout + result.stderr
    count = sum(len(shapes) for shapes in listed().values())
    assert count > 400 and f"{count} candidates PASS, {2 * count} launches, 0 refused" in result.stdout
    assert "make tune measures on a GPU only" in result.stdout


@pytest.mark.full
@builds
@pytest.mark.parametrize("operator", SIZES)
@pytest.mark.parametrize("packs", [16, 32, 64, 128, 256, 512, 640, 1024, 2048, 4096, 8192])
def test_every_length_has_candidates_of_each_kind_once(operator, packs):
    shapes = listed()[operator, packs]
    assert len({tuple(shape.values()) for shape in shapes}) == len(shapes)
    kinds = {(shape["access"], shape["reads"]) for shape in shapes if shape["parts"] == "1"}
    assert kinds == {("contiguous", "last"), ("strided", "first"), ("strided", "last")}
    reads = {"contiguous": 1, "strided": 2}
    launches = [tune.launch_of(tune.Shape(**shape)) for shape in shapes]
    assert all(launches.count(launch) == reads[launch.access] for launch in launches)
    assert any(shape["parts"] != "1" for shape in shapes) == (packs >= 1024)


@pytest.mark.full
@builds
@pytest.mark.parametrize(
    "arguments", [["--nonsense"], ["--samples", "0"], ["--csv", "/dev/null/x.csv"], ["--csv", "x.csv"], ["5"]]
)
def test_bad_command_lines_of_the_program(arguments):
    result = run(PROGRAM, *arguments)
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1, result.stderr


@pytest.mark.full
@builds
class TestMeasuring:
    """The way that only a GPU goes, on the CPU device: its times mean nothing."""

    @pytest.fixture(scope="class")
    def program(self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("measuring")
        (folder / "main.cpp").write_text(measures("problems", l2_bytes="7e4"), encoding="utf-8")
        smaller, changed = re.subn(r"(kSizes\[2\])\[6\] = .*?;", r"\1[2] = {{128, 256}, {256, 512}};", SOURCE)
        smaller, limits = re.subn(r"(kMost(?:Contiguous|Dependent)) = \d+", r"\1 = 300", smaller)
        assert (changed, limits) == (1, 2), "measurements.cpp is written otherwise: adapt the patterns"
        shorten_contests(folder)
        (folder / "measurements.cpp").write_text(smaller, encoding="utf-8")
        objects = [BUILD / f"bench/tune/rms_norm/{name}.cu.o" for name in ("add_contiguous", "forward_strided")]
        return linked(folder, "main.cpp", "measurements.cpp", *objects)

    @pytest.mark.parametrize("capability", [90, 80])
    def test_every_candidate_of_every_cell_is_in_the_csv(self, program, capability):
        result = run(program, capability, 0)
        assert result.returncode == 0, result.stdout + result.stderr
        lines, _, table = result.stdout.partition("\n\n")
        rows = list(csv.DictReader(table.strip().splitlines()))
        assert rows[0].keys() >= {*HEADER}

        shapes = listed()

        def known(operator, access):
            return [s for (op, _), all_of in shapes.items() if op == operator for s in all_of if s["access"] == access]

        strided, contiguous = known("forward", "strided"), known("fused_add_rms_norm", "contiguous")
        candidates = [row for row in rows if row["role"] == "candidate" and row["launch"] == "plain"]
        assert len(candidates) == 2 * len(strided) + len(contiguous)
        clusters = [row for row in candidates if row["parts"] != "1"]
        assert len(clusters) == 2 * len([shape for shape in strided if shape["parts"] != "1"]) > 0
        for row in candidates:
            refused = capability < 90 and row["parts"] != "1"
            assert row["verdict"] == ("refused" if refused else "ok") and bool(row["microseconds"]) != refused
            assert ("compute capability 9.0" in row["reason"]) == refused
            if not refused:
                assert int(row["copies"]) >= 2 and float(row["microseconds"]) > 0

        def cell(row):
            return row["operator"], row["packs"], row["kilobytes"]

        def launch(row):
            return cell(row), tuple(row[name] for name in tune.Shape._fields)

        cells, near = {}, re.search(r"kNearTheFastest = ([\d.]+);", SOURCE).group(1)
        for row in candidates:
            cells.setdefault(cell(row), {})[launch(row)] = float(row["microseconds"] or "inf")
        assert len(lines.splitlines()) == len(cells)

        # In small problems, the dependent launches of those that are not much slower than the fastest are measured too.
        dependent = {}
        for row in rows:
            if row["role"] == "candidate" and row["launch"] == "dependent":
                dependent[launch(row)] = float(row["microseconds"])
        limits = {c: float(near) * min(times.values()) for c, times in cells.items()}
        is_small = {c: int(c[2]) <= 300 and capability >= 90 for c in cells}
        wanted = [one for c, times in cells.items() for one in times if is_small[c] and times[one] <= limits[c]]
        assert sorted(dependent) == sorted(wanted) and bool(wanted) == (capability >= 90)

        # The winner has the shortest time; in a small problem, the shortest mean of both launches.
        winners = [row for row in rows if row["role"] == "winner"]
        ways = ["dependent", "plain"] if capability >= 90 else []
        launched = [(*cell(row), row["launch"]) for row in winners]
        assert sorted(launched) == sorted((*c, way) for c in cells for way in ways)
        for row in winners:
            times = cells[cell(row)]
            if is_small[cell(row)]:
                times = {one: times[one] + dependent[one] for one in times if one in dependent}
            assert times[launch(row)] <= min(times.values()) + 0.002  # as the CSV rounds

    def test_a_time_that_cannot_be_is_an_error(self, program):
        result = run(program, 90, "1e3")  # a datasheet of 1000 bytes a second
        assert result.returncode == 1 and "measurement error: " in result.stderr, result.stderr


@pytest.mark.full
@builds
@pytest.mark.parametrize(
    "instance, pattern, replacement, complaint",
    [
        ("forward_contiguous", r"; i < packs\)", "; i < packs - 1)", "never written"),
        ("forward_contiguous", r"\by = p\.y \+ ", "y = p.y + p.cols + ", "wrote outside its y"),
        ("add_contiguous", r"\(x_pack, residual_pack\)", "(x_pack, x_pack)", "residual_out: "),
    ],
)
def test_a_wrong_candidate_ends_the_program(tmp_path, instance, pattern, replacement, complaint):
    copy = shutil.copytree(ROOT / "include", tmp_path / "include")
    kernels = copy / "rms_norm/kernels.cuh"
    text, changed = re.subn(pattern, replacement, kernels.read_text(encoding="utf-8"))
    assert changed, f"kernels.cuh has no {pattern} any more: change what is replaced"
    kernels.write_text(text, encoding="utf-8")
    objects = [BUILD / f"bench/tune/rms_norm/{name}.o" for name in ("main.cpp", "measurements.cpp")]
    result = run(linked(tmp_path, ROOT / f"bench/tune/rms_norm/{instance}.cu", *objects, include=copy))
    assert result.returncode == 1 and complaint in result.stderr, result.stdout + result.stderr


@pytest.mark.full
@builds
@pytest.mark.builds("tests/headers/rms_norm")
def test_an_invented_table_compiles_and_answers_right(tmp_path):
    path = write(tmp_path / STORED / "tune.csv", measurement(listed()))
    text = tune.policy(tune.read(path), path)
    for words in ("contiguous, Eviction::last", "strided, Eviction::first", "strided, Eviction::last", ", 2, Access::"):
        assert words in text
    (tmp_path / "fake_9000.cuh").write_text(text.replace('"../shape.cuh"', "<rms_norm/shape.cuh>"), encoding="utf-8")
    default = f'#include "{tmp_path}/fake_9000.cuh"\n\n#include "policies/h200.cuh"'
    program = build(
        tmp_path,
        "-O1",
        changes=[
            (
                r'(?s)#include "policies/h200.cuh"(.*struct DefaultPolicy : policies::)H200 ',
                rf"{default}\g<1>Fake9000 ",
            )
        ],
    )
    for rows, cols in (("2", "256,264,2048,4096,8192,16384,32768,65536"), ("3000,30000", "8,256,512")):
        result = run(program, "--rows", rows, "--cols", cols)
        passed, failed, _ = summary(result)
        assert result.returncode == 0 and passed > 0 and failed == 0, result.stdout
