"""The figures in the pages are those of the stored files; and the tool that writes them, on invented numbers."""

import pytest

from conftest import LADDER, ROOT, run
from fake_ladder import STAGES, ladder_csv
from fakes import Machine

COUNTERS_CSV = """\
name,metric,unit,value
GPU,,,NVIDIA Fake 9000
Nsight Compute,,,2025.3.9.0
duration,gpu__time_duration.sum,ns,{time}
read from DRAM,dram__bytes_read.sum,byte,268435456
of these: waits at a barrier,smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio,inst,1.25
L1 hit rate of global loads,l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct,,missing
"""


def test_no_page_is_stale():
    """README.md, the write-ups, PROFILING.md and the lectures show what is stored; make readme renews them."""
    result = run("python3", "scripts/readme.py", "--check")
    assert result.returncode == 0, result.stderr


class Tree(Machine):
    """A copy with pages of its own, and the invented results of one GPU."""

    def __init__(self, folder, stored=True):
        super().__init__(folder)
        self.page("README.md", "# Root\n\n" + block("table:matrix_ladder") + "\nThe end.\n")
        self.page(f"{LADDER}/README.md", block("figures"))
        for stage in STAGES:
            self.page(f"{LADDER}/{stage}/README.md", f"# {stage}\n\n" + block("figures") + block("table:cpu_device"))
        counters = block("table:counters") + "\n" + block("table:counters_03_tiled")
        self.page("assignment1/rms_norm/PROFILING.md", counters)
        self.store = self.root / "profiling_results/fake-9000"
        if stored:
            (self.store / "ncu").mkdir(parents=True)
            (self.store / "matrix_8192x8192.csv").write_text(ladder_csv())
            (self.store / "environment.txt").write_text("SM clock right after: 9 MHz\nSM clock at most: 10 MHz\n")
            for stage, microseconds in STAGES.items():
                (self.store / f"ncu/{stage}.csv").write_text(COUNTERS_CSV.format(time=1000 * microseconds))

    def page(self, name, text=None):
        path = self.root / name
        if text is not None:
            path.write_text(text, encoding="utf-8")
        return path.read_text(encoding="utf-8")

    def readme(self, *arguments):
        result = self.run("scripts/readme.py", *arguments)
        assert "Traceback" not in result.stderr, result.stderr
        return result


def block(name, inside="Not measured yet."):
    return f"<!-- {name}:begin -->\n{inside}\n<!-- {name}:end -->\n"


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.fixture
def fresh(tree):
    result = tree.readme()
    assert result.returncode == 0, result.stderr
    assert tree.readme("--check").returncode == 0
    return tree


def test_without_results_every_sentence_stays(tmp_path):
    tree = Tree(tmp_path, stored=False)
    before = tree.page("README.md")
    assert tree.readme().returncode == 0 and tree.readme("--check").returncode == 0
    assert tree.page("README.md") == before


def test_the_root_gets_a_row_a_stage_and_says_where_it_comes_from(fresh):
    text = fresh.page("README.md")
    for words in (
        f"| [02_reduction5]({LADDER}/02_reduction5/README.md) | 200.00 | 2684 | 75.0 | 53.7 | 20.00 |",
        "| copy kernel, same bytes | 150.00 | 3579 | 100 | 71.6 |",
        "NVIDIA Fake 9000, clocks as found (SM: 9 MHz right after the run, at most 10 MHz), CUDA 13.0, 2026-01-31",
        "[profiling_results/fake-9000/matrix_8192x8192.csv](profiling_results/fake-9000/matrix_8192x8192.csv)",
    ):
        assert words in text
    assert text.startswith("# Root\n\n<!-- table:matrix_ladder:begin -->\n") and text.endswith("-->\n\nThe end.\n")
    assert "Not measured" not in text and "![" not in text


def test_a_plot_is_shown_once_it_is_drawn(fresh):
    (fresh.root / "plots/fake-9000_matrix_bandwidth.png").write_bytes(b"a picture")
    assert "README.md" in fresh.readme("--check").stderr
    fresh.readme()
    assert "](plots/fake-9000_matrix_bandwidth.png)\n\n|" in fresh.page("README.md")
    assert "](../../../plots/fake-9000_matrix_bandwidth.png)" in fresh.page(f"{LADDER}/README.md")


def test_a_stage_gets_its_row_the_difference_and_its_counters(fresh):
    text = fresh.page(f"{LADDER}/03_tiled/README.md")
    assert "| 03_tiled | 250.00 |" in text and "| copy kernel, same bytes | 150.00 |" in text
    assert "03_tiled takes 25.0 % more time than 02_reduction5." in text
    assert "| counter | 02_reduction5 | 03_tiled |" in text
    assert "| read from DRAM, MB | 268.4 | 268.4 |" in text
    assert "| L1 hit rate of global loads | missing | missing |" in text
    assert "](../../../../profiling_results/fake-9000/ncu/03_tiled.csv)" in text
    assert "04_short takes 84.0 % less" not in text
    assert "02_reduction5 is 20.0 times as fast as 01_basic." in fresh.page(f"{LADDER}/02_reduction5/README.md")
    assert "01_basic takes" not in fresh.page(f"{LADDER}/01_basic/README.md")


def test_a_sweep_is_a_column_a_shape_once_it_is_measured(fresh):
    fresh.page("other.md", block("table:few_rows"))
    assert fresh.readme().returncode == 0 and "Not measured yet." in fresh.page("other.md")
    longer = ladder_csv(16, 4096, factor={"04_short": 2}).split("\n", 1)[1]
    (fresh.store / "few_rows.csv").write_text(ladder_csv(1, 4096) + longer)
    assert "other.md" in fresh.readme("--check").stderr
    assert fresh.readme().returncode == 0
    text = fresh.page("other.md")
    assert "| stage | 1 × 4096 | 16 × 4096 |" in text
    assert f"| [04_short]({LADDER}/04_short/README.md) | 40.00 | 80.00 |" in text
    assert "| copy kernel, same bytes | 150.00 | 150.00 |" in text
    assert "(profiling_results/fake-9000/few_rows.csv)" in text
    fresh.page("other.md", text.replace("few_rows:begin -->", "few_rows:begin 03_tiled -->"))
    assert fresh.readme().returncode == 0
    assert "03_tiled]" in fresh.page("other.md") and "04_short]" not in fresh.page("other.md")
    fresh.page("other.md", fresh.page("other.md").replace("few_rows:begin 03_tiled -->", "few_rows:begin 03_none -->"))
    assert "few_rows.csv has no stage 03_none" in fresh.readme().stderr


def test_the_counters_of_some_stages_can_be_chosen(fresh):
    fresh.page("other.md", block("table:counters").replace("begin -->", "begin 01_basic 04_short -->"))
    assert fresh.readme().returncode == 0
    assert "| counter | 01_basic | 04_short |" in fresh.page("other.md")
    fresh.page("other.md", fresh.page("other.md").replace("begin 01_basic", "begin 01_none"))
    assert "there is no stage 01_none" in fresh.readme().stderr


def test_the_walkthrough_compares_all_stages(fresh):
    text = fresh.page("assignment1/rms_norm/PROFILING.md")
    assert "| counter | 01_basic | 02_reduction5 | 03_tiled | 04_short |" in text
    assert "| duration, µs | 4,000 | 200 | 250 | 40 |" in text
    assert "| counter | 02_reduction5 | 03_tiled |" in text


def test_a_stage_that_was_not_measured_keeps_its_sentence(tree):
    path = tree.store / "matrix_8192x8192.csv"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith("04_short")))
    (tree.store / "ncu/03_tiled.csv").unlink()
    assert tree.readme().returncode == 0
    assert "Not measured yet." in tree.page(f"{LADDER}/04_short/README.md")
    assert "| counter | 02_reduction5 |" in tree.page(f"{LADDER}/03_tiled/README.md")


@pytest.mark.parametrize("changed", ["README.md", f"{LADDER}/03_tiled/README.md", "assignment1/rms_norm/PROFILING.md"])
def test_an_edited_figure_is_stale_and_named(fresh, changed):
    before = fresh.page(changed)
    assert "250" in before
    fresh.page(changed, before.replace("250", "150", 1))
    result = fresh.readme("--check")
    assert result.returncode == 1 and changed in result.stderr and "make readme" in result.stderr
    assert result.stderr.count(".md") == 1
    assert fresh.readme().returncode == 0 and fresh.page(changed) == before


def test_a_new_result_makes_the_pages_stale(fresh):
    (fresh.store / "matrix_8192x8192.csv").write_text(ladder_csv(factor={"03_tiled": 0.9}))
    result = fresh.readme("--check")
    assert result.returncode == 1
    for name in ("README.md", f"{LADDER}/README.md", f"{LADDER}/03_tiled/README.md", f"{LADDER}/04_short/README.md"):
        assert name in result.stderr
    assert "01_basic" not in result.stderr and "PROFILING" not in result.stderr


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("README.md", "# No marker\n", "lacks the marker <!-- table:matrix_ladder:begin -->"),
        (f"{LADDER}/03_tiled/README.md", "# No marker\n", "lacks the marker <!-- figures:begin -->"),
        ("README.md", "<!-- table:matrix_ladder:begin -->\n", "has no <!-- table:matrix_ladder:end -->"),
        ("README.md", "<!-- table:matrix_ladder:end -->\n", "has no <!-- table:matrix_ladder:begin -->"),
        ("README.md", "<!-- table:matrix_ladder:begin -->\n<!-- table:x:end -->\n", "has no <!-- table:x:begin -->"),
        ("README.md", "<!-- table:x:begin -->\n<!-- figures:begin -->\n", "comes before <!-- table:x:end -->"),
        ("other.md", block("table:nonsense"), "unknown table nonsense"),
        ("other.md", block("table:counters_07_nonsense"), "no stage 07_nonsense"),
    ],
)
def test_broken_markers_are_named_with_their_file(fresh, name, text, said):
    fresh.page(name, text)
    for arguments in ([], ["--check"]):
        result = fresh.readme(*arguments)
        assert result.returncode == 1 and name in result.stderr and said in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert fresh.page(name) == text


@pytest.mark.parametrize(
    "name, text",
    [
        ("matrix_8192x8192.csv", "stage,verdict\n01_basic,PASS\n"),
        ("matrix_8192x8192.csv", ladder_csv().replace("250.00", "fast")),
        ("matrix_8192x8192.csv", ladder_csv() + "05_cut,PASS,81"),
        ("matrix_8192x8192.csv", ladder_csv().splitlines()[0] + "\n"),
        ("ncu/03_tiled.csv", "name,metric,unit,value\nduration,gpu__time_duration.sum,ns,soon\n"),
    ],
    ids=["columns missing", "no number", "cut off", "no rows", "no counter"],
)
def test_a_damaged_file_is_an_error_and_changes_nothing(fresh, name, text):
    before = fresh.page("README.md")
    (fresh.store / name).write_text(text)
    result = fresh.readme()
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1
    assert fresh.page("README.md") == before


CSV = """\
variant,what,buffer_bytes,microseconds,gb_per_s,percent_of_ceiling,is_best,iterations,gpu,cuda_runtime,date,sm_clock_mhz
01_a,"one, two",65536,1.50,12.0,40.0,0,50,NVIDIA Fake 9000,13.0,2026-01-31,10
02_b,three,1073741824,3.00,30.0,100.0,1,50,NVIDIA Fake 9000,13.0,2026-01-31,10
"""


def test_any_stored_csv_can_be_a_table(tree):
    (tree.store / "copies.csv").write_text(CSV)
    tree.page("other.md", block("table:copies"))
    assert tree.readme().returncode == 0
    text = tree.page("other.md")
    assert "| variant | what | buffer | µs | GB/s | % of ceiling | best |\n" in text
    assert "| --- | --- | ---: | ---: | ---: | ---: | --- |\n" in text
    assert "| 01_a | one, two | 64 KiB | 1.50 | 12.0 | 40.0 |  |" in text
    assert "| 02_b | three | 1 GiB | 3.00 | 30.0 | 100.0 | yes |" in text
    assert "Iterations 50. NVIDIA Fake 9000, clocks as found (SM: at most 10 MHz), CUDA 13.0, 2026-01-31." in text


def test_columns_of_a_csv_can_be_chosen(tree):
    (tree.store / "copies.csv").write_text(CSV)
    marker = "<!-- table:copies:begin variant gb_per_s -->\n"
    tree.page("other.md", block("table:copies").replace("<!-- table:copies:begin -->\n", marker))
    assert tree.readme().returncode == 0
    assert marker + "| variant | GB/s |\n| --- | ---: |\n| 01_a | 12.0 |\n" in tree.page("other.md")
    tree.page("other.md", tree.page("other.md").replace("gb_per_s -->", "speed -->"))
    result = tree.readme()
    assert result.returncode == 1 and "speed" in result.stderr and "gb_per_s" in result.stderr


def test_an_unknown_gpu_is_refused_with_those_that_are_stored(fresh):
    result = fresh.readme("--gpu", "z80")
    assert result.returncode == 1 and "GPU=z80" in result.stderr and "fake-9000" in result.stderr


CPU_DEVICE_CSV = """\
kernel,launches,grid,block,file,line,source,what,bytes_per_lane,requests,lanes,bytes,sectors,ideal_sectors,wavefronts,ideal_wavefronts,distinct_bytes
k,1,64x1x1,128x1x1,,,,global load,,12800,409600,1638400,51200,51200,,,1638400
k,1,64x1x1,128x1x1,a/kernel.cuh,7,a | b;,global load,4,12800,409600,1638400,51200,51200,,,
k,1,64x1x1,128x1x1,a/kernel.cuh,7,a | b;,shared store,4,6400,102400,409600,,,12800,6400,
k,1,64x1x1,128x1x1,a/kernel.cuh,8,__syncthreads();,block_barrier,,768,24576,,,,,,
"""
NCU_CSV = """\
name,metric,unit,value
GPU,,,NVIDIA Fake 9000
a,l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,,{requests}
b,l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio,,4
"""


@pytest.mark.parametrize("gpu", [True, False])
def test_what_the_cpu_device_counted_needs_no_gpu(tmp_path, gpu):
    tree = Tree(tmp_path, stored=gpu)
    page = f"{LADDER}/03_tiled/README.md"
    assert tree.readme().returncode == 0 and tree.page(page).endswith(block("table:cpu_device"))
    folder = tree.root / "profiling_results/cpu_device"
    folder.mkdir(parents=True)
    (folder / "03_tiled.csv").write_text(CPU_DEVICE_CSV)
    (folder / "environment.txt").write_text("input: 64 x 100 float32\ng++: 99\n")
    assert "03_tiled" in tree.readme("--check").stderr
    assert tree.readme().returncode == 0
    text = tree.page(page)
    for words in (
        "| 7 | `a \\| b;` | global load 4 B | 200 | 4 sectors | 4 | 32 |\n"
        "|  |  | shared store 4 B | 100 | 2 wavefronts | 1 | 16 |\n",
        "For an element, loads ask for 256 bytes and move 256; 3 barriers a block, 0 shuffles a warp. 64 × 100 float32",
        "](../../../../profiling_results/cpu_device/03_tiled.csv)",
    ):
        assert words in text
    assert "syncthreads" not in text and ("| 03_tiled | 250.00 |" in text) == gpu


def test_the_cpu_devices_sums_stand_beside_those_of_the_gpu(tree):
    tree.page("other.md", block("table:ncu_comparison"))
    folder = tree.root / "profiling_results/cpu_device"
    folder.mkdir(parents=True)
    for stage in ("02_reduction5", "03_tiled"):
        (folder / f"{stage}.csv").write_text(CPU_DEVICE_CSV)
    (tree.store / "ncu_64x8192").mkdir()
    (tree.store / "ncu_64x8192/02_reduction5.csv").write_text(NCU_CSV.format(requests=12801))
    (tree.store / "ncu/03_tiled.csv").write_text(NCU_CSV.format(requests=2 * 12800 * 128))
    assert tree.readme().returncode == 0
    text = tree.page("other.md")
    assert "| 02_reduction5 | 12,800 | 51,200 |" in text
    assert "| 03_tiled | 12,800 / 25,600 | 51,200 / 102,400 |" in text
    assert "01_basic" not in text and "those of 8192 rows are divided by 128" in text
