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
from test_claims_of_types_and_rows import counter

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
        assert result.returncode == 0 and result.stdout.count("skipped") == 4, result.stdout
        assert "float32 would round" in result.stdout and "65535 blocks" in result.stdout

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


class TestMeasured:
    """What W3L1's page says in words of the times and counters of an H200."""

    FOLDER = results.store() / "h200/W3L1"

    def count(self, stage, name):
        return counter(self.FOLDER, stage, name)

    def test_every_memory_was_the_one_that_limits(self):
        n, turns = ladders.find("W3L1").main.values()
        assert self.count("01_dram_read", "dram_read") == pytest.approx(4 * n * turns, rel=0.001)
        assert self.count("03_l2_read", "dram_read") == pytest.approx(4 * n, rel=0.001)
        assert self.count("01_dram_read", "dram_busy") == pytest.approx(96, abs=0.5)
        assert self.count("03_l2_read", "l2_read_hits") > 99.5 and self.count("04_shared_read", "l1_busy") > 99.5
        assert self.count("04_shared_read", "load_wavefronts") == pytest.approx(
            4 * self.count("04_shared_read", "shared_loads"), rel=0.001
        )
        tera = {row["stage"]: float(row["tera_per_s"]) for row in read(self.FOLDER / "ceilings.csv")}
        assert tera["01_dram_read"] == pytest.approx(1.1 * tera["02_dram_copy"], rel=0.01)
        assert tera["03_l2_read"] == pytest.approx(2 * tera["01_dram_read"], rel=0.02)

    def test_float32_issues_in_nearly_every_slot(self):
        n, turns = ladders.find("W3L1").main.values()
        multiply_adds = n * turns / 32
        assert multiply_adds / self.count("05_float32_fma", "instructions") == pytest.approx(0.96, abs=0.005)
        assert self.count("05_float32_fma", "issue_busy") == pytest.approx(98, abs=0.5)
        assert self.count("05_float32_fma", "most_active") == pytest.approx(
            1.01 * self.count("05_float32_fma", "active"), rel=0.005
        )

    def test_wgmma_lacks_the_clock_and_mma_the_tensor_cores(self):
        least = 32 * 64 * 256 * 64 * 512 / 2048
        took = {row["stage"]: float(row["microseconds"]) for row in results.read(self.FOLDER / "main.csv", ["stage"])}
        for stage in ("07_half_wgmma", "09_int8_wgmma"):
            assert least / self.count(stage, "active") == pytest.approx(0.995, abs=0.002)
        for stage in ("06_half_mma", "08_int8_mma"):
            assert 0.64 < least / self.count(stage, "active") < 0.66
            assert round(self.count(stage, "math_throttle")) == 12 and round(self.count(stage, "waits")) == 21
        ghz = {stage: self.count(stage, "active") / time / 1e3 for stage, time in took.items() if "mma" in stage}
        for stage, clock in (
            ("06_half_mma", 1.81),
            ("07_half_wgmma", 1.54),
            ("08_int8_mma", 1.81),
            ("09_int8_wgmma", 1.72),
        ):
            assert ghz[stage] == pytest.approx(clock, abs=0.006)
        alone = self.count("07_half_wgmma", "duration")
        assert self.count("07_half_wgmma", "active") / alone == pytest.approx(1.80, abs=0.006)
        assert 1e3 * took["07_half_wgmma"] / alone == pytest.approx(7 / 6, abs=0.01)

    def test_arithmetic_is_free_until_the_ridge(self):
        rows = results.read(self.FOLDER / "intensity.csv", ["repeats"])
        took = {int(row["repeats"]): float(row["microseconds"]) for row in rows}
        assert all(took[turns] == pytest.approx(135, abs=1) for turns in (1, 2, 4, 8, 16, 32))
        assert took[32] < 1.04 * float(rows[0]["copy_microseconds"]) and took[64] == pytest.approx(
            1.4 * took[32], rel=0.02
        )
        assert took[128] / took[64] == pytest.approx(1.7, abs=0.03) and took[1024] / took[512] == pytest.approx(
            1.95, abs=0.01
        )
        each = (took[1024] - took[512]) / 512
        assert each == pytest.approx(2.13, abs=0.02)
        assert all(40 < took[turns] - turns * each < 56 for turns in (64, 128, 256, 512))

    def test_stages_of_the_matrix_ladder_lie_where_the_page_says(self):
        folder, ladder = results.store() / "h200", ladders.find("matrix")
        points = {p.stage: p for p in roofline.points(folder, ladder, timed.read(folder / "matrix/main.csv", ladder))}
        for stage in ("02_reduction5", "03_tiled", "04_hybrid", "05_warp_shuffle"):
            assert 0.335 < points[stage].intensity < 0.39 and points[stage].counted
        copy = next(
            float(row["tera_per_s"]) for row in read(self.FOLDER / "ceilings.csv") if row["stage"] == "02_dram_copy"
        )
        share = {name: point.tera / point.intensity / copy for name, point in points.items()}
        near = "06_vectorized 07_registers 08_critical_path 09_streaming 15_many_blocks 16_held_reads".split()
        assert all(0.965 < share[stage] < 1.015 for stage in near)
        below = "10_block_shapes 11_persistent 12_bulk_copy 13_cluster 14_dependent_launch".split()
        assert all(share[stage] < 0.95 for stage in below)


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


class TestClaims:
    """What W3L2's page says in words of the stored counters."""

    def test_1_bound_by_memory(self):
        folder = STORED.parent
        assert counter(folder, "01_basic", "dram_busy") < 10 and counter(folder, "01_basic", "issue_busy") < 10
        needed = counter(folder, "09_streaming", "dram_read")
        for stage in ("02_reduction5", "03_tiled", "05_warp_shuffle"):
            assert counter(folder, stage, "dram_busy") > 75
            assert 1.7 < counter(folder, stage, "dram_read") / needed < 2.05
        requested = 32 * counter(folder, "01_basic", "load_requests") * counter(folder, "01_basic", "load_sectors")
        assert requested / counter(folder, "01_basic", "l2_to_l1") == pytest.approx(8, abs=0.3)

    def test_2_coalesced(self):
        folder = STORED.parent
        assert counter(folder, "01_basic", "load_sectors") == pytest.approx((32 + 32 + 1) / 3, abs=0.05)
        assert counter(folder, "01_basic", "store_sectors") == 32
        assert counter(folder, "09_streaming", "load_sectors") == 16

    def test_3_no_wavefront_too_many_whatever_the_conflicts_say(self):
        for stage in ("02_reduction5", "03_tiled", "05_warp_shuffle"):
            for op in ("load", "store"):
                names = (f"{op}_wavefronts", f"shared_{op}s", f"{op}_conflicts")
                wavefronts, instructions, conflicts = (counter(STORED.parent, stage, name) for name in names)
                assert wavefronts == instructions and conflicts > 0

    def test_4_two_lanes_of_32(self):
        text = (STORED.parent / "ncu_details/02_reduction5.txt").read_text(encoding="utf-8")
        (lanes,) = re.findall(r"Avg\. Not Predicated Off Threads Per Warp +([\d.]+)", text)
        assert 32 - float(lanes) == pytest.approx(2, abs=0.3)

    def test_5_half_the_occupancy_and_as_busy(self):
        folder = STORED.parent
        assert counter(folder, "01_basic", "blocks") == 32 and counter(folder, "01_basic", "occupancy") < 13
        ratio = counter(folder, "09_streaming", "occupancy") / counter(folder, "02_reduction5", "occupancy")
        assert ratio == pytest.approx(0.5, abs=0.02)
        busy = [counter(folder, stage, "dram_busy") for stage in ("02_reduction5", "09_streaming")]
        assert busy[0] == pytest.approx(busy[1], rel=0.02)

    def test_6_all_wait_for_memory_and_the_barriers_were_not_the_bottleneck(self):
        folder = STORED.parent
        for stage in ("01_basic", "02_reduction5", "03_tiled", "05_warp_shuffle", "09_streaming"):
            assert counter(folder, stage, "global_wait") > 0.5 * counter(folder, stage, "waits")
        took = {row["stage"]: float(row["microseconds"]) for row in results.read(folder / "main.csv", ["stage"])}
        assert took["05_warp_shuffle"] == pytest.approx(took["02_reduction5"], rel=0.01)
        assert counter(folder, "05_warp_shuffle", "instructions") < counter(folder, "02_reduction5", "instructions")
