"""scripts/compare_ncu.py: what it asks of ncu, and what it makes of the answers. Invented numbers."""

import csv
import io
import shutil
import sys

import pytest

from conftest import ROOT
from fakes import Machine, executable

sys.path.insert(0, str(ROOT / "scripts"))
import compare_ncu  # noqa: E402
import results  # noqa: E402

MEASURED = sorted(path.parent for path in results.STORE.glob("*/known_answers_ncu.csv"))

NCU = """\
#!/bin/bash
[ "$1" != --version ] || { echo "Version 2025.3.9.0 (build 1)"; exit; }
echo "$*" >>"$FAKE_CALLS"
here=${0%/*}
case "$*" in
  *--query-metrics*) cat "$here/listed"; exit ;;
  *"UNKNOWN"*) echo "==ERROR== SAYS"; exit 9 ;;
  *"HANGS_FOR"*) exec sleep 600 ;;
esac
echo "==PROF== Connected to process 1"
case "$*" in
  *"--stage 02_reduction5"*) cat "$here/two_launches" ;;
  *"--stage "*) cat "$here/stage" ;;
  *known_answers*) cat "$here/answers" ;;
esac
"""
METRICS = [*compare_ncu.HARDWARE, *compare_ncu.PATCHED]


def raw(kernels, metrics):
    """ncu's raw page with a launch for each kernel; every counter of the n-th is 1000 + n."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([["ID", "Kernel Name", *metrics], ["", "", *[""] * len(metrics)]])
    for number, kernel in enumerate(kernels):
        text = {compare_ncu.OPCODES: f"{number} (LDG: {number}; IADD3: 7; BAR.SYNC: 2)"}
        values = [text.get(metric, f"1,{number:03d}") for metric in metrics]
        writer.writerow([number, f"void some::{kernel}<(int)8>(const float *, int)", *values])
    return out.getvalue()


class GpuMachine(Machine):
    def __init__(self, folder):
        super().__init__(folder)
        sources = self.root / "simt/tests/analysis"
        sources.mkdir(parents=True)
        for name in ("known_answers.cu", "known_answers.csv"):
            shutil.copy(ROOT / "simt/tests/analysis" / name, sources)
        executable(self.bin / "nvcc", '#!/bin/bash\n[ -z $FAKE_NVCC_FAILS ] || exit 1\necho "$*" >>"$FAKE_CALLS"\n')
        self.answer()

    def answer(self, metrics=METRICS, unknown="none such", says="Failed to find metric", hangs_for="none such"):
        text = NCU.replace("UNKNOWN", unknown).replace("SAYS", says).replace("HANGS_FOR", hangs_for)
        executable(self.bin / "ncu", text)
        with open(ROOT / "simt/tests/analysis/known_answers.csv", newline="") as file:
            names = list(dict.fromkeys(row["kernel"] for row in csv.DictReader(file)))
        (self.bin / "answers").write_text(raw(names, metrics))
        (self.bin / "stage").write_text(raw(["rms_norm_kernel"], metrics))
        (self.bin / "two_launches").write_text(raw(["rms_norm_kernel", "finish"], metrics))
        listed = {metric.split(".")[0] for metric in metrics}
        (self.bin / "listed").write_text("Device\n" + "".join(f"{name}   Counter   text\n" for name in listed))

    def compare(self, *arguments, **environment):
        return self.run("scripts/compare_ncu.py", *arguments, NVCC=str(self.bin / "nvcc"), **environment)

    def read(self, name):
        with open(self.root / "profiling_results/fake-9000" / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


@pytest.fixture
def machine(tmp_path):
    return GpuMachine(tmp_path)


def test_every_known_answer_and_every_stage_is_stored(machine):
    result = machine.compare()
    assert result.returncode == 0, result.stdout + result.stderr
    stages = ["01_basic", "02_reduction5", "03_tiled", "04_short"]
    wanted = ["known_answers_ncu.csv", "known_answers_ncu.txt", *(f"ncu_64x8192/{stage}.csv" for stage in stages)]
    assert machine.files("profiling_results/fake-9000") == wanted
    rows = machine.read("known_answers_ncu.csv")
    assert [row["kernel"] for row in rows] == compare_ncu.names_of_answers()
    assert all(row[compare_ncu.REQUESTS.format("ld")] == str(1000 + n) for n, row in enumerate(rows))
    assert rows[3][compare_ncu.OPCODES] == "BAR.SYNC 2, LDG 3"
    about = (machine.root / "profiling_results/fake-9000/known_answers_ncu.txt").read_text()
    assert "GPU: NVIDIA Fake 9000" in about and "--clock-control none" in about


def test_a_stage_of_two_launches_is_their_sum(machine):
    assert machine.compare().returncode == 0
    cells = {row["metric"] or row["name"]: row["value"] for row in machine.read("ncu_64x8192/02_reduction5.csv")}
    assert cells[compare_ncu.SECTORS.format("st")] == "2001"
    assert cells["kernel"] == "rms_norm_kernel, finish" and cells["input"].startswith("64 x 8192")


def test_clocks_are_left_alone_and_the_small_shape_is_asked_for(machine):
    machine.compare()
    calls = [call for call in machine.calls.read_text().splitlines() if "--metrics" in call]
    assert len(calls) == 2 + 4 and all("--clock-control none" in call for call in calls)
    assert sum("--profile --stage" in call and "--rows 64 --cols 8192" in call for call in calls) == 4


@pytest.mark.parametrize("says", ["Failed to find metric UNKNOWN", "something went wrong"])
def test_counters_that_ncu_does_not_know_are_missing(machine, says):
    unknown = compare_ncu.CONFLICTS.format("atom")
    machine.answer([metric for metric in METRICS if metric != unknown], unknown, says.replace("UNKNOWN", unknown))
    result = machine.compare()
    assert result.returncode == 0 and unknown in result.stdout, result.stdout
    rows = machine.read("known_answers_ncu.csv")
    assert {row[unknown] for row in rows} == {"missing"} and rows[2][compare_ncu.CONFLICTS.format("ld")] == "1002"


def test_a_stage_that_hangs_is_named_and_the_rest_is_kept(machine):
    machine.answer(hangs_for="--stage 03_tiled")
    script = machine.root / "scripts/compare_ncu.py"
    script.write_text(script.read_text().replace("BUDGET = 85", "BUDGET = 8"))
    result = machine.compare()
    assert result.returncode == 1 and "left out: 03_tiled" in result.stdout
    assert "ncu_64x8192/01_basic.csv" in machine.files("profiling_results/fake-9000")
    assert "ncu_64x8192/03_tiled.csv" not in machine.files("profiling_results/fake-9000")


def test_a_directory_can_be_given(machine, tmp_path):
    assert machine.compare(tmp_path / "mine").returncode == 0
    assert (tmp_path / "mine/known_answers_ncu.csv").is_file() and machine.files() == []


def test_locked_counters_are_explained(machine):
    machine.answer(unknown="--metrics", says="ERR_NVGPUCTRPERM")
    result = machine.compare()
    assert result.returncode == 1 and "SYS_ADMIN" in result.stderr and machine.files() == []


def test_a_program_that_does_not_build_ends_it(machine):
    result = machine.compare(FAKE_NVCC_FAILS="1")
    assert result.returncode == 1 and "known_answers.cu" in result.stderr and machine.files() == []
    assert "Traceback" not in result.stderr


def test_without_a_gpu_there_is_nothing_to_measure(tmp_path):
    result = Machine(tmp_path, gpu=False).run("scripts/compare_ncu.py")
    assert result.returncode == 0 and "no GPU" in result.stdout


def test_the_table_puts_the_stored_counts_beside_the_known_ones(machine):
    assert machine.compare().returncode == 0
    folder = machine.root / "profiling_results/fake-9000"
    path = folder / "known_answers_ncu.csv"
    lines = path.read_text().splitlines()
    names = lines[0].split(",")
    cells = dict(zip(names, lines[1].split(",")))
    assert cells["kernel"] == "load_float"
    cells[compare_ncu.REQUESTS.format("ld")], cells[compare_ncu.SECTORS.format("ld")] = "1", "7"
    path.write_text("\n".join([lines[0], ",".join(cells[name] for name in names)]) + "\n")
    (folder / "matrix_8192x8192.csv").write_text("")  # what makes a folder that of a GPU
    result = machine.compare("--table", "fake-9000")
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert rows[0] == ["load_float", "global", "load", "requests", "1", "1"]
    assert rows[1] == ["load_float", "global", "load", "sectors", "4", "7", "differs"]
    assert result.stdout.splitlines()[-1] == "1 of 2 counts are the same"


@pytest.mark.parametrize("arguments", [["--nonsense"], ["a", "b"], ["--table", "a", "b"], ["--table", "--table"]])
def test_a_bad_command_line_exits_2(machine, arguments):
    result = machine.compare(*arguments)
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1


def test_the_table_says_what_is_not_stored(machine):
    result = machine.compare("--table")
    assert result.returncode == 1 and "known_answers_ncu.csv" in result.stderr


@pytest.mark.parametrize("folder", MEASURED, ids=[folder.name for folder in MEASURED])
def test_a_gpu_counted_what_is_known(folder):
    """Every count; what is not compared is said in simt/tests/analysis/README.md."""
    rows = list(compare_ncu.beside(folder))
    assert len(rows) > 400
    assert [row for row in rows if row[3] != row[4]] == []
