"""make profile: what it asks of ncu, how it reads the answer, what it says where there is none. Invented numbers."""

import csv
import sys

import pytest

from conftest import BUILD, ROOT, run
from fakes import Machine, executable, raw_csv

sys.path.insert(0, str(ROOT / "scripts"))
from counters import COUNTERS  # noqa: E402

ALL = {metric: ("%", "50.5") for metric in COUNTERS}
ALL["gpu__time_duration.sum"] = ("ns", "123,456")
ALL["smsp__inst_executed.sum"] = ("inst", "1,234,567,890")


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    machine.install_ncu(raw_csv(ALL))
    return machine


def read(machine, stage="03_tiled"):
    path = machine.root / f"profiling_results/fake-9000/ncu/{stage}.csv"
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    about = {row["name"]: row["value"] for row in rows if not row["metric"]}
    return about, {row["metric"]: row for row in rows if row["metric"]}


def refused(result, *words):
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr, result.stderr


@pytest.mark.parametrize("form", ["3", "03", "03_tiled"])
def test_one_stage_becomes_a_csv_with_every_counter_named(machine, form):
    result = machine.run("scripts/profile_stage.py", form)
    assert result.returncode == 0, result.stderr
    assert machine.files() == ["fake-9000/ncu/03_tiled.csv"]
    about, counters = read(machine)
    assert list(counters) == list(COUNTERS)
    assert [row["name"] for row in counters.values()] == list(COUNTERS.values())
    duration = counters["gpu__time_duration.sum"]
    assert (duration["unit"], duration["value"]) == ("ns", "123456")
    assert counters["smsp__inst_executed.sum"]["value"] == "1234567890"
    assert about["kernel"] == "rms_norm_kernel_w2l3_tile" and about["GPU"] == "NVIDIA Fake 9000"
    assert "--clock-control none" in about["clocks"] and "--cache-control all" in about["caches"]
    assert about["Nsight Compute"] == "2025.3.9.0"


def test_ncu_is_shown_one_launch_of_that_stage_and_leaves_the_clocks(machine):
    machine.run("scripts/profile_stage.py", "3")
    (call,) = machine.calls.read_text().splitlines()
    for words in ("--clock-control none", "--launch-count 1", "--profile --stage 03_tiled", "--csv --page raw"):
        assert words in call
    assert "--cache-control" not in call


def test_all_stages_in_one_go(machine):
    result = machine.run("scripts/profile_stage.py", "all")
    assert result.returncode == 0, result.stderr
    names = ("01_basic", "02_reduction5", "03_tiled", "04_short")
    assert machine.files() == [f"fake-9000/ncu/{name}.csv" for name in names]
    assert len(machine.calls.read_text().splitlines()) == 4


def test_a_directory_can_be_given(machine, tmp_path):
    assert machine.run("scripts/profile_stage.py", "3", tmp_path / "mine").returncode == 0
    assert (tmp_path / "mine/ncu/03_tiled.csv").is_file() and machine.files() == []


def test_counters_that_ncu_leaves_empty_are_named_as_missing(machine):
    gone = "lts__t_sector_op_read_hit_rate.pct"
    machine.install_ncu(raw_csv({metric: cell for metric, cell in {**ALL, gone: ("", "n/a")}.items()}))
    result = machine.run("scripts/profile_stage.py", "3")
    assert result.returncode == 0 and gone in result.stdout
    _, counters = read(machine)
    assert counters[gone]["value"] == "missing" and list(counters) == list(COUNTERS)


def test_counters_that_ncu_does_not_know_are_left_out_and_named(machine):
    unknown = "l1tex__m_xbar2l1tex_read_bytes.sum"
    known = {metric: cell for metric, cell in ALL.items() if metric != unknown}
    machine.install_ncu(raw_csv(known), unknown=unknown)
    result = machine.run("scripts/profile_stage.py", "3")
    assert result.returncode == 0 and unknown in result.stdout, result.stderr
    first, second = machine.calls.read_text().splitlines()
    assert unknown in first and unknown not in second
    assert read(machine)[1][unknown]["value"] == "missing"


def test_locked_counters_are_explained_with_every_remedy(machine):
    machine.install_ncu("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", code=1)
    result = machine.run("scripts/profile_stage.py", "all")
    refused(result, "ERR_NVGPUCTRPERM", "root", "SYS_ADMIN", "NVreg_RestrictProfilingToAdminUsers=0", "PROFILING.md")
    assert machine.files() == []
    assert len(machine.calls.read_text().splitlines()) == 1  # the other stages would say the same


@pytest.mark.parametrize(
    "said, code",
    [
        ("", 0),
        ("==WARNING== No kernels were profiled.", 0),
        ("==ERROR== The application returned an error code (1).", 1),
        (raw_csv(ALL), 1),
        (raw_csv(ALL, launches=2), 0),
        (raw_csv({}), 0),
        ('"ID","Kernel Name","x"\n"","","%"\n"0","k"\n', 0),
        (raw_csv({metric: ("", "nan") for metric in COUNTERS}), 0),
    ],
    ids=["silence", "no kernel", "program failed", "failed late", "two launches", "no counter", "cut short", "nan"],
)
def test_an_answer_without_counters_is_no_result(machine, said, code):
    machine.install_ncu(said, code=code)
    refused(machine.run("scripts/profile_stage.py", "3"), "03_tiled", "profiling_results/h200")
    assert machine.files() == []


def test_one_bad_stage_keeps_all_that_was_stored(machine):
    assert machine.run("scripts/profile_stage.py", "all").returncode == 0
    before = read(machine)
    machine.install_ncu(raw_csv({**ALL, "launch__block_size": ("", "7")}), fails_for="04_short")
    refused(machine.run("scripts/profile_stage.py", "all"), "04_short")
    assert read(machine) == before


def test_without_ncu_it_says_where_ncu_comes_from(tmp_path):
    machine = Machine(tmp_path)
    path = machine.without("ncu")
    if path is None:
        pytest.skip("ncu is installed where make profile finds it without PATH")
    refused(machine.run("scripts/profile_stage.py", "3", PATH=path), "ncu", "CUDA toolkit", "PROFILING.md")


def test_without_a_gpu_it_points_at_the_stored_counters(tmp_path):
    result = Machine(tmp_path, gpu=False).run("scripts/profile_stage.py", "all")
    assert result.returncode == 0 and result.stderr == ""
    assert "no GPU" in result.stdout and "profiling_results/h200/ncu" in result.stdout


@pytest.mark.parametrize("asked", ["", "99", "nonsense", "lectures", "; echo injected"])
def test_an_unknown_stage_lists_the_choices(machine, asked):
    result = machine.run("scripts/profile_stage.py", asked)
    assert result.returncode == 2 and "03_tiled" in result.stderr and "S=all" in result.stderr
    assert "injected" not in result.stdout and not machine.calls.exists()


def test_a_build_that_fails_ends_it(machine):
    refused(machine.run("scripts/profile_stage.py", "3", FAKE_BUILD_FAILS="1"), "the build failed")
    assert not machine.calls.exists()


def test_the_program_launches_once_for_the_profiler_and_claims_nothing():
    program = BUILD / "assignment1/rms_norm/matrix/rms_norm_matrix_test"
    result = run(program, "--profile", "--stage", "3", "--rows", "64")
    assert result.returncode == 0, result.stderr
    assert "03_tiled launched once, not checked" in result.stdout
    assert "PASS" not in result.stdout and "02_reduction5" not in result.stdout
    for more in (["--csv", "x"], ["--rows", "0"]):
        refusal = run(program, "--profile", *more)
        assert refusal.returncode == 2 and len(refusal.stderr.splitlines()) == 1
