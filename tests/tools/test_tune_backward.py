"""make tune S=backward: the choice of a form, on invented times, and every form's check on the CPU device."""

import csv
import re
import shutil

import pytest
from conftest import BUILD, CLANG_FORMAT, ROOT, program, run
from fakes import Machine, executable
from test_header import build, summary
from tuner import linked, measures, shorten_contests

from bench.tune import policies, policy_tables
from bench.tune.backward import policy as tune

PROGRAM = program("bench/tune/backward")
OBJECTS = BUILD / "bench/tune/backward"
builds = pytest.mark.builds("bench/tune/backward")
POLICY = f"{tune.POLICIES}/fake_9000.cuh"
STORED = "profiling_results/fake-9000/header"
SOURCE = (ROOT / "bench/tune/backward/measurements.cpp").read_text(encoding="utf-8")
WHOLE, ONE, MANY = tune.WHOLE_ROWS, tune.Form(8, 16, 1), tune.Form(4, 4, 1)
SIXTEEN_WARPS = tune.Form(0, 2, 1)

PROGRAM_FAKE = """\
#!/bin/bash
[ "$1" = --csv ] && cp "$FAKE_TUNE_CSV" "$2"
"""


def rows_of(times, warps=8, launches=("plain", "dependent")):
    """Of {rows: {form: microseconds, or those of a plain and of a dependent launch}}."""
    for count, forms in times.items():
        for form, both in forms.items():
            both = both if isinstance(both, tuple) else (both, both)
            for launch, microseconds in zip(launches, both):
                row = dict(rows=count, cols=512 * warps, warps=warps, launch=launch, verdict="ok", **form._asdict())
                row.update(microseconds=microseconds, device="NVIDIA Fake 9000", runtime=13000, date="2026-01-31")
                row.update(multiprocessors=132)
                yield row


def chosen(times):
    """(up to how many rows, the form) of each line."""
    return [(line.rows, line.form) for line in tune.lines_of(tune.times_of([*rows_of(times)]))]


def test_the_fastest_form_counts_up_to_half_way_to_the_next_number_of_rows():
    times = {1: {WHOLE: 3.0, ONE: 2.0, MANY: 2.5}, 16: {WHOLE: 4.0, ONE: 3.5, MANY: 3.0}, 64: {WHOLE: 5.0, MANY: 6.0}}
    assert chosen(times) == [(4, ONE), (32, MANY), (policies.ANY_SIZE, WHOLE)]


def test_what_a_gpu_loses_with_the_policy_of_another_one():
    """Of forms that it has measured; where the other's cluster has room for more rows, it takes as many as there are."""
    less = ONE._replace(rows_at_once=4)
    times = tune.times_of([*rows_of({4: {WHOLE: 2.0, less: 3.0}, 16: {WHOLE: 2.0, ONE: 2.5}, 64: {WHOLE: 2.0}})])
    own = {"kFewRows": times, "kFewRowsWithRstd": times}
    other = {"kFewRows": tune.times_of([*rows_of({4: {ONE: 1.0}, 16: {ONE: 1.0}, 64: {MANY: 1.0}})])}
    other["kFewRowsWithRstd"] = {}  # not measured on its own
    assert policy_tables.loss_of_gradients(other, own) == [1.5, 1.25] * 2
    assert policy_tables.loss_of_gradients(own, own) == [1, 1, 1] * 2


@pytest.mark.parametrize("time, forms", [(2.01, [WHOLE]), (2.03, [ONE, WHOLE])])
def test_whole_rows_are_chosen_within_one_percent(time, forms):
    assert [form for _, form in chosen({1: {WHOLE: time, ONE: 2.0}, 8: {WHOLE: 1.0, ONE: 2.0}})] == forms


@pytest.mark.parametrize("time, forms", [(2.01, [ONE]), (2.03, [ONE, MANY])])
def test_the_form_for_fewer_rows_is_kept_within_one_percent(time, forms):
    times = {1: {WHOLE: 3.0, ONE: 2.0}, 8: {WHOLE: 3.0, ONE: time, MANY: 2.0}, 64: {WHOLE: 1.0, ONE: 2.0}}
    assert [form for _, form in chosen(times)] == [*forms, WHOLE]


def test_the_mean_of_both_launches_counts():
    assert chosen({1: {WHOLE: (3.0, 1.0), ONE: (2.0, 2.2)}, 8: {WHOLE: 1.0}}) == [(policies.ANY_SIZE, WHOLE)]


def test_calls_with_a_stored_rstd_have_a_table_of_their_own(tmp_path):
    path = tmp_path / STORED / "tune_backward.csv"
    without = [*rows_of({1: {WHOLE: 3.0, ONE: 2.0}, 8: {WHOLE: 1.0}})]
    stored = [*rows_of({1: {WHOLE: 2.0, ONE: 3.0}, 8: {WHOLE: 1.0}}, launches=("plain_rstd", "dependent_rstd"))]
    first, second = tune.policy([*without, *stored], path).split("kFewRowsWithRstd[]")
    assert "{8, 2, 8, 16, 1}" in first and "{8, INT64_MAX, 0, 1, 1}" in second and "{8, 2" not in second
    assert "& kFewRowsWithRstd = kFewRows;" in tune.policy(without, path)


def test_one_cluster_counts_only_as_far_as_its_rows_go():
    eight = tune.Form(8, 4, 2)
    assert chosen({8: {WHOLE: 3.0, eight: 2.0}, 32: {WHOLE: 1.0, MANY: 2.0}}) == [
        (8, eight),
        (policies.ANY_SIZE, WHOLE),
    ]


def test_clusters_count_only_as_far_as_a_gpu_has_room_for_their_rows():
    """132 multiprocessors have room for 4224 warps, and a row has 16 here, or 8 if a thread has two rows."""
    two_rows = tune.Form(4, 4, 2)
    for form, most in (MANY, 264), (two_rows, 528):
        assert chosen({256: {form: 1.0}, 1024: {WHOLE: 1.0, form: 1.1}, 4096: {WHOLE: 1.0}}) == [
            (min(most, 512), form),
            (policies.ANY_SIZE, WHOLE),
        ]


def test_more_rows_than_were_measured_get_whole_rows():
    assert chosen({1: {WHOLE: 3.0, ONE: 2.0}}) == [(1, ONE), (policies.ANY_SIZE, WHOLE)]


@pytest.mark.parametrize(
    "time, lines", [(2.01, [(policies.ANY_SIZE, WHOLE)]), (2.03, [(512, WHOLE), (policies.ANY_SIZE, SIXTEEN_WARPS)])]
)
def test_many_rows_get_sixteen_warps_where_that_is_faster_by_a_percent(time, lines):
    assert chosen({256: {WHOLE: 1.0, MANY: 2.0}, 1024: {WHOLE: time, SIXTEEN_WARPS: 2.0}}) == lines


# The job.


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    shutil.copytree(ROOT / "include", machine.root / "include")
    executable(machine.root / "build/cuda/bench/tune/backward/tune", PROGRAM_FAKE)
    times = {1: {WHOLE: 3.0, ONE: 2.0}, 16: {WHOLE: 3.0, MANY: 2.0}, 256: {WHOLE: 4.0, ONE: 5.0}}
    times[1024] = {WHOLE: 9.0, SIXTEEN_WARPS: 8.0}
    rows = [row for warps in (4, 8, 16) for row in rows_of(times, warps)]
    rows += rows_of({1: {ONE: 2.0}, 16: {WHOLE: 2.0}}, launches=("plain_rstd", "dependent_rstd"))
    with open(tmp_path / "invented.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, tune.COLUMNS)
        table.writeheader()
        table.writerows(rows)
    done = machine.run("tune", "backward", FAKE_TUNE_CSV=str(tmp_path / "invented.csv"))
    assert done.returncode == 0, done.stderr
    assert "rms_norm::backward<rms_norm::policies::backward::Fake9000>(" in done.stdout
    return machine


def test_measures_stores_and_writes_a_policy_as_clang_format_leaves_it(machine):
    assert machine.files() == [
        "fake-9000/header/tune_backward.csv",
        "fake-9000/header/tune_backward_environment.txt",
    ]
    text = (machine.root / POLICY).read_text(encoding="utf-8")
    assert "NVIDIA Fake 9000, CUDA 13.0, 2026-01-31" in text and f"{STORED}/tune_backward.csv" in text
    lines = re.findall(r"^      \{(4|8|16), (4|64|512|INT64_MAX), [048], (16|4|2|1), 1\},", text, re.MULTILINE)
    assert len(lines) == 14, text
    shutil.copy(ROOT / ".clang-format", machine.root)
    assert run(CLANG_FORMAT, machine.root / POLICY, cwd=machine.root).stdout == text
    for measured in ("h100", "h200"):  # their measurements are not there
        (machine.root / f"include/rms_norm/policies/backward/{measured}.cuh").unlink()
    assert machine.run("tune", "backward", "--check").returncode == 0


@pytest.mark.full
@pytest.mark.builds("tests/headers/rms_norm")
def test_a_policy_that_it_wrote_compiles_and_answers_right(machine, tmp_path):
    """With entries that no block has room for, too."""
    policy = machine.root / POLICY
    text = policy.read_text(encoding="utf-8").replace("kFewRows[] = {", "kFewRows[] = {{16, 5, 3, 16, 2},")
    copy = tmp_path / "fake_9000.cuh"
    copy.write_text(
        text.replace("../../few_rows.cuh", str(tmp_path / "include/rms_norm/few_rows.cuh")), encoding="utf-8"
    )
    changes = [
        ("policies::backward::H200", "policies::backward::Fake9000"),
        ('#include "policies/backward/h200.cuh"', f'#include "{copy}"'),
    ]
    result = run(
        build(tmp_path, "-O1", changes=changes, source="backward.cu"), "--quick", "--filter", "bfloat16 backward"
    )
    assert result.returncode == 0 and summary(result)[1] == 0, result.stdout


COUNT = """\
#include <rms_norm/backward.cuh>

#include <cmath>
#include <cstdio>
#include <vector>

struct Eight {
  static constexpr rms_norm::FewRows kFewRows[] = {{16, INT64_MAX, 0, 1, 1}};
  static constexpr auto& kFewRowsWithRstd = kFewRows;
};
struct Sixteen {
  static constexpr rms_norm::FewRows kFewRows[] = {{16, INT64_MAX, 0, 2, 1}};
  static constexpr auto& kFewRowsWithRstd = kFewRows;
};

// The rows of partial sums, one from each block.
template <class Policy>
int blocks() {
  const int64_t rows = 3000, cols = 2048;
  const size_t count = rms_norm::backward_workspace_bytes(rows, cols) / sizeof(float);
  std::vector<float> x(rows * cols, 1.0f), weight(cols, 1.0f), dx(rows * cols), dweight(cols), workspace(count, NAN);
  if (rms_norm::backward<Policy>(x.data(), nullptr, x.data(), weight.data(), dx.data(), dweight.data(),
                                 workspace.data(), rows, cols) ||
      cudaDeviceSynchronize())
    return -1;
  int found = 0;
  for (size_t i = 0; i < count; i += cols) found += !std::isnan(workspace[i]);
  return found;
}

int main() { std::printf("%d %d\\n", blocks<Eight>(), blocks<Sixteen>()); }
"""


@pytest.mark.full
@builds
def test_sixteen_warps_on_a_multiprocessor_are_twice_as_many_blocks(tmp_path):
    (tmp_path / "count.cu").write_text(COUNT, encoding="utf-8")
    eight, sixteen = map(int, run(linked(tmp_path, "count.cu")).stdout.split())
    assert 0 < 2 * eight == sixteen


# The program.


@pytest.mark.full
@builds
def test_every_form_is_right_on_the_cpu_device():
    result = run(PROGRAM)
    assert result.returncode == 0, result.stdout + result.stderr
    passed = re.search(r"(\d+) candidates PASS, (\d+) launches, 0 refused", result.stdout)
    assert passed and int(passed[1]) > 15 and int(passed[2]) > 10 * int(passed[1]), result.stdout


@pytest.mark.full
@builds
def test_a_wrong_form_ends_the_program(tmp_path):
    copy = shutil.copytree(ROOT / "include", tmp_path / "include")
    kernels = copy / "rms_norm/few_rows.cuh"
    text, changed = re.subn(
        r"y < static_cast<int>\(blockDim\.y\); \+\+y", "y < 1; ++y", kernels.read_text(encoding="utf-8")
    )
    assert changed == 1, "few_rows.cuh adds up otherwise: change what is replaced"
    kernels.write_text(text, encoding="utf-8")
    files = [ROOT / "bench/tune/backward/forms.cu", OBJECTS / "main.cpp.o", OBJECTS / "measurements.cpp.o"]
    result = run(linked(tmp_path, *files, include=copy), timeout=600)
    assert result.returncode == 1 and "dweight: " in result.stderr, result.stdout + result.stderr


@pytest.mark.full
@builds
@pytest.mark.parametrize("capability", [90, 80])
def test_every_form_of_every_cell_is_in_the_csv(tmp_path, capability):
    """The way that only a GPU goes, on the CPU device: its times mean nothing."""
    (tmp_path / "main.cpp").write_text(measures("problems", l2_bytes="7e4"), encoding="utf-8")
    smaller = SOURCE
    for pattern, replacement in (
        (r"kWarps\[\] = \{.*?\};", "kWarps[] = {4, 8};"),
        (r"kRows\[\] = \{.*?\};", "kRows[] = {4, 8, 9};"),
        ("kFewRows = 1024", "kFewRows = 8"),
    ):
        smaller, found = re.subn(pattern, replacement, smaller)
        assert found == 1, "measurements.cpp is written otherwise: adapt the patterns"
    shorten_contests(tmp_path)
    (tmp_path / "measurements.cpp").write_text(smaller, encoding="utf-8")
    result = run(linked(tmp_path, "main.cpp", "measurements.cpp", OBJECTS / "forms.cu.o"), capability, 0)
    assert result.returncode == 0, result.stdout + result.stderr
    lines, _, table = result.stdout.partition("\n\n")
    rows = list(csv.DictReader(table.strip().splitlines()))
    assert rows[0].keys() >= {*tune.COLUMNS} and len(lines.splitlines()) == 12
    known = [tuple(row[name] for name in ("warps", "rows", *tune.Form._fields, "launch")) for row in rows]
    assert len(set(known)) == len(known) > 40
    assert {row["rows_at_once"] for row in rows if row["parts"] == "0"} == {"1", "2"}
    launches = ["plain", "dependent"] if capability == 90 else ["plain"]
    assert {row["launch"] for row in rows} == {*launches, *(f"{launch}_rstd" for launch in launches)}
    for row in rows:
        refused = capability < 90 and row["parts"] != "0"
        assert row["verdict"] == ("refused" if refused else "ok") and bool(row["microseconds"]) != refused
