"""W3L1 and W3L2: right ceilings, a roofline of what is stored, and pages that do not go stale."""

import importlib.util
import math
import re
import shutil
import sys
import types

import pytest
from conftest import BACKEND, NVCC, ROOT, program, run
from fake_ladder import ladder_csv
from fakes import Machine, read
from ladder.core import ladders, results
from ladder.measure import counters, profile, timed
from ladder.pages import roofline

ROOFLINE = "lectures/W3L1_roofline"
PROGRAM = program(ROOFLINE)
PAGE = ROOT / ROOFLINE / "README.md"
STAGES = [stage.name for stage in ladders.find("W3L1").stages]
cpu_only = pytest.mark.skipif(BACKEND != "cpu", reason="a GPU is timed, which takes longer than a test should")

# Invented numbers, as all of fakes.py.
CEILINGS = """\
ceiling,stage,counted,amount,microseconds,tera_per_s,percent_of_datasheet,gpu,cuda_runtime,date
DRAM,01_dram_read,bytes,1,1,4.5,90.1,NVIDIA Fake 9000,13.0,2026-01-31
DRAM,02_dram_copy,bytes,1,1,4.25,90.1,NVIDIA Fake 9000,13.0,2026-01-31
L2 cache,03_l2_read,bytes,1,1,6.5,,NVIDIA Fake 9000,13.0,2026-01-31
float32,05_float32_fma,operations,1,1,60,90,NVIDIA Fake 9000,13.0,2026-01-31
float16 tensor cores,06_half_mma,operations,1,1,600,60,NVIDIA Fake 9000,13.0,2026-01-31
float16 tensor cores,07_half_wgmma,operations,1,1,900,90,NVIDIA Fake 9000,13.0,2026-01-31
"""
DRAM = """\
name,metric,unit,value
read from DRAM,dram__bytes_read.sum,byte,536870912
written to DRAM,dram__bytes_write.sum,byte,268435456
"""


@pytest.mark.builds(ROOFLINE)
class TestCeilings:
    """The program of W3L1."""

    @cpu_only
    @pytest.mark.parametrize("order", ["forward", "reversed", "7"])
    def test_every_kernel_computes_what_it_claims(self, tmp_path, order):
        result = run(PROGRAM, "--n", 17000, "--repeats", 2, "--csv-dir", tmp_path, SIMT_ORDER=order)
        assert result.returncode == 0 and "FAIL" not in result.stdout, result.stdout + result.stderr
        rows = read(tmp_path / "main.csv")
        assert [row["stage"] for row in rows] == STAGES and {row["verdict"] for row in rows} == {"PASS"}
        computed = {row["stage"]: float(row["operations"]) for row in rows}
        n, repeats = 17000, 2
        assert computed["01_dram_read"] == computed["02_dram_copy"] == computed["04_shared_read"] == 0
        assert computed["05_float32_fma"] == 2 * n * repeats
        assert computed["06_half_mma"] == computed["07_half_wgmma"] == 2 * 64 * n * repeats
        assert computed["08_int8_mma"] == computed["09_int8_wgmma"] == 2 * 128 * n * repeats

    @cpu_only
    def test_its_main_input_without_a_gpu_is_small_and_no_time_is_printed(self, tmp_path):
        result = run(PROGRAM, "--no-small", "--csv-dir", tmp_path)
        assert result.returncode == 0 and "40000 x 3" in result.stdout and "GFLOP" not in result.stdout
        assert "need a GPU" in result.stdout and [path.name for path in tmp_path.iterdir()] == ["main.csv"]

    @cpu_only
    def test_what_would_not_be_exact_is_refused(self):
        result = run(PROGRAM, "--no-small", "--n", 1000, "--repeats", 70000, "--stage", "1,6")
        assert result.returncode == 2 and "PASS" not in result.stdout
        assert "float32 would round" in result.stderr and "65535 blocks" in result.stderr

    @cpu_only
    def test_reads_from_shared_memory_have_no_bank_conflicts(self, tmp_path):
        """And are as many as claimed: 16 bytes per lane, 4 per thread and repeat, all 32 lanes."""
        result = run(
            ROOT / "simt/analyze",
            ROOT / ROOFLINE / "main.cu",
            "--csv",
            tmp_path / "counts.csv",
            "--",
            "--stage",
            4,
            "--profile",
            "--n",
            8192,
            "--repeats",
            5,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        (line,) = [
            row
            for row in read(tmp_path / "counts.csv")
            if row["file"] and row["what"] == "shared load" and row["bytes_per_lane"] == "16"
        ]
        assert line["wavefronts"] == line["ideal_wavefronts"] and int(line["requests"]) == 2 * 8 * 4 * 5
        assert int(line["lanes"]) == 32 * int(line["requests"])


class TestMachineCode:
    """What the page says of the loops that nvcc makes: no ceiling is that of a kernel which the compiler shortened."""

    @pytest.fixture(scope="class")
    def loops(self, tmp_path_factory):
        """{(kernel, opcode): (instructions of its loop, how many of them are that)}."""
        cuobjdump = shutil.which("cuobjdump")
        if not NVCC or not cuobjdump:
            pytest.skip("needs nvcc and cuobjdump, which show the machine code")
        if "release 13.0" not in run(NVCC, "--version").stdout:
            pytest.skip("another nvcc than the page's may make other loops")
        cubin = tmp_path_factory.mktemp("sass") / "roofline.cubin"
        words = ["-O3", "-std=c++17", "-arch=sm_90a", "-I.", "-cubin", f"{ROOFLINE}/main.cu", "-o", cubin]
        compiled = run(NVCC, *words)
        assert compiled.returncode == 0, compiled.stderr
        found = {}
        for part in run(cuobjdump, "-sass", cubin).stdout.split("Function : ")[1:]:
            kernel = re.match(r"_ZN6ladder8roofline\d+(\w+?_kernel)", part).group(1)
            code = [(int(at, 16), words) for at, words in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", part)]
            for at, words in code:
                back = re.search(r"BRA(?:\.\w+)* .*?0x([0-9a-f]+)", words)
                if back and int(back.group(1), 16) < at:
                    inside = [each for place, each in code if int(back.group(1), 16) <= place <= at]
                    opcodes = [re.sub(r"^@!?\w+ ", "", each).split()[0] for each in inside]
                    for opcode in set(opcodes):
                        counts = (len(opcodes), opcodes.count(opcode))
                        found[kernel, opcode] = max(found.get((kernel, opcode), (0, 0)), counts)
        return found

    def test_the_page_counts_the_instructions_of_the_loops(self, loops):
        said = re.findall(r"^\| (\w+) \(\d\d\) \| (\d+) \| (\d+) `([\w.]+)`", PAGE.read_text(encoding="utf-8"), re.M)
        assert len(said) == 6
        for kernel, instructions, count, opcode in said:
            assert loops[kernel, opcode] == (int(instructions), int(count)), (kernel, opcode)


class TestPage:
    def test_operators_are_counted_as_the_programs_count(self):
        text = PAGE.read_text(encoding="utf-8")
        rows = re.findall(r"^\| ([\w ,]+) \| [^|]+ \| (\d) \| (\d+) \| ([\d.]+) \|$", text, re.M)
        counted = {name: (int(operations), int(size), float(each)) for name, operations, size, each in rows}
        assert list(counted) == ["copy, transpose", "vector add", "sum", "RMSNorm"]
        for operations, size, each in counted.values():
            assert each == pytest.approx(operations / size, abs=0.001)
        for name, operator in (("sum", "sum"), ("RMSNorm", "rms_norm"), ("copy, transpose", "copy")):
            assert counted[name][0] == roofline.PER_ELEMENT[operator]

    def test_the_numbers_of_the_main_input_are_those_of_ladder_json(self):
        main, text = ladders.find("W3L1").main, PAGE.read_text(encoding="utf-8")
        assert f"reads {4e-6 * main['n']:.0f} MB, {main['repeats']} times" in text
        assert main["n"] % (132 * 64 * 256) == 0  # as many tiles for each of an H200's SMs


class TestRoofline:
    """The plot, on invented numbers."""

    @pytest.fixture
    def machine(self, tmp_path):
        machine = Machine(tmp_path, gpu=False)
        description = '{"title": "t", "operator": "sum", "program": "p", "main": {"n": 4}, "stages": ["01_dram_read"]}'
        machine.write("lectures/W3L1_roofline/ladder.json", description)
        machine.write("profiling_results/fake-9000/matrix/main.csv", ladder_csv())
        machine.write("profiling_results/fake-9000/matrix/ncu/03_tiled.csv", DRAM)
        return machine

    def drawn(self, machine):
        return sorted(path.name for path in (machine.root / "plots").glob("*roofline*"))

    def test_without_ceilings_it_says_so_in_one_sentence(self, machine):
        result = machine.run("plot")
        assert result.returncode == 0 and "make bench S=W3L1" in result.stdout and self.drawn(machine) == []

    def test_with_ceilings_it_is_drawn_and_the_same_each_time(self, machine):
        machine.write("profiling_results/fake-9000/W3L1/ceilings.csv", CEILINGS)
        contents = set()
        for _ in range(2):
            assert machine.run("plot").returncode == 0
            contents.add((machine.root / "plots/fake-9000_roofline.svg").read_bytes())
        assert self.drawn(machine) == ["fake-9000_roofline.svg"] and len(contents) == 1
        (svg,) = contents
        for words in (
            "float32 60 (90 %)",
            "float16 tensor cores 900",
            "DRAM read, 4.5",
            "DRAM copied, 4.25",
            "03_tiled",
            "01_basic",
        ):
            assert f"<!-- {words}".encode() in svg, words
        assert b"cores 600" not in svg  # the better of two instructions is the ceiling

    def test_a_stage_lies_at_its_operations_per_byte(self, machine):
        """3 × 268 MB were counted of 03, the fewest possible are 2 × 268 MB: a third of the intensity is lost."""
        ladder = ladders.find("matrix")
        folder = machine.root / "profiling_results/fake-9000"
        rows = timed.read(folder / "matrix/main.csv", ladder)
        points = {point.stage: point for point in roofline.points(folder, ladder, rows)}
        computed = 4 * 8192 * 8192
        for stage, intensity, counted in (("02_reduction5", 1 / 2, False), ("03_tiled", 1 / 3, True)):
            assert points[stage].intensity == pytest.approx(intensity, rel=0.001) and points[stage].counted == counted
        for row in rows[:3]:
            assert points[row["stage"]].tera == pytest.approx(computed / float(row["microseconds"]) / 1e6)

    def test_names_that_are_pushed_apart_keep_their_order(self):
        values = [3.0, 1.0, 1.1, 1.05, 9.0]
        moved = roofline.spread(values, 0.5)
        order = sorted(range(5), key=lambda place: moved[place])
        assert order == [1, 3, 2, 0, 4]
        assert all(moved[b] - moved[a] > 0.499 for a, b in zip(order, order[1:]))


@cpu_only
@pytest.mark.builds("{ladder.path}")
@pytest.mark.parametrize("ladder", map(ladders.find, ["matrix", "W2L1", "W1L2"]), ids=lambda ladder: ladder.id)
def test_the_roofline_counts_operations_as_the_programs_do(tmp_path, ladder):
    """CSVs that are older than the column `operations` are read with a table of the tools."""
    given = dict.fromkeys(ladder.main, 3)
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    result = run(
        program(ladder.path), *words, "--no-small", "--stage", ladder.stages[0].name, "--csv", tmp_path / "x.csv"
    )
    assert result.returncode == 0, result.stdout + result.stderr
    (row,) = read(tmp_path / "x.csv")
    assert float(row["operations"]) == roofline.PER_ELEMENT[ladder.operator] * math.prod(given.values())


# --- W3L2 ----------------------------------------------------------------------------------------------------

NCU = "lectures/W3L2_nsight_compute"
NCU_PAGE = ROOT / NCU / "README.md"
READER = ROOT / NCU / "read_report.py"
STORED = results.store() / "h200/matrix/ncu"


class Fake:
    """As much of a report of the package ncu_report as the lesson uses: one range, one launch."""

    def __init__(self, kernel, values):
        self.kernel, self.values = kernel, values

    def load_report(self, path):
        assert path.endswith(".ncu-rep")
        return self

    def num_ranges(self):
        return 1

    num_actions = num_ranges

    def range_by_idx(self, place):
        assert place == 0
        return self

    action_by_idx = range_by_idx

    def name(self):
        return self.kernel

    def metric_names(self):
        return list(self.values)

    def metric_by_name(self, name):
        value = self.values[name]
        return types.SimpleNamespace(has_value=lambda: value is not None, value=lambda: value)


class TestReader:
    """The lesson's program, on stored counters and on reports."""

    @pytest.fixture
    def reader(self):
        spec = importlib.util.spec_from_file_location("read_report", READER)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def test_the_page_shows_what_it_prints(self):
        """make readme puts it there."""
        result = run(sys.executable, READER, STORED / "02_reduction5.csv")
        assert result.returncode == 0 and f"```text\n{result.stdout}```\n" in NCU_PAGE.read_text(encoding="utf-8")

    def test_a_report_gives_the_same_answers_as_the_csv(self, reader, monkeypatch, capsys, tmp_path):
        ((kernel, values),) = reader.of_csv(STORED / "09_streaming.csv")
        monkeypatch.setitem(sys.modules, "ncu_report", Fake(kernel, {**values, "launch__stack_size": None}))
        (tmp_path / "09_streaming.ncu-rep").write_bytes(b"a report")
        assert reader.main([str(tmp_path / "09_streaming.ncu-rep")]) == 0
        first = capsys.readouterr().out
        assert reader.main([str(STORED / "09_streaming.csv")]) == 0
        assert first == capsys.readouterr().out and "of them for data from global memory" in first

    def test_every_metric_is_one_that_make_profile_stores(self, reader):
        asked = {value for value in vars(reader).values() if isinstance(value, str) and "__" in value[:8]}
        asked |= {*reader.SHARED.values(), *reader.WAVEFRONTS.values()}
        asked = {metric for metric in asked if "{}" not in metric}
        asked |= {reader.STALL.format(reason) for reason in reader.REASONS}
        assert len(asked) > 15 and asked <= set(counters.COUNTERS)

    def test_counters_that_a_file_lacks_are_dashes(self, reader, tmp_path, capsys):
        (tmp_path / "x.csv").write_text("name,metric,unit,value\nduration,gpu__time_duration.sum,ns,missing\n")
        assert reader.main([str(tmp_path / "x.csv")]) == 0
        assert "DRAM is busy - of the time" in capsys.readouterr().out

    def test_what_it_cannot_read_it_names_in_one_sentence(self, reader, monkeypatch, tmp_path):
        with pytest.raises(SystemExit, match="no such file"):
            reader.main([str(tmp_path / "none.csv")])
        (tmp_path / "times.csv").write_text("stage,microseconds\n01_basic,1\n")
        with pytest.raises(SystemExit, match="has no counters"):
            reader.main([str(tmp_path / "times.csv")])
        monkeypatch.setitem(sys.modules, "ncu_report", None)  # as if it were not installed
        (tmp_path / "x.ncu-rep").write_bytes(b"")
        with pytest.raises(SystemExit, match="pip install ncu-report"):
            reader.main([str(tmp_path / "x.ncu-rep")])

    def test_the_package_reads_every_stored_report(self, reader):
        pytest.importorskip("ncu_report", reason="ncu-report is not installed; make test installs it")
        reports = sorted(results.store().glob("*/*/reports/*.ncu-rep"))
        if not reports:
            pytest.skip("no report is stored yet; make profile on a GPU stores some")
        for path in reports:
            ((_, stored),) = reader.of_csv(path.parents[1] / f"ncu/{path.stem}.csv")
            for _, values in reader.of_report(path):
                assert values["launch__registers_per_thread"] == stored["launch__registers_per_thread"], path
            assert path.stat().st_size <= profile.MOST_BYTES
