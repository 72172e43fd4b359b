"""python3 -m ladder compare: what it asks of ncu, and what it makes of the answers. Invented numbers."""

import csv
import shutil

import pytest
from conftest import ROOT
from fakes import Machine, executable, raw_csv, read
from ladder.core import ladders, results
from ladder.measure import compare, cpu_device
from ladder.measure.counters import CONFLICTS, HARDWARE, OPCODES, PATCHED, REQUESTS, SECTORS

MEASURED = sorted(path.parent for path in results.store().glob("*/known_answers_ncu.csv"))
STAGES = ["W2L1/ncu_small/reduction0", "W2L1/ncu_small/reduction5"]
STAGES += [f"matrix/ncu_small/{name}" for name in ("01_basic", "02_reduction5", "03_tiled", "04_short")]
STAGES += ["vector/ncu_small/01_basic", "vector/ncu_small/02_reduction5"]

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
METRICS = [*HARDWARE, *PATCHED]


def raw(kernels, metrics):
    """ncu's raw page with a launch for each kernel; every counter of the n-th is 1000 + n."""
    launches = []
    for number, kernel in enumerate(kernels):
        values = dict.fromkeys(metrics, ("", f"1,{number:03d}"))
        if OPCODES in metrics:
            values[OPCODES] = ("", f"{number} (LDG: {number}; IADD3: 7; BAR.SYNC: 2)")
        launches.append((f"void some::{kernel}<(int)8>(const float *, int)", values))
    return raw_csv(launches)


def names_of_answers():
    with open(ROOT / "simt/tests/analysis/known_answers.csv", newline="") as file:
        return list(dict.fromkeys(row["kernel"] for row in csv.DictReader(file)))


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
        (self.bin / "answers").write_text(raw(names_of_answers(), metrics))
        (self.bin / "stage").write_text(raw(["rms_norm_kernel"], metrics))
        (self.bin / "two_launches").write_text(raw(["rms_norm_kernel", "finish"], metrics))
        listed = {metric.split(".")[0] for metric in metrics}
        (self.bin / "listed").write_text("Device\n" + "".join(f"{name}   Counter   text\n" for name in listed))

    def compare(self, *arguments, **environment):
        return self.run("compare", *arguments, NVCC=str(self.bin / "nvcc"), **environment)

    def read(self, name):
        return read(self.root / "profiling_results/fake-9000" / name)


@pytest.fixture
def machine(tmp_path):
    return GpuMachine(tmp_path)


def test_every_known_answer_and_every_stage_is_stored(machine):
    result = machine.compare()
    assert result.returncode == 0, result.stdout + result.stderr
    wanted = [*(f"{stage}.csv" for stage in STAGES), "known_answers_ncu.csv", "known_answers_ncu.txt"]
    assert machine.files("profiling_results/fake-9000") == sorted(wanted)
    rows = machine.read("known_answers_ncu.csv")
    assert [row["kernel"] for row in rows] == names_of_answers()
    assert all(row[REQUESTS.format("ld")] == str(1000 + n) for n, row in enumerate(rows))
    assert rows[3][OPCODES] == "BAR.SYNC 2, LDG 3"
    about = (machine.root / "profiling_results/fake-9000/known_answers_ncu.txt").read_text()
    assert "GPU: NVIDIA Fake 9000" in about and "--clock-control none" in about and "--cache-control none" in about

    cells = {row["metric"] or row["name"]: row["value"] for row in machine.read("matrix/ncu_small/02_reduction5.csv")}
    assert cells[SECTORS.format("st")] == "2001"  # of two launches the sum
    assert cells["kernel"] == "rms_norm_kernel, finish" and cells["input"].startswith("64 x 100 float32")

    calls = [call for call in machine.calls.read_text().splitlines() if "--metrics" in call]
    assert len(calls) == 2 + 8 and all("--clock-control none" in call for call in calls)
    assert sum("--profile --stage" in call and "--rows 64 --cols 100" in call for call in calls) == 4
    assert sum("--profile --stage" in call and "--n 6400" in call for call in calls) == 4


@pytest.mark.parametrize("says", ["Failed to find metric UNKNOWN", "something went wrong"])
def test_counters_that_ncu_does_not_know_are_missing(machine, says):
    unknown = CONFLICTS.format("atom")
    machine.answer([metric for metric in METRICS if metric != unknown], unknown, says.replace("UNKNOWN", unknown))
    result = machine.compare()
    assert result.returncode == 0 and unknown in result.stdout, result.stdout
    rows = machine.read("known_answers_ncu.csv")
    assert {row[unknown] for row in rows} == {"missing"} and rows[2][CONFLICTS.format("ld")] == "1002"


def test_a_stage_that_hangs_is_named_and_the_rest_is_kept(machine, monkeypatch):
    machine.answer(hangs_for="--stage reduction0")
    monkeypatch.setattr(compare, "SECONDS", 6)
    result = machine.compare()
    assert result.returncode == 1 and "left out: W2L1/reduction0" in result.stdout
    stored = machine.files("profiling_results/fake-9000")
    assert "matrix/ncu_small/01_basic.csv" in stored and "W2L1/ncu_small/reduction0.csv" not in stored


def test_a_directory_can_be_given(machine, tmp_path):
    assert machine.compare("--results", tmp_path / "mine").returncode == 0
    assert (tmp_path / "mine/known_answers_ncu.csv").is_file() and machine.files() == []


def test_locked_counters_are_explained(machine):
    machine.answer(unknown="--metrics", says="ERR_NVGPUCTRPERM")
    result = machine.compare()
    assert result.returncode == 1 and "SYS_ADMIN" in result.stderr and machine.files() == []


def test_a_program_that_does_not_build_ends_it(machine):
    result = machine.compare(FAKE_NVCC_FAILS="1")
    assert result.returncode == 1 and "known_answers.cu" in result.stderr and machine.files() == []


def test_without_a_gpu_there_is_nothing_to_measure(tmp_path):
    result = Machine(tmp_path, gpu=False).run("compare")
    assert result.returncode == 0 and "no GPU" in result.stdout


def test_the_table_puts_the_stored_counts_beside_the_known_ones(machine):
    assert machine.compare().returncode == 0
    path = machine.root / "profiling_results/fake-9000/known_answers_ncu.csv"
    lines = path.read_text().splitlines()
    names = lines[0].split(",")
    cells = dict(zip(names, lines[1].split(",")))
    assert cells["kernel"] == "load_float"
    cells[REQUESTS.format("ld")], cells[SECTORS.format("ld")] = "1", "7"
    path.write_text("\n".join([lines[0], ",".join(cells[name] for name in names)]) + "\n")
    result = machine.compare("--table", "--gpu", "fake-9000")
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert rows[0] == ["load_float", "global", "load", "requests", "1", "1"]
    assert rows[1] == ["load_float", "global", "load", "sectors", "4", "7", "differs"]
    assert result.stdout.splitlines()[-1] == "1 of 2 counts are the same"


@pytest.mark.parametrize("arguments", [["--nonsense"], ["a"], ["--table", "a"], ["--gpu"]])
def test_a_bad_command_line_exits_2(machine, arguments):
    assert machine.compare(*arguments).returncode == 2


def test_the_table_says_what_is_not_stored(machine):
    result = machine.compare("--table")
    assert result.returncode == 1 and "known_answers_ncu.csv" in result.stderr


@pytest.mark.parametrize("folder", MEASURED, ids=[folder.name for folder in MEASURED])
def test_a_gpu_counted_what_is_known(folder):
    """Every count; what is not compared is said in simt/tests/analysis/README.md."""
    rows = list(compare.beside(folder))
    assert len(rows) > 400
    assert [row for row in rows if row[3] != row[4]] == []


def test_the_counts_that_agree_are_those_that_the_vector_page_names():
    same = [
        stage.name[:2]
        for stage in ladders.find("vector").stages
        if all(cpu_device.agree(*both) for both in cpu_device.comparison(results.store() / "h200", stage).values())
    ]
    assert same == ["03", "05"]
