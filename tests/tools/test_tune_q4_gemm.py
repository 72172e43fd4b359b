"""make tune S=q4_gemm: the choice of include/q4_gemm's kernels, on invented times, and every candidate's check on the CPU
device."""

import csv
import math
import re
import shutil

import pytest
from conftest import BUILD, CLANG_FORMAT, ROOT, program, run
from fakes import Machine, executable, refused
from ladder.core import results
from test_header import SIMTCC
from tuner import linked, measures

from bench.tune.q4_gemm import policy as q4_tune
from bench.tune.q4_gemm.policy import ANY_SIZE, Few, Many

LEAF = ROOT / "bench/tune/q4_gemm"
PROGRAM = program("bench/tune/q4_gemm")
builds = pytest.mark.builds("bench/tune/q4_gemm")
POLICY = "include/q4_gemm/policies/fake_9000.cuh"
STORED = "profiling_results/fake-9000/q4_gemm"

SOURCE = (LEAF / "measurements.cpp").read_text(encoding="utf-8")
HEADER = [*q4_tune.COLUMNS, "reason", "copies"]  # what is read of the CSV

PROGRAM_FAKE = """\
#!/bin/bash
[ "$1" = --csv ] || exit 2
[ -z "$FAKE_TUNE_FAILS" ] || { echo "few: 7 elements are wrong" >&2; exit 1; }
cp "$FAKE_TUNE_CSV" "$2"
"""

A, B, C = (
    Few(4, 2, 8, 6, 1, 1, 0, 2),
    Few(4, 2, 8, 6, 1, 1, 0, 8),
    Few(8, 4, 4, 6, 1, 1, 1, 4),
)  # A and B are one kernel
NARROW, WIDE, TWO = Many(32, 1, 4, 1), Many(64, 2, 2, 1), Many(64, 1, 2, 2)
MICROSECONDS = [(0.5, 2.0, 1.25), (1.5, 8.0, 0.0)]
CLUSTERS = [[132, 66, 39, 30, 22, 17, 15, 15], [264, 132, 79, 62, 47, 39, 32, 30]]
SMALL, LARGE, LONG = (1024, 4096), (4096, 4096), (4096, 14336)


def row(table, shape, microseconds, m, n, k, parts=1):
    kernel = dict.fromkeys(("tiles", "warp_tiles", "groups", "phases", "ways", "depth", "x_in_slots"), 0)
    about = {"table": table, "m": m, "n": n, "k": k, **kernel, **shape._asdict()}
    about.update(parts=getattr(shape, "parts", parts), clusters=0, verdict="ok" if microseconds else "refused")
    if table != "few":
        about.update(clusters=CLUSTERS[shape.together - 1][parts - 1])
    about.update(microseconds=microseconds or "", device="NVIDIA Fake 9000", runtime=13000, date="2026-01-31")
    return {name: str(about.get(name, "")) for name in HEADER}


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    results.write_csv(path, HEADER, [list(one.values()) for one in rows])
    return path


def few(*rows):
    """kFew's rows, of (shape, microseconds, matrix, columns)."""
    times = {}
    for shape, time, (m, k), n in rows:
        times.setdefault((m, n, k), {})[shape, shape.parts] = time
    return [line[:-1] for line in q4_tune.few_lines(times)]


def many_rows(table, shapes=(NARROW, WIDE)):
    """Times as if plan_of()'s estimate were exact: 0.5 us for a chunk with the first shape, 1.5 with the second one, 2 and
    8 us for a block, and 1.25 and nothing for one that shares k."""
    rows = []
    for m, k in (SMALL, LARGE):
        for n in (17, 64, 512):
            for place, shape in enumerate(shapes):
                for parts in q4_tune.PARTS:
                    steps = q4_tune.steps((m, n, k), shape, parts, CLUSTERS)
                    time = sum(map(math.prod, zip(MICROSECONDS[place], steps, strict=True)))
                    rows.append(row(table, shape, f"{time:.3f}", m, n, k, parts))
    return rows


@pytest.fixture
def invented():
    rows = []
    for m, k in (SMALL, LARGE):
        for n in (1, 8, 17):
            width = {"columns": 1 if n == 1 else 8 if n == 8 else 16}
            rows += [row("few", shape._replace(**width), 1.0 + n * i, m, n, k) for i, shape in enumerate((A, B, C))]
    return (
        rows + [row("few", C, None, *LARGE[:1], 1, LARGE[1])] + many_rows("exact") + many_rows("rounded", (WIDE, TWO))
    )


# Few columns.


def test_the_fastest_shape_is_chosen_for_columns_rows_and_weights_of_a_row():
    lines = few(
        (A, 1.0, SMALL, 1),
        (C, 2.0, SMALL, 1),
        (A, 2.0, LARGE, 1),
        (C, 1.0, LARGE, 1),
        (A, 1.0, LONG, 1),
        (C, 2.0, LONG, 1),
        (A, 1.0, SMALL, 8),
        (C, 2.0, SMALL, 8),
        (A, 1.0, LARGE, 8),
        (C, 2.0, LARGE, 8),
    )
    rows, long = int((1024 * 4096) ** 0.5), int((4096 * 14336) ** 0.5)
    assert lines == [
        (1, rows, ANY_SIZE, A),
        (1, ANY_SIZE, long, C),
        (ANY_SIZE, ANY_SIZE, ANY_SIZE, A),
    ]


@pytest.mark.parametrize("time, chosen", [(1.004, A), (1.006, B)])
def test_a_neighbour_s_shape_is_kept_within_half_a_percent(time, chosen):
    lines = few((A, 1.0, SMALL, 1), (B, 1.5, SMALL, 1), (A, time, LARGE, 1), (B, 1.0, LARGE, 1))
    assert [line[-1] for line in lines] == list(dict.fromkeys([A, chosen]))


@pytest.mark.parametrize("time, chosen", [(1.54, A), (1.55, C)])
def test_without_clusters_a_kernel_that_is_there_is_chosen_within_three_percent(time, chosen):
    alone, other = A._replace(parts=1), C._replace(parts=1)
    lines = few((A, 1.0, SMALL, 1), (alone, time, SMALL, 1), (other, 1.5, SMALL, 1))
    assert [line[-1] for line in lines] == [A, chosen._replace(parts=1)]


@pytest.mark.parametrize("time, chosen", [(1.009, B), (1.011, C)])
def test_a_kernel_more_is_compiled_only_if_it_gains_a_percent(time, chosen):
    lines = few(
        (A, 1.0, SMALL, 1),
        (C, 1.5, SMALL, 1),
        (B, 1.2, SMALL, 1),
        (A, 1.5, LARGE, 1),
        (C, 1.0, LARGE, 1),
        (B, time, LARGE, 1),
    )
    assert [line[-1] for line in lines] == [A, chosen]


def test_matrices_of_equally_many_weights_have_rows_of_their_own():
    wide, tall = (4096, 12288), (12288, 4096)
    lines = few((A, 1.0, wide, 1), (A, 4.0, tall, 1), (C, 2.1, wide, 1), (C, 1.8, tall, 1))
    assert lines == [(ANY_SIZE, int((4096 * 12288) ** 0.5), ANY_SIZE, A), (ANY_SIZE, ANY_SIZE, ANY_SIZE, C)]


# Many columns.


def test_a_shape_s_microseconds_are_those_of_the_estimate():
    rows = [{**one, **{name: int(one[name]) for name in q4_tune.NUMBERS}} for one in many_rows("exact")]
    times = q4_tune.times_of([{**one, "microseconds": float(one["microseconds"])} for one in rows], "exact", Many)
    choices, said = q4_tune.many(times, CLUSTERS)
    assert choices == dict(zip((NARROW, WIDE), MICROSECONDS, strict=True))
    assert "1.00 times the time of the fastest, on average of 6 products; at worst 1.00" in said[0]


def test_a_shape_that_gains_less_than_0_2_percent_is_left_out():
    def chosen(factor):
        """Of two shapes, the second one slower or faster than its estimate by a factor."""
        times = {}
        for n in (17, 65, 512):
            for shape, slower in ((NARROW, 1.0), (WIDE, factor)):
                for parts in q4_tune.PARTS:
                    time = slower * sum(q4_tune.steps((4096, n, 4096), shape, parts, CLUSTERS))
                    times.setdefault((4096, n, 4096), {})[shape, parts] = time
        return list(q4_tune.many(times, CLUSTERS)[0])

    assert chosen(0.25) == [WIDE] and chosen(16.0) == [NARROW] and chosen(2.0) == [NARROW, WIDE]


def test_of_one_measurement_a_shape_has_the_time_of_a_chunk():
    size = (4096, 64, 4096)
    chunks = q4_tune.steps(size, NARROW, 1, CLUSTERS)[0]
    assert q4_tune.microseconds_of({size: {(NARROW, 1): 3.0 * chunks}}, NARROW, CLUSTERS) == pytest.approx((3, 0, 0))


@pytest.mark.parametrize("of_17, of_32, begin", [(2.0, 2.0, 17), (0.5, 2.0, 32), (0.5, 0.5, 33), (2.0, 0.5, 33)])
def test_the_kernels_for_many_columns_begin_where_they_gain(of_17, of_32, begin):
    fast = {(4096, 17, 4096): {(A, 1): of_17}, (4096, 32, 4096): {(A, 1): of_32}, (4096, 1, 4096): {(A, 1): 1.0}}
    assert q4_tune.many_from(fast, {size: {(NARROW, 1): 1.0} for size in [*fast, (4096, 64, 4096)]}) == begin


# The policy.


def test_the_policy_holds_all_tables_and_is_as_clang_format_leaves_it(tmp_path, invented):
    path = write(tmp_path / STORED / "tune.csv", invented)
    text = q4_tune.policy(q4_tune.read(path), path)
    for words in (
        "Measured by make tune S=q4_gemm: NVIDIA Fake 9000, CUDA 13.0, 2026-01-31.",
        "struct Fake9000 {",
        "static constexpr int kClusters[2][8] = {{132, 66, 39, 30, 22, 17, 15, 15}, {264, 132, 79, 62, 47, 39, 32, 30}};",
        "static constexpr int64_t kManyFrom = 18;",
        "static constexpr Scales kScales = Scales::exact;",
        "static constexpr ManyChoice kMany[] = {\n      {32, 1, 4, 1, 0.500f, 2.00f, 1.25f},  // for 4 of 6 products\n      {64, 2, 2, 1, 1.50f, 8.00f, 0.00f},   // for 2\n  };",
        "struct Fake9000Rounded : Fake9000 {",
        "static constexpr Scales kScales = Scales::rounded_to_half;",
        "      {1, kAnySize, kAnySize, 4, 2, 8, 6, 1, 1, false, 2},         // 4096 x 4096: 1.00 us, fastest 1.00\n",
    ):
        assert words in text, text
    (tmp_path / "policy.cuh").write_text(text, encoding="utf-8")
    shutil.copy(ROOT / ".clang-format", tmp_path)
    assert run(CLANG_FORMAT, tmp_path / "policy.cuh", cwd=tmp_path).stdout == text


def test_a_gpu_without_wgmma_has_a_table_of_few_columns_only(tmp_path, invented):
    path = write(tmp_path / STORED / "tune.csv", [one for one in invented if one["table"] == "few"])
    text = q4_tune.policy(q4_tune.read(path), path)
    assert '#include "h200.cuh"' in text and "struct Fake9000 : H200 {" in text and "kMany" not in text


# The job.


@pytest.fixture
def machine(tmp_path, invented):
    machine = Machine(tmp_path)
    shutil.copytree(ROOT / "include", machine.root / "include")
    for path in (machine.root / "include").glob("*/policies/**/*.cuh"):
        path.unlink()  # it names its measurement, which is not there
    executable(machine.root / "build/cuda/bench/tune/q4_gemm/tune", PROGRAM_FAKE)
    write(tmp_path / "invented.csv", invented)
    return machine


def start(machine, *arguments, **environment):
    measured = str(machine.root.parent / "invented.csv")
    return machine.run("tune", "q4_gemm", *arguments, **{"FAKE_TUNE_CSV": measured, **environment})


def test_measures_stores_and_writes_a_policy(machine):
    result = start(machine)
    assert result.returncode == 0, result.stderr
    assert machine.files() == ["fake-9000/q4_gemm/tune.csv", "fake-9000/q4_gemm/tune_environment.txt"]
    for words in (
        "#include <q4_gemm/policies/fake_9000.cuh>",
        "q4_gemm::multiply<q4_gemm::policies::Fake9000>(",
        "include/q4_gemm/policy.cuh",
    ):
        assert words in result.stdout
    assert "bench/tune/q4_gemm/program" in machine.makes.read_text()
    written = (machine.root / POLICY).read_text(encoding="utf-8")
    assert start(machine, "--check").returncode == 0 and machine.run("tune", "--check").returncode == 0
    (machine.root / POLICY).write_text(written.replace("0.500f", "0.501f"), encoding="utf-8")
    for stale in (start(machine, "--check"), machine.run("tune", "--check")):
        refused(stale, "make tune S=q4_gemm GPU=fake-9000")
    assert start(machine, "--gpu", "fake-9000").returncode == 0
    assert (machine.root / POLICY).read_text(encoding="utf-8") == written


def test_a_header_without_policies_is_refused(machine):
    result = machine.run("tune", "simt")
    assert result.returncode == 2 and "simt has no policies; say rms_norm, backward, q4_gemm" in result.stderr


# The program.


def listed():
    return run(PROGRAM, "--list").stdout.splitlines()


@pytest.mark.full
@builds
def test_every_candidate_is_right_on_the_cpu_device():
    result = run(PROGRAM, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    names = listed()
    assert len(set(names)) == len(names) > 40
    # 1 part of one chunk; of 17 chunks 1, 2 and 8, or 3, too. Two shapes have no shared memory for the sums of 8.
    few = sum(name.startswith("few:") for name in names)
    launches = 4 * few - 2 + 5 * (len(names) - few)
    assert f"{len(names)} candidates PASS, {launches} launches, 0 refused" in result.stdout
    assert "make tune S=q4_gemm measures on a GPU only" in result.stdout


@pytest.mark.full
@builds
def test_every_kernel_of_the_policy_is_a_candidate():
    """So that the next measurement may find that it is the fastest still."""
    text = (ROOT / "include/q4_gemm/policies/h200.cuh").read_text(encoding="utf-8")
    names = listed()
    tables = re.split(r"(kFew|kMany)\[\]", text)
    found = 0
    for name, table in zip(tables[1::2], tables[2::2]):
        for entry in re.findall(
            r"^\s*.*?\{((?:kAnySize|true|false|[\d., f]+)+)\}", table.partition("};")[0], re.MULTILINE
        ):
            numbers = [word.strip() for word in entry.split(",")]
            if name == "kFew":
                _, _, _, tiles, warp_tiles, phases, depth, columns, together, x_in_slots, _ = numbers
                wanted = f"few: columns {columns}, tiles {tiles}, {warp_tiles} per warp, phases {phases}"
                more = ", x in slots" if x_in_slots == "true" else ""
                assert f"{wanted}, depth {depth}, together {together}{more}" in names
                found += 1
    assert found >= 2


# Some candidates for one column, and those for 128 with rounded scales.
OBJECTS = [BUILD / f"bench/tune/q4_gemm/{name}.cu.o" for name in ("reference", "few_1_together", "rounded_wide")]


@pytest.mark.full
@builds
class TestMeasuring:
    """The way that only a GPU goes, on the CPU device: its times mean nothing."""

    @pytest.fixture(scope="class")
    def program(self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("measuring")
        text = measures("products", multiprocessors=4, l2_bytes="1e4")
        (folder / "main.cpp").write_text(text, encoding="utf-8")
        text = SOURCE
        for pattern, smaller in (
            (r"kMatrices\[\] = \{.*?\}\};", "kMatrices[] = {{70, 128}, {130, 64}};"),
            (r"kFewColumns\[\] = \{.*?\}", "kFewColumns[] = {1}"),
            (r"kManyColumns\[\] = \{.*?\}", "kManyColumns[] = {65}"),
            (r"kWarmUpMicroseconds = \d+", "kWarmUpMicroseconds = 1"),
        ):
            text, changed = re.subn(pattern, smaller, text, flags=re.DOTALL)
            assert changed == 1, f"measurements.cpp has no {pattern} any more: adapt the pattern"
        (folder / "measurements.cpp").write_text(text, encoding="utf-8")
        return linked(folder, "main.cpp", "measurements.cpp", *OBJECTS)

    @pytest.mark.parametrize("capability", [90, 80])
    def test_every_candidate_of_every_product_is_in_the_csv(self, program, capability, tmp_path):
        result = run(program, capability, 0, timeout=600)
        assert result.returncode == 0, result.stdout + result.stderr
        lines, _, table = result.stdout.partition("\n\n")
        rows = list(csv.DictReader(table.strip().splitlines()))
        assert rows[0].keys() >= {*HEADER}
        for one in rows:
            refused_here = capability < 90 and (one["parts"] != "1" or one["table"] != "few")
            assert one["verdict"] == ("refused" if refused_here else "ok") and bool(one["microseconds"]) != refused_here
            assert int(one["copies"]) >= 2
        names = [name for name in listed() if name.startswith("few: columns 1,") and "together 1" not in name]
        names += [name for name in listed() if name.startswith("rounded: columns 128")]
        assert len(rows) == (2 + 1) * len(names)  # 1 and 2 parts of 128 k, one of 64
        assert len(lines.splitlines()) == 2 * 2
        if capability == 90:
            path = write(tmp_path / STORED / "tune.csv", [{name: one[name] for name in HEADER} for one in rows])
            assert "kFew" in q4_tune.policy(q4_tune.read(path), path)


@pytest.mark.full
@builds
@pytest.mark.parametrize(
    "pattern, replacement",
    [
        (r"signed_nibbles\(row << 4\)", "signed_nibbles(row)"),
        (r"phase < S::kPhases; \+\+phase\)", "phase < S::kPhases - 1; ++phase)"),
    ],
)
def test_a_wrong_candidate_ends_the_program(tmp_path, pattern, replacement):
    copy = shutil.copytree(ROOT / "include", tmp_path / "include")
    kernels = copy / "q4_gemm/few_columns.cuh"
    text, changed = re.subn(pattern, replacement, kernels.read_text(encoding="utf-8"))
    assert changed, f"few_columns.cuh has no {pattern} any more: change what is replaced"
    kernels.write_text(text, encoding="utf-8")
    (tmp_path / "one.cu").write_text(
        '#include "bench/tune/q4_gemm/instance.cuh"\nstatic const tune::Few<tune::F<2, 2, 4, 4, 8, 1>> candidates;\n'
    )
    objects = [BUILD / f"bench/tune/q4_gemm/{name}.cpp.o" for name in ("main", "measurements")]
    result = run(linked(tmp_path, "one.cu", *objects, *OBJECTS, include=copy), timeout=600)
    assert result.returncode == 1 and "elements are wrong" in result.stderr, result.stdout + result.stderr


PLANS = """\
#include <cstdio>
#include <cstdlib>
#include <q4_gemm/launch.cuh>
#include "fake_9000.cuh"

// m n k ...: the choice and the parts of each product's plan.
int main(int count, char** words) {
  for (int i = 1; i + 2 < count; i += 3) {
    const long m = std::atol(words[i]), n = std::atol(words[i + 1]), k = std::atol(words[i + 2]);
    const auto plan = q4_gemm::detail::plan_of<q4_gemm::policies::Fake9000>((m + 63) / 64, n, (k + 63) / 64);
    std::printf("%zu %d\\n", plan.choice, plan.parts);
  }
}
"""


@pytest.mark.full
@builds
def test_a_plan_is_launch_cuh_s_and_an_invented_policy_compiles(tmp_path, invented):
    path = write(tmp_path / STORED / "tune.csv", invented)
    text = q4_tune.policy(q4_tune.read(path), path).replace('"../choice.cuh"', "<q4_gemm/choice.cuh>")
    (tmp_path / "fake_9000.cuh").write_text(text, encoding="utf-8")
    (tmp_path / "plans.cu").write_text(PLANS, encoding="utf-8")
    made = run(*SIMTCC, f"-I{ROOT}/include", "-I.", "-std=c++17", "-O1", "plans.cu", "-o", "plans", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    sizes = [(m, n, k) for m in (64, 1024, 4096, 12288, 151936) for n in (17, 40, 65, 512) for k in (32, 4096, 14336)]
    said = run(tmp_path / "plans", *(number for size in sizes for number in size)).stdout.split()
    choices = dict(zip((NARROW, WIDE), MICROSECONDS, strict=True))
    plans = [q4_tune.plan(size, choices, CLUSTERS) for size in sizes]
    expected = [str(word) for shape, parts in plans for word in (list(choices).index(shape), parts)]
    assert said == expected and len({*plans}) > 3
