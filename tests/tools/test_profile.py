"""make profile: what it asks of ncu, how it reads the answer, what it says if there is none. Invented numbers."""

import pytest
from conftest import LADDER, program, run
from fake_ladder import STAGES
from fakes import WITH_CONTROLS, Machine, executable, raw_csv, read, refused
from ladder.measure import ncu, profile
from ladder.measure.counters import COUNTERS, DURATION

INSTRUCTIONS = "smsp__inst_executed.sum"
ALL = dict.fromkeys(COUNTERS, ("%", "50.5"))
ALL[DURATION] = ("ns", "123,456")
ALL[INSTRUCTIONS] = ("inst", "1,234,567,890")
KERNEL = "void tiled::rms_norm_kernel_w2l3_tile<(int)4>(const float *, float)"

# Answers with what is in the file answer, unless it is to fail; notes how it was called. It exports a report where it is
# asked to, and prints the file report where it is to import one.
NCU = """\
#!/bin/bash
[ "$1" != --version ] || { echo "NVIDIA Nsight Compute"; echo "Version 2025.3.9.0 (build 1)"; exit; }
[ "$1" != --query-metrics ] || exit 1
echo "$*" >>"$FAKE_CALLS"
case "$*" in
  *"UNKNOWN"*) echo "==ERROR== Failed to find metric UNKNOWN"; exit 9 ;;
  *--import*) cat "${0%/*}/report"; exit ;;
  *--export*) report="$*" && report=${report#*--export } && echo >"${report%% *}"; exit REPORT_CODE ;;
  *"--stage FAILS_FOR"*) echo "==ERROR== no counters for this one"; exit 1 ;;
esac
echo "==PROF== Connected to process 1"
echo "NVIDIA Fake 9000, sm_90"
cat "${0%/*}/answer"
exit CODE
"""


REPORT = """\
[7] rms_norm_matrix_test@127.0.0.1

  kernel(float *) (8192, 1, 1)x(256, 1, 1)
    Section: GPU Speed Of Light Throughput
    Duration us 200

    Section: GPU Speed Of Light Roofline Chart
    a roofline

    Section: GPU Speed Of Light Hierarchical Roofline Chart (Half Precision)
    another

    Section: Occupancy
    Achieved Occupancy % 50\x20\x20
"""


def one(values):
    return raw_csv([(KERNEL, values)])


def install(machine, answer, code=0, unknown="none such", fails_for="none such", report_code=0):
    text = NCU.replace("UNKNOWN", unknown).replace("FAILS_FOR", fails_for)
    executable(machine.bin / "ncu", text.replace("REPORT_CODE", str(report_code)).replace("CODE", str(code)))
    (machine.bin / "answer").write_text(answer)
    (machine.bin / "report").write_text(REPORT)


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    install(machine, one(ALL))
    return machine


def stored(machine, stage="matrix/ncu/03_tiled"):
    rows = read(machine.root / f"profiling_results/fake-9000/{stage}.csv")
    about = {row["name"]: row["value"] for row in rows if not row["metric"]}
    return about, {row["metric"]: row for row in rows if row["metric"]}


@pytest.mark.parametrize("form", ["3", "03_tiled", "matrix/03"])
def test_one_stage_becomes_a_csv_with_every_counter_named(machine, form):
    result = machine.run("profile", form)
    assert result.returncode == 0, result.stderr
    assert machine.files() == ["fake-9000/matrix/ncu/03_tiled.csv"]
    about, counters = stored(machine)
    assert list(counters) == list(COUNTERS)
    assert [row["name"] for row in counters.values()] == list(COUNTERS.values())
    assert (counters[DURATION]["unit"], counters[DURATION]["value"]) == ("ns", "123456")
    assert counters[INSTRUCTIONS]["value"] == "1234567890"
    assert about["kernel"] == "rms_norm_kernel_w2l3_tile" and about["GPU"] == "NVIDIA Fake 9000"
    assert about["stage"] == "03_tiled" and about["input"].startswith("8192 x 8192 float32")
    assert "--clock-control none" in about["clocks"] and "--cache-control all" in about["caches"]
    assert about["Nsight Compute"] == "2025.3.9.0" and "launches" not in about


def test_ncu_is_shown_that_stage_alone_and_leaves_the_clocks(machine):
    machine.run("profile", "3")
    (call,) = machine.calls.read_text().splitlines()
    program = f"build/cuda/{LADDER}/rms_norm_matrix_test --profile --stage 03_tiled"
    for words in ("--clock-control none", program, "--csv --page raw"):
        assert words in call
    for word in ("--cache-control", "--kernel-name", "--launch-count"):
        assert word not in call


def test_stages_of_equal_names_do_not_meet(machine):
    assert machine.run("profile", "matrix/01_basic").returncode == 0
    install(machine, one({**ALL, DURATION: ("ns", "7")}))
    assert machine.run("profile", "vector/1").returncode == 0
    assert machine.run("profile", "W2L1/5").returncode == 0
    names = ["W2L1/ncu/reduction5", "matrix/ncu/01_basic", "vector/ncu/01_basic"]
    assert machine.files("profiling_results/fake-9000") == [f"{name}.csv" for name in names]
    times = [stored(machine, name)[1][DURATION]["value"] for name in names]
    assert times == ["7", "123456", "7"]
    assert stored(machine, names[2])[0]["input"].startswith("n = 4194304, one")


def test_a_stage_of_two_launches_is_their_sum_and_the_longer_one(machine):
    second = dict.fromkeys(COUNTERS, ("%", "20"))
    second.update({DURATION: ("ns", "1000"), INSTRUCTIONS: ("inst", "10")})
    install(machine, raw_csv([("finish(float *)", second), (KERNEL, ALL)]))
    assert machine.run("profile", "3").returncode == 0
    about, counters = stored(machine)
    assert about["kernel"] == "finish, rms_norm_kernel_w2l3_tile" and about["launches"].startswith("2: sums")
    assert counters[DURATION]["value"] == "124456" and counters[INSTRUCTIONS]["value"] == "1234567900"
    assert counters["launch__grid_size"]["value"] == "50.5"


def test_all_stages_of_a_ladder_or_of_all(machine):
    assert machine.run("profile", "vector").returncode == 0
    assert machine.files() == ["fake-9000/vector/ncu/01_basic.csv", "fake-9000/vector/ncu/02_reduction5.csv"]
    result = machine.run("profile", "all")
    assert result.returncode == 0 and len(machine.files()) == 4 + 2 + 2, result.stderr
    assert len(machine.calls.read_text().splitlines()) == 2 + 8


@pytest.fixture
def grown(machine):
    """Its matrix ladder names two stages that are counted on one row, too, and one whose report is stored."""
    machine.add_ladder(LADDER, WITH_CONTROLS, STAGES)
    machine.add_program(f"{LADDER}/04_short/rms_norm_test", WITH_CONTROLS, STAGES[-1:])
    return machine


def test_stages_that_a_profile_names_are_counted_on_its_input_too(grown):
    result = grown.run("profile", "matrix")
    assert result.returncode == 0, result.stderr
    names = [f"ncu/{name}.csv" for name in STAGES] + ["ncu_details/02_reduction5.txt"]
    names += ["ncu_one_row/02_reduction5.csv", "ncu_one_row/03_tiled.csv", "reports/04_short.ncu-rep"]
    assert grown.files("profiling_results/fake-9000/matrix") == names
    counted = [call for call in grown.calls.read_text().splitlines() if "--csv" in call]
    assert [call.endswith("--rows 1 --cols 4096") for call in counted] == [False, False, True, False, True, False]
    assert stored(grown, "matrix/ncu_one_row/03_tiled")[0]["input"] == "1 x 4096 float32, one run"
    assert stored(grown)[0]["input"] == "8192 x 8192 float32, one run"


def test_of_some_stages_ncu_s_whole_report_is_stored_as_text_but_no_rooflines(grown):
    assert grown.run("profile", "2").returncode == 0
    text = (grown.root / "profiling_results/fake-9000/matrix/ncu_details/02_reduction5.txt").read_text()
    assert text.startswith("  kernel(float *) (8192, 1, 1)x(256, 1, 1)\n    Section: GPU Speed Of Light Throughput\n")
    assert text.endswith("    Section: Occupancy\n    Achieved Occupancy % 50\n")
    assert "oofline" not in text and "Duration us 200" in text
    asked, printed = [call for call in grown.calls.read_text().splitlines() if "--csv" not in call]
    assert "--set full" in asked and asked.endswith("rms_norm_matrix_test --profile --stage 02_reduction5")
    assert "--page details" in printed
    assert grown.run("profile", "3").returncode == 0
    assert not (grown.root / "profiling_results/fake-9000/matrix/ncu_details/03_tiled.txt").exists()


def test_of_some_stages_a_small_report_is_stored_with_every_counter(grown):
    assert grown.run("profile", "4").returncode == 0
    assert (grown.root / "profiling_results/fake-9000/matrix/reports/04_short.ncu-rep").is_file()
    (asked,) = [call for call in grown.calls.read_text().splitlines() if "--export" in call]
    assert "--section SpeedOfLight" in asked and INSTRUCTIONS in asked and "--clock-control none" in asked
    assert "--set" not in asked and asked.endswith(f"{LADDER}/04_short/rms_norm_test --profile")
    assert grown.makes.read_text().splitlines()[-1].endswith(f"{LADDER}/04_short/program")


def test_a_large_report_is_left_out_and_the_job_says_so(grown, monkeypatch):
    monkeypatch.setattr(profile, "MOST_BYTES", 0)
    result = grown.run("profile", "4")
    assert result.returncode == 0 and "1 bytes, more than 0" in result.stdout and "not stored" in result.stdout
    assert grown.files() == ["fake-9000/matrix/ncu/04_short.csv"]


def test_a_report_that_was_not_made_is_an_error(grown):
    install(grown, one(ALL), report_code=9)
    refused(grown.run("profile", "2"), "matrix/02_reduction5", "printed no report")
    refused(grown.run("profile", "4"), "matrix/04_short", "exported no report")
    assert grown.files() == []


def test_a_directory_can_be_given(machine, tmp_path):
    assert machine.run("profile", "3", "--results", tmp_path / "mine").returncode == 0
    assert (tmp_path / "mine/matrix/ncu/03_tiled.csv").is_file() and machine.files() == []


def test_counters_that_ncu_leaves_empty_are_named_as_missing(machine):
    gone = "lts__t_sector_op_read_hit_rate.pct"
    install(machine, one({**ALL, gone: ("", "n/a")}))
    result = machine.run("profile", "3")
    assert result.returncode == 0 and gone in result.stdout
    counters = stored(machine)[1]
    assert counters[gone]["value"] == "missing" and list(counters) == list(COUNTERS)


def test_counters_that_ncu_does_not_know_are_left_out_and_named(machine):
    unknown = "l1tex__m_xbar2l1tex_read_bytes.sum"
    known = {metric: cell for metric, cell in ALL.items() if metric != unknown}
    install(machine, one(known), unknown=unknown)
    result = machine.run("profile", "3")
    assert result.returncode == 0 and unknown in result.stdout, result.stderr
    first, second = machine.calls.read_text().splitlines()
    assert unknown in first and unknown not in second
    assert stored(machine)[1][unknown]["value"] == "missing"


def test_locked_counters_are_explained_with_every_remedy(machine):
    install(machine, "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", code=1)
    result = machine.run("profile", "all")
    refused(result, "ERR_NVGPUCTRPERM", "root", "SYS_ADMIN", "NVreg_RestrictProfilingToAdminUsers=0", "PROFILING.md")
    assert machine.files() == []
    assert len(machine.calls.read_text().splitlines()) == 1  # the other stages would say the same


@pytest.mark.parametrize(
    "said, code",
    [
        ("", 0),
        ("==WARNING== No kernels were profiled.", 0),
        ("==ERROR== The application returned an error code (1).", 1),
        (one(ALL), 1),
        (one({}), 0),
        ('"ID","Kernel Name","x"\n"","","%"\n"0","k"\n', 0),
        (one(dict.fromkeys(COUNTERS, ("", "nan"))), 0),
    ],
    ids=["silence", "no kernel", "program failed", "failed late", "no counter", "cut short", "nan"],
)
def test_an_answer_without_counters_is_no_result(machine, said, code):
    install(machine, said, code=code)
    refused(machine.run("profile", "3"), "matrix/03_tiled", "profiling_results/h200")
    assert machine.files() == []


def test_a_stage_that_is_skipped_here_is_no_failure(machine):
    install(machine, "03_tiled skipped: needs sm_90, this device is sm_80\n")
    result = machine.run("profile", "3")
    assert result.returncode == 0, result.stderr
    assert "matrix/03_tiled on 8192 × 8192 float32: skipped" in result.stdout and machine.files() == []


def test_one_bad_stage_keeps_all_that_was_stored(machine):
    assert machine.run("profile", "matrix").returncode == 0
    before = stored(machine)
    install(machine, one({**ALL, "launch__block_size": ("", "7")}), fails_for="04_short")
    refused(machine.run("profile", "matrix"), "04_short")
    assert stored(machine) == before


def test_without_ncu_it_says_where_ncu_comes_from(tmp_path):
    machine = Machine(tmp_path)
    path = machine.without("ncu")
    if path is None:
        pytest.skip("ncu is installed where make profile finds it without PATH")
    refused(machine.run("profile", "3", PATH=path), "ncu", "CUDA toolkit", "PROFILING.md")


def test_without_a_gpu_it_points_at_the_stored_counters(tmp_path):
    result = Machine(tmp_path, gpu=False).run("profile", "all")
    assert result.returncode == 0 and result.stderr == ""
    assert "no GPU" in result.stdout and "profiling_results/h200" in result.stdout


@pytest.mark.parametrize("asked", ["", "99", "nonsense", "lectures", "vector/3", "; echo injected"])
def test_an_unknown_stage_lists_the_choices(machine, asked):
    """Or, if its name is like that of another, names that."""
    result = machine.run("profile", asked)
    assert result.returncode == 2 and "vector/01_basic" in result.stderr
    assert ("matrix/03_tiled" in result.stderr) == ("did you mean" not in result.stderr) == (asked != "vector/3")
    assert "injected" not in result.stdout and not machine.calls.exists()


def test_a_build_that_fails_ends_it(machine):
    refused(machine.run("profile", "3", FAKE_BUILD_FAILS="1"), "the build failed")
    assert not machine.calls.exists()


def test_kernels_are_known_by_their_own_names():
    for said, name in (
        ("void tiled::kernel<(int)128>(const float *, int)", "kernel"),
        ("<unnamed>::kernel(float *)", "kernel"),
        ("kernel", "kernel"),
        ("void a::b::sum<float, (bool)1>(const T1 *)", "sum"),
    ):
        assert ncu.kernel_name(said) == name


@pytest.mark.builds(LADDER)
def test_the_program_launches_once_for_the_profiler_and_claims_nothing():
    result = run(program(LADDER), "--profile", "--stage", "3", "--rows", "64")
    assert result.returncode == 0, result.stderr
    assert "03_tiled launched once, not checked" in result.stdout
    assert "PASS" not in result.stdout and "02_reduction5" not in result.stdout
    for more in (["--csv", "x"], ["--rows", "0"]):
        refusal = run(program(LADDER), "--profile", *more)
        assert refusal.returncode == 2 and len(refusal.stderr.splitlines()) == 1
