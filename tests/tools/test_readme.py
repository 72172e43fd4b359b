"""The figures in the pages are those of the stored files; and the tool that writes them, on invented numbers."""

import json
import shutil

import pytest
from conftest import LADDER
from fake_ladder import MICROSECONDS, STAGES, ladder_csv
from fakes import CONTROLS, LADDERS, LECTURE, NAMES, VECTOR, WITH_CONTROLS, Machine, refused
from ladder import __main__ as command_line
from ladder.core import ladders, results

COUNTERS_CSV = """\
name,metric,unit,value
GPU,,,NVIDIA Fake 9000
Nsight Compute,,,2025.3.9.0
duration,gpu__time_duration.sum,ns,{time}
read from DRAM,dram__bytes_read.sum,byte,268435456
threads,launch__block_size,,128
"of these, stalled at a barrier (barrier)",smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio,inst,1.25
L1 hit rate of global loads,l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct,,missing
"""
CLAIMS = "loads=4x4 stores=4x4 asked=8 barriers=1x8 shuffles=5"
PROFILING = "assignment1/rms_norm/PROFILING.md"


def test_no_page_is_stale(capsys):
    """README.md, the stages' pages, PROFILING.md and the lectures show what is stored; make readme renews them."""
    assert command_line.main(["readme", "--check"]) == 0, capsys.readouterr().err


SWEEPS = [(ladder, name) for ladder in ladders.all_ladders() for name in ("main", *ladder.sweeps)]


@pytest.mark.parametrize("ladder, name", SWEEPS, ids=[f"{ladder.id}/{name}" for ladder, name in SWEEPS])
def test_every_stored_sweep_has_every_stage(ladder, name):
    wanted = [stage.name for stage in ladder.stages] if name == "main" else ladder.timed_by(name)
    for gpu in results.stored_gpus(f"{ladder.id}/{name}.csv"):
        timed_there = {row["stage"] for row in results.read(results.store() / gpu / ladder.id / f"{name}.csv")}
        assert name != "main" and ladder.sweeps[name].program or not set(wanted) - timed_there


def block(name, inside="Not measured yet.", more=""):
    return f"<!-- {name}:begin{more and ' '}{more} -->\n{inside}\n<!-- {name}:end -->\n"


def stage_page(stage, more=""):
    said = f'<!-- stage idea="the idea of {stage}"\n           change="a | b" -->\n'
    return f"# {stage}\n\n{said}\n" + block("figures", more=more) + block("table:cpu_device", more=CLAIMS)


class Tree(Machine):
    """A copy with pages of its own, and the invented results of one GPU."""

    def __init__(self, folder, stored=True):
        super().__init__(folder)
        self.page("README.md", "# Root\n\n" + block("table:matrix/ladder") + "\nThe end.\n")
        for ladder in (LADDER, VECTOR):
            self.page(f"{ladder}/README.md", block("figures"))
            for stage in NAMES[ladder]:
                self.page(f"{ladder}/{stage}/README.md", stage_page(stage))
        counters = block("table:matrix/counters") + "\n"
        counters += block("table:matrix/counters", more="02_reduction5 03_tiled counters=duration,l1_hits")
        self.page(PROFILING, counters)
        self.store = self.root / "profiling_results/fake-9000"
        if stored:
            self.put("matrix/main.csv", ladder_csv())
            self.put("vector/main.csv", ladder_csv({"n": 4194304}, STAGES[:2], {"01_basic": 2}, optional=()))
            self.put("environment.txt", "SM clock right after: 9 MHz\nSM clock at most: 10 MHz\n")
            for stage in STAGES:
                self.put(f"matrix/ncu/{stage}.csv", COUNTERS_CSV.format(time=1000 * MICROSECONDS[stage]))

    def put(self, name, text):
        return self.write(f"profiling_results/fake-9000/{name}", text)

    def page(self, name, text=None):
        if text is not None:
            self.write(name, text)
        return (self.root / name).read_text(encoding="utf-8")

    def change(self, name, old, new):
        text = self.page(name)
        assert old in text
        self.page(name, text.replace(old, new, 1))

    def readme(self, *arguments):
        return self.run("readme", *arguments)


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
        "| stage | µs | GB/s | % of copy | % of datasheet | speed-up over 01_basic |",
        f"| [02_reduction5]({LADDER}/02_reduction5/README.md) | 200.00 | 2684 | 75.0 | 53.7 | 20.00 |",
        "| copy kernel, same bytes | 150.00 | 3579 | 100 | 71.6 |",
        "8192 × 8192 float32 with a weight, cold cache, median of 50 samples. NVIDIA Fake 9000, clocks as found (SM: 9 MHz "
        "right after the run, at most 10 MHz), CUDA 13.0, 2026-01-31",
        "[profiling_results/fake-9000/matrix/main.csv](profiling_results/fake-9000/matrix/main.csv)",
    ):
        assert words in text
    assert text.startswith("# Root\n\n<!-- table:matrix/ladder:begin -->\n") and text.endswith("-->\n\nThe end.\n")
    assert "Not measured" not in text and "![" not in text


def test_the_first_page_has_a_short_table_and_the_plot_alone(fresh):
    short = block("table:matrix/ladder", more="idea ..02_reduction5")
    fresh.page("README.md", short + block("table:matrix/ladder", more="plot"))
    fresh.write("plots/fake-9000_matrix_bandwidth.svg", "a picture")
    assert fresh.readme().returncode == 0
    text = fresh.page("README.md")
    assert "| stage | the idea | µs | % of the copy's speed |" in text and "03_tiled" not in text
    assert f"| [02_reduction5]({LADDER}/02_reduction5/README.md) | the idea of 02_reduction5 | 200.00 | 75.0 |" in text
    assert "| 150.00 | 100 |" in text and text.count("](plots/fake-9000_matrix_bandwidth.svg)") == 1
    fresh.page("README.md", block("table:matrix/ladder", more="idea 09_none"))
    refused(fresh.readme(), "there is no stage 09_none in matrix")


def test_the_ladders_with_a_question_are_listed_from_naive_to_best(fresh):
    asking = {**LADDERS[VECTOR], "question": "How?"}
    fresh.write(f"{VECTOR}/ladder.json", json.dumps(asking))
    fresh.write(f"{LADDER}/ladder.json", json.dumps({**LADDERS[LADDER], "question": "Why?"}))
    fresh.page("other.md", block("table:index/ladders", more="vector"))
    assert fresh.readme().returncode == 0
    lines = [line for line in fresh.page("other.md").splitlines() if "README.md)" in line]
    best = min(MICROSECONDS, key=MICROSECONDS.get)
    times = [f"{MICROSECONDS[name]:.2f}" for name in ("01_basic", best)]
    assert lines[0].startswith(f"| [vector]({VECTOR}/README.md) | How? | 2 | 8000.00 → 200.00 | 40.0 |")
    assert lines[1].startswith(f"| [matrix]({LADDER}/README.md) | Why? | 4 | {' → '.join(times)} |")
    assert len(lines) == 2
    assert "|\n\nNVIDIA Fake 9000.\n" in fresh.page("other.md")
    fresh.page("other.md", block("table:index/ladders", more="W2L1"))
    refused(fresh.readme(), "no ladder W2L1 has a question")


def test_each_ladder_shows_its_own_results(fresh):
    """Its stages have the names of the matrix ladder's, its operator another parameter and no weight."""
    text = fresh.page(f"{VECTOR}/README.md")
    assert "| [01_basic](01_basic/README.md) | 8000.00 |" in text and "n = 4194304, cold cache" in text
    assert "(../../../profiling_results/fake-9000/vector/main.csv)" in text
    assert "02_reduction5 is 40.0 times as fast as 01_basic." in fresh.page(f"{VECTOR}/02_reduction5/README.md")
    assert "02_reduction5 is 20.0 times as fast as 01_basic." in fresh.page(f"{LADDER}/02_reduction5/README.md")


def test_a_ladder_of_another_gpu_alone_shows_that_gpus_results(fresh):
    fresh.page(f"{VECTOR}/README.md", block("figures") + "\nIt takes <!--= us 01 -->1<!--/--> µs.\n")
    shutil.rmtree(fresh.store / "vector")
    fresh.write("profiling_results/other-1/vector/main.csv", ladder_csv({"n": 7}, STAGES[:2], {}, optional=()))
    assert fresh.readme().returncode == 0
    text = fresh.page(f"{VECTOR}/README.md")
    assert "profiling_results/other-1/vector/main.csv" in text and "fake-9000" not in text
    assert f"It takes <!--= us 01 -->{MICROSECONDS['01_basic']:g}<" in text


def test_a_table_and_a_figure_may_be_of_another_gpu(fresh):
    fresh.write(
        "profiling_results/other-1/vector/main.csv", ladder_csv({"n": 7}, STAGES[:2], {"01_basic": 3}, optional=())
    )
    more = "\nIt takes <!--= us 01 gpu=other-1 -->1<!--/--> µs, and <!--= us 01 -->1<!--/--> µs.\n"
    fresh.page(f"{VECTOR}/README.md", block("figures", more="gpu=other-1") + more)
    assert fresh.readme().returncode == 0
    text, us = fresh.page(f"{VECTOR}/README.md"), MICROSECONDS["01_basic"]
    assert "profiling_results/other-1/vector/main.csv" in text and "n = 7, cold" in text
    assert f">{3 * us:g}<!--/--> µs, and <!--= us 01 -->{2 * us:g}<" in text
    fresh.page(f"{VECTOR}/README.md", block("figures", more="gpu=z80"))
    refused(fresh.readme(), "GPU=z80", "other-1")


def test_a_second_gpu_adds_a_column_and_names_the_stages_that_change_places(fresh):
    times, page = {name: float(us) for name, us in MICROSECONDS.items()}, f"{VECTOR}/README.md"
    quick, slow = sorted(STAGES[:2], key=times.get)
    factor = 1.5 * times[slow] / times[quick]
    given = {"n": 4194304}
    fresh.write(
        "profiling_results/other-1/vector/main.csv", ladder_csv(given, STAGES[:2], {quick: factor}, optional=())
    )
    assert fresh.readme().returncode == 0
    text = fresh.page(page)
    assert "| µs, OTHER-1 |" in text and f"{slow} is faster than {quick}; in this table it is the other way" in text
    fresh.write("profiling_results/other-1/vector/main.csv", ladder_csv(given, STAGES[:2], {}, optional=()))
    assert fresh.readme().returncode == 0
    assert "the stages come in the same order" in fresh.page(page)
    fresh.write("profiling_results/other-1/vector/main.csv", ladder_csv({"n": 7}, STAGES[:2], {}, optional=()))
    assert fresh.readme().returncode == 0
    assert "OTHER-1" not in fresh.page(page)


def test_a_file_of_another_gpu_alone_is_shown_where_the_first_gpu_lacks_it(fresh):
    fresh.page(
        f"{VECTOR}/README.md", block("table:lengths") + "\nIt takes <!--= us 01; in lengths n=7 -->1<!--/--> µs.\n"
    )
    assert fresh.readme().returncode != 0
    fresh.write("profiling_results/other-1/vector/lengths.csv", ladder_csv({"n": 7}, STAGES[:2], {}, optional=()))
    done = fresh.readme()
    assert done.returncode == 0, done.stderr
    text = fresh.page(f"{VECTOR}/README.md")
    assert "profiling_results/other-1/vector/lengths.csv" in text
    assert f"It takes <!--= us 01; in lengths n=7 -->{MICROSECONDS['01_basic']:g}<" in text


@pytest.mark.parametrize(
    "name, folder", [("NVIDIA H200", "h200"), ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA A100-SXM4-40GB", "a100-sxm4")]
)
def test_a_gpus_folder_has_its_name_without_the_size_of_its_memory(name, folder):
    assert results.slug(name) == folder


def test_a_ladder_s_own_environment_comes_before_the_gpu_s(fresh):
    fresh.put("vector/environment.txt", "SM clock right after: 7 MHz\nSM clock at most: 8 MHz\n")
    fresh.readme()
    assert "at most 8 MHz" in fresh.page(f"{VECTOR}/README.md") and "at most 10 MHz" in fresh.page("README.md")


def test_a_plot_is_shown_once_it_is_drawn(fresh):
    fresh.write("plots/fake-9000_matrix_bandwidth.svg", "a picture")
    assert "README.md" in fresh.readme("--check").stderr
    fresh.readme()
    assert "](plots/fake-9000_matrix_bandwidth.svg)\n\n|" in fresh.page("README.md")
    assert "](../../../plots/fake-9000_matrix_bandwidth.svg)" in fresh.page(f"{LADDER}/README.md")
    assert "![" not in fresh.page(f"{VECTOR}/README.md")


def test_a_stage_gets_its_row_the_difference_and_its_counters(fresh):
    text = fresh.page(f"{LADDER}/03_tiled/README.md")
    assert "| 03_tiled | 250.00 |" in text and "| copy kernel, same bytes | 150.00 |" in text
    assert "03_tiled takes 25.0 % more time than 02_reduction5." in text
    assert "| counter | 02_reduction5 | 03_tiled |" in text
    assert "| read from DRAM, MB | 268.4 | 268.4 |" in text
    assert "| L1 hit rate of global loads | missing | missing |" in text and "threads per block" not in text
    assert "](../../../../profiling_results/fake-9000/matrix/ncu/03_tiled.csv)" in text
    assert "01_basic takes" not in fresh.page(f"{LADDER}/01_basic/README.md")


def test_a_stage_can_be_held_against_another_and_show_more(fresh):
    page = f"{LADDER}/03_tiled/README.md"
    fresh.change(page, "<!-- figures:begin -->", "<!-- figures:begin against=01_basic also=threads -->")
    assert fresh.readme().returncode == 0
    text = fresh.page(page)
    assert "03_tiled is 16.0 times as fast as 01_basic." in text and "| counter | 01_basic | 03_tiled |" in text
    assert "| threads per block | 128 | 128 |" in text
    fresh.change(page, "also=threads", "also=thread")
    refused(fresh.readme(), "there is no counter thread", "threads")
    fresh.change(page, "against=01_basic also=thread", "against=09_none")
    refused(fresh.readme(), page, "against=09_none")


@pytest.fixture
def grown(fresh):
    """Its matrix ladder has controls, counters on one row, and one stage's whole report."""
    fresh.add_ladder(LADDER, WITH_CONTROLS, STAGES)
    for stage in ("02_reduction5", "03_tiled"):
        fresh.put(f"matrix/ncu_one_row/{stage}.csv", COUNTERS_CSV.format(time=5000).replace(",,128", ",,64"))
    return fresh


def test_counters_may_be_those_of_another_input(grown):
    page = f"{LADDER}/03_tiled/README.md"
    grown.change(page, "<!-- figures:begin -->", "<!-- figures:begin input=one_row also=threads -->")
    grown.page("other.md", block("table:matrix/counters", more="counters=duration,threads input=one_row"))
    assert grown.readme().returncode == 0
    text = grown.page(page)
    assert "| 03_tiled | 250.00 |" in text and "| threads per block | 64 | 64 |" in text
    assert "#how-we-measure) on 1 × 4096 float32. " in text and "ncu_one_row/03_tiled.csv)" in text
    text = grown.page("other.md")
    assert "| counter | 02_reduction5 | 03_tiled |\n" in text and "| duration, µs | 5 | 5 |" in text
    assert "[One launch](" in grown.page(f"{LADDER}/04_short/README.md")
    grown.change("other.md", "input=one_row", "input=two_rows")
    refused(grown.readme(), "other.md", "input=two_rows", "it has one_row")


REPORT = """\
  kernel(float *)
    Section: GPU Speed Of Light Throughput
    Duration us 200

    Table Name : Breakdown
    DRAM % 80

    INF   It is busy.
          Very.

    Section: Occupancy
    Achieved Occupancy % 50
"""


def test_a_section_of_ncu_s_report_is_shown_as_ncu_prints_it(grown):
    named = '02_reduction5 section="GPU Speed Of Light Throughput"'
    grown.page("other.md", block("table:matrix/details", more=named))
    assert grown.readme().returncode == 0 and "Not measured yet." in grown.page("other.md")
    grown.put("matrix/ncu_details/02_reduction5.txt", REPORT)
    assert grown.readme().returncode == 0
    said = "```text\nSection: GPU Speed Of Light Throughput\nDuration us 200\n\nINF   It is busy.\n      Very.\n```\n"
    assert said in grown.page("other.md") and "ncu_details/02_reduction5.txt)" in grown.page("other.md")
    grown.change("other.md", 'Throughput" -->', 'Throughput" table="Breakdown" -->')
    assert grown.readme().returncode == 0
    assert "200\n\nTable Name : Breakdown\nDRAM % 80\n\nINF " in grown.page("other.md")
    for old, new, words in (
        ('table="Breakdown"', 'table="Nothing"', "no table Nothing; it has Breakdown"),
        ('section="GPU Speed Of Light Throughput"', 'section="Nothing"', "no section Nothing; it has GPU Speed"),
        ("02_reduction5 section", "section", "must name a stage and a section"),
        ("02_reduction5 section", "02_reduction5 part", "must name a stage and a section"),
    ):
        before = grown.page("other.md")
        grown.change("other.md", old, new)
        refused(grown.readme(), "other.md", words)
        grown.page("other.md", before)


def test_what_a_program_printed_on_the_gpu_stands_under_its_command(tree):
    tree.add_ladder(LECTURE, {**LADDERS[LECTURE], "outputs": {"wrong": "./errors wrong"}}, NAMES[LECTURE])
    tree.page(f"{LECTURE}/README.md", block("table:output", more="wrong"))
    assert tree.readme().returncode == 0 and "Not measured yet." in tree.page(f"{LECTURE}/README.md")
    tree.put("W2L1/outputs/wrong.txt", "an error\n")
    assert tree.readme().returncode == 0
    assert "```text\n$ ./errors wrong\nan error\n```\n\nfake-9000. From [" in tree.page(f"{LECTURE}/README.md")
    tree.put("environment.txt", "GPU: NVIDIA Fake 9000\n")
    assert tree.readme().returncode == 0 and "\n\nNVIDIA Fake 9000. From [" in tree.page(f"{LECTURE}/README.md")
    tree.page(f"{LECTURE}/README.md", block("table:output", more="right"))
    refused(tree.readme(), "must name an output", "wrong")


def test_a_control_is_linked_to_the_page_of_the_controls(grown):
    grown.page("other.md", block("table:matrix/controls", more=" ".join(CONTROLS)))
    grown.put("matrix/controls.csv", ladder_csv(stages=CONTROLS))
    assert grown.readme().returncode == 0
    assert "| 03_with_256_threads | 230.00 |" in grown.page("other.md")
    grown.page(f"{LADDER}/controls/README.md", "# Controls\n")
    assert grown.readme().returncode == 0
    assert f"| [03_with_256_threads]({LADDER}/controls/README.md) | 230.00 |" in grown.page("other.md")
    assert f"| [03_tiled]({LADDER}/03_tiled/README.md) | 250.00 |" in grown.page("other.md")
    assert "controls" not in grown.page(f"{LADDER}/README.md")


def test_a_control_that_is_not_measured_yet_is_named(grown):
    """The program's source lists it, and the next make bench stores it; any other name is a mistake."""
    grown.page("other.md", block("table:matrix/controls", more="03_tiled 03_new 04_short"))
    grown.put("matrix/controls.csv", ladder_csv(stages=CONTROLS))
    refused(grown.readme(), "controls.csv has no stage 03_new")
    grown.write(f"{LADDER}/controls/main.cu", 'tiled::stage, {"03_new", "a new control", launch},\n')
    assert grown.readme().returncode == 0
    text = grown.page("other.md")
    assert "/03_tiled/README.md) | 250.00 |" in text
    assert "Not measured yet: 03_new, 04_short. `make bench S=matrix/controls` measures and stores it." in text
    grown.page("other.md", block("table:matrix/controls", more="03_new 04_short"))
    assert grown.readme().returncode == 0
    assert "Not measured yet.\n" in grown.page("other.md") and "| stage |" not in grown.page("other.md")


def test_the_lists_of_stages_are_made_from_the_pages_of_the_stages(fresh):
    fresh.page("other.md", block("table:matrix/stages", more="idea"))
    fresh.change(
        f"{LADDER}/README.md",
        "<!-- figures",
        block("table:stages", more="change removes barriers bytes sectors") + "<!-- figures",
    )
    assert fresh.readme().returncode == 0
    assert f"| [03_tiled]({LADDER}/03_tiled/README.md) | the idea of 03_tiled |\n" in fresh.page("other.md")
    text = fresh.page(f"{LADDER}/README.md")
    assert (
        "| stage | what changes | what it removes | barriers per row | bytes per lane and load | sectors per request |"
        in text
    )
    assert "| [03_tiled](03_tiled/README.md) | a | b |  | 1 | 4 | 4 |" in text
    fresh.write(f"{LADDER}/05_new/kernel.cuh", "// a new stage, and nothing else is touched\n")
    fresh.page(f"{LADDER}/05_new/README.md", stage_page("05_new"))
    assert fresh.readme().returncode == 0
    assert "/05_new/README.md) | the idea of 05_new |\n" in fresh.page("other.md")
    assert "[05_new](05_new/README.md)" in fresh.page(f"{LADDER}/README.md")
    for old, new, said in (
        (CLAIMS, "loads=4x4", "loads=16x16"),
        ("<!-- stage", "<!-- stages", '<!-- stage idea="..."'),
    ):
        before = fresh.page(f"{LADDER}/05_new/README.md")
        fresh.page(f"{LADDER}/05_new/README.md", before.replace(old, new))
        refused(fresh.readme("--check"), f"{LADDER}/05_new/README.md", said)
        fresh.page(f"{LADDER}/05_new/README.md", before)
    fresh.page("other.md", block("table:matrix/stages", more="colour"))
    refused(fresh.readme(), "other.md", "no column colour", "barriers")


def test_stages_that_are_files_share_a_page(fresh):
    marks = "".join(f'<!-- stage {name} change="of {name}" -->\n' for name in NAMES[LECTURE])
    marks += block("table:stages", more="change sectors") + block("table:cpu_device", more=f"reduction0 {CLAIMS}")
    fresh.page(f"{LECTURE}/README.md", marks + block("table:cpu_device", more=f"reduction5 {CLAIMS}"))
    fresh.write("profiling_results/cpu_device/W2L1/reduction5.csv", CPU_DEVICE_CSV)
    result = fresh.readme()
    assert result.returncode == 0, result.stderr
    text = fresh.page(f"{LECTURE}/README.md")
    assert "| [reduction5](reduction5.cu) | of reduction5 | 4 |" in text and text.count("Not measured yet.") == 1
    assert "(../../profiling_results/cpu_device/W2L1/reduction5.csv)" in text and "| requests |" in text
    fresh.page(f"{LECTURE}/README.md", block("table:cpu_device", more=CLAIMS))
    refused(fresh.readme(), "must name the stage")
    fresh.page(f"{LECTURE}/README.md", block("table:cpu_device", more=f"reduction9 {CLAIMS}"))
    refused(fresh.readme(), "there is no stage reduction9 in W2L1")


def test_a_sweep_is_a_column_an_input_once_it_is_measured(fresh):
    fresh.page("other.md", block("table:matrix/few_rows") + block("table:vector/lengths"))
    assert fresh.readme().returncode == 0 and fresh.page("other.md").count("Not measured yet.") == 2
    longer = ladder_csv({"rows": 16, "cols": 4096}, factor={"04_short": 2}).split("\n", 1)[1]
    fresh.put("matrix/few_rows.csv", ladder_csv({"rows": 1, "cols": 4096}) + longer)
    fresh.put("vector/lengths.csv", ladder_csv({"n": 1024}, STAGES[:2], optional=()))
    assert "other.md" in fresh.readme("--check").stderr
    assert fresh.readme().returncode == 0
    text = fresh.page("other.md")
    assert "| stage | 1 × 4096 | 16 × 4096 |" in text and "| stage | 1024 |" in text
    assert f"| [04_short]({LADDER}/04_short/README.md) | 40.00 | 80.00 |" in text
    assert "| copy kernel, same bytes | 150.00 | 150.00 |" in text
    assert "(profiling_results/fake-9000/matrix/few_rows.csv)" in text
    fresh.page("other.md", block("table:matrix/few_rows", more="03_tiled"))
    assert fresh.readme().returncode == 0
    assert "03_tiled]" in fresh.page("other.md") and "04_short]" not in fresh.page("other.md")
    fresh.change("other.md", "few_rows:begin 03_tiled", "few_rows:begin 03_none")
    refused(fresh.readme(), "few_rows.csv has no stage 03_none")


def test_the_sweep_over_inputs_of_one_size_is_named_on_the_ladder_s_page(fresh):
    more = ladder_csv({"rows": 1024, "cols": 65536}).split("\n", 1)[1]
    fresh.put("matrix/by_columns.csv", ladder_csv() + more)
    fresh.readme()
    path = "profiling_results/fake-9000/matrix/by_columns.csv"
    assert f"The same number of elements: [{path}](../../../{path})." in fresh.page(f"{LADDER}/README.md")


def test_the_walkthrough_compares_what_its_markers_name(fresh):
    text = fresh.page(PROFILING)
    assert "| counter | 01_basic | 02_reduction5 | 03_tiled | 04_short |" in text
    assert (
        "| duration, µs | 4,000 | 200 | 250 | 40 |" in text and "| threads per block | 128 | 128 | 128 | 128 |" in text
    )
    second = text[text.index("| counter | 02_reduction5 | 03_tiled |") :]
    assert "duration" in second and "L1 hit rate" in second and "threads" not in second


@pytest.mark.parametrize(
    "words, stages",
    [
        ("01_basic 04_short", ["01_basic", "04_short"]),
        ("..02_reduction5", STAGES[:2]),
        ("03_tiled..", STAGES[2:]),
        ("02_reduction5..03_tiled", STAGES[1:3]),
    ],
)
def test_the_counters_of_some_stages_can_be_chosen(fresh, words, stages):
    fresh.page("other.md", block("table:matrix/counters", more=words))
    assert fresh.readme().returncode == 0
    assert f"| counter | {' | '.join(stages)} |\n" in fresh.page("other.md")
    fresh.page("other.md", block("table:matrix/counters", more="01_none.."))
    refused(fresh.readme(), "other.md", "there is no stage 01_none")


def test_a_stage_that_was_not_measured_keeps_its_sentence(tree):
    path = tree.store / "matrix/main.csv"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith("04_short")))
    (tree.store / "matrix/ncu/03_tiled.csv").unlink()
    assert tree.readme().returncode == 0
    assert "Not measured yet." in tree.page(f"{LADDER}/04_short/README.md")
    assert "| counter | 02_reduction5 |" in tree.page(f"{LADDER}/03_tiled/README.md")


@pytest.mark.parametrize("changed", ["README.md", f"{LADDER}/03_tiled/README.md", PROFILING])
def test_an_edited_figure_is_stale_and_named(fresh, changed):
    before = fresh.page(changed)
    fresh.change(changed, "250", "150")
    result = fresh.readme("--check")
    refused(result, changed, "make readme")
    assert result.stderr.count(".md") == 1
    assert fresh.readme().returncode == 0 and fresh.page(changed) == before


def test_a_new_result_makes_the_pages_stale(fresh):
    fresh.put("matrix/main.csv", ladder_csv(factor={"03_tiled": 0.9}))
    result = fresh.readme("--check")
    assert result.returncode == 1
    for name in ("README.md", f"{LADDER}/README.md", f"{LADDER}/03_tiled/README.md", f"{LADDER}/04_short/README.md"):
        assert name in result.stderr
    for name in ("01_basic", "PROFILING", "vector"):
        assert name not in result.stderr


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("README.md", "# No marker\n", "lacks the marker <!-- table:matrix/ladder:begin -->"),
        (f"{LADDER}/03_tiled/README.md", "# No marker\n", "lacks the marker <!-- figures:begin -->"),
        ("README.md", "<!-- table:matrix/ladder:begin -->\n", "has no <!-- table:matrix/ladder:end -->"),
        ("README.md", "<!-- table:matrix/ladder:end -->\n", "has no <!-- table:matrix/ladder:begin -->"),
        ("README.md", "<!-- table:y:begin -->\n<!-- table:x:end -->\n", "has no <!-- table:x:begin -->"),
        ("README.md", "<!-- table:x:begin -->\n<!-- figures:begin -->\n", "comes before <!-- table:x:end -->"),
        ("other.md", block("table:nonsense"), "name the ladder too, for example matrix/nonsense"),
        ("other.md", block("table:matrix/nonsense"), "unknown table nonsense"),
        ("other.md", block("table:tensor/ladder"), "there is no ladder tensor"),
        ("other.md", block("table:header/nonsense"), "peers_forward"),
    ],
)
def test_broken_markers_are_named_with_their_file(fresh, name, text, said):
    fresh.page(name, text)
    for arguments in ([], ["--check"]):
        result = fresh.readme(*arguments)
        refused(result, name, said)
        assert len(result.stderr.splitlines()) == 1
    assert fresh.page(name) == text


def test_a_stage_without_a_page_is_named(fresh):
    (fresh.root / LADDER / "03_tiled/README.md").unlink()
    refused(fresh.readme(), f"there is no {LADDER}/03_tiled/README.md")


@pytest.mark.parametrize(
    "name, text",
    [
        ("matrix/main.csv", "stage,verdict\n01_basic,PASS\n"),
        ("matrix/main.csv", ladder_csv().replace("250.00", "fast")),
        ("matrix/main.csv", ladder_csv() + "05_cut,PASS,81"),
        ("matrix/main.csv", ladder_csv().splitlines()[0] + "\n"),
        ("matrix/main.csv", ladder_csv({"n": 7})),
        ("matrix/ncu/03_tiled.csv", "name,metric,unit,value\nduration,gpu__time_duration.sum,ns,soon\n"),
    ],
    ids=["columns missing", "no number", "cut off", "no rows", "another operator's", "no counter"],
)
def test_a_damaged_file_is_an_error_and_changes_nothing(fresh, name, text):
    before = fresh.page("README.md")
    fresh.put(name, text)
    result = fresh.readme()
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1
    assert fresh.page("README.md") == before


CSV = """\
variant,what,buffer_bytes,microseconds,gb_per_s,percent_of_ceiling,is_best,iterations,gpu,cuda_runtime,date,sm_clock_mhz
01_a,"one, two",65536,1.50,12.0,40.0,0,50,NVIDIA Fake 9000,13.0,2026-01-31,10
02_b,three,1073741824,3.00,30.0,100.0,1,50,NVIDIA Fake 9000,13.0,2026-01-31,10
"""


def test_any_stored_csv_can_be_a_table_on_its_ladder_s_page(tree):
    tree.put("W2L1/copies.csv", CSV)
    page = f"{LECTURE}/README.md"
    tree.page(page, block("table:copies"))
    assert tree.readme().returncode == 0
    text = tree.page(page)
    assert "| variant | what | buffer | µs | GB/s | % of ceiling | best |\n" in text
    assert "| --- | --- | ---: | ---: | ---: | ---: | --- |\n" in text
    assert "| 01_a | one, two | 64 KiB | 1.50 | 12.0 | 40.0 |  |" in text
    assert "| 02_b | three | 1 GiB | 3.00 | 30.0 | 100.0 | yes |" in text
    assert "Iterations 50. NVIDIA Fake 9000, clocks as found (SM: at most 10 MHz), CUDA 13.0, 2026-01-31." in text

    marker = "<!-- table:copies:begin variant gb_per_s -->\n"
    tree.page(page, block("table:copies", more="variant gb_per_s"))
    assert tree.readme().returncode == 0
    assert marker + "| variant | GB/s |\n| --- | ---: |\n| 01_a | 12.0 |\n" in tree.page(page)
    tree.change(page, "gb_per_s -->", "speed -->")
    refused(tree.readme(), "speed", "gb_per_s")

    tree.page(page, block("table:copies", more="variant gb_per_s variant=02_b"))
    assert tree.readme().returncode == 0
    text = tree.page(page)
    assert "| 02_b | 30.0 |" in text and "| 01_a |" not in text and "copies.csv), which has all 2 rows." in text
    for wrong, said in (("variant=02_c", "variant=02_c"), ("colour=red", "colour=red")):
        tree.page(page, block("table:copies", more=f"variant {wrong}"))
        refused(tree.readme(), "has no row", said)


def test_an_unknown_gpu_is_refused_with_those_that_are_stored(fresh):
    refused(fresh.readme("--gpu", "z80"), "GPU=z80", "fake-9000")


CPU_DEVICE_CSV = """\
kernel,launches,grid,block,file,line,source,what,bytes_per_lane,requests,lanes,bytes,sectors,ideal_sectors,wavefronts,ideal_wavefronts,distinct_bytes
k,1,64x1x1,128x1x1,,,,global load,,12800,409600,1638400,51200,51200,,,1638400
k,1,64x1x1,128x1x1,FILE,7,a | b;,global load,4,12800,409600,1638400,51200,51200,,,
k,1,64x1x1,128x1x1,FILE,7,a | b;,shared store,4,6400,102400,409600,,,12800,6400,
k,1,64x1x1,128x1x1,common/sums.cuh,8,__syncthreads();,block_barrier,,768,24576,,,,,,
k,1,64x1x1,128x1x1,common/sums.cuh,9,c,shared load,4,6400,102400,409600,,,12800,6400,
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
    assert tree.readme().returncode == 0 and "Not measured yet." in tree.page(page)
    counted = CPU_DEVICE_CSV.replace("FILE", f"{LADDER}/03_tiled/kernel.cuh")
    tree.write("profiling_results/cpu_device/matrix/03_tiled.csv", counted)
    assert "03_tiled" in tree.readme("--check").stderr
    assert tree.readme().returncode == 0
    text = tree.page(page)
    for words in (
        "| line | source | access | requests per row |",
        "| 7 | `a \\| b;` | global load 4 B | 200 | 4 sectors | 32 |\n"
        "|  |  | shared store 4 B | 100 | 2 wavefronts (at best 1) | 16 |\n"
        "| [sums.cuh](../../../../common/sums.cuh) 9 | `c` | shared load 4 B | 100 |",
        "Per element, loads request 256 bytes and move 256; 3 barriers per block, 0 shuffles per warp. 64 × 100 float32",
        "](../../../../profiling_results/cpu_device/matrix/03_tiled.csv)",
    ):
        assert words in text
    assert "syncthreads" not in text and ("| 03_tiled | 250.00 |" in text) == gpu
    assert "Not measured yet." in tree.page(f"{VECTOR}/01_basic/README.md")


def test_a_sentence_takes_the_place_of_a_table_like_another_stages(tmp_path):
    tree = Tree(tmp_path, stored=False)
    page = f"{LADDER}/03_tiled/README.md"
    tree.page(page, stage_page("03_tiled") + block("table:cpu_device", more=f"{CLAIMS} like=02_reduction5"))
    for stage in ("02_reduction5", "03_tiled"):
        file = f"{LADDER}/{stage}/kernel.cuh"
        tree.write(f"profiling_results/cpu_device/matrix/{stage}.csv", CPU_DEVICE_CSV.replace("FILE", file))
    assert tree.readme().returncode == 0
    assert "03_tiled: the same as [02_reduction5](../02_reduction5/README.md), counted in [" in tree.page(page)
    other = CPU_DEVICE_CSV.replace("FILE", f"{LADDER}/02_reduction5/kernel.cuh").replace(
        "global load,4,", "global load,8,"
    )
    tree.write("profiling_results/cpu_device/matrix/02_reduction5.csv", other)
    said = "the accesses of 03_tiled are not those of 02_reduction5; leave like=02_reduction5 out"
    assert said in tree.readme("--check").stderr


def test_a_table_may_leave_out_the_launches_after_the_first(tmp_path):
    tree = Tree(tmp_path, stored=False)
    page = f"{LADDER}/03_tiled/README.md"
    counted = CPU_DEVICE_CSV.replace("FILE", f"{LADDER}/03_tiled/kernel.cuh")
    again = [line.replace(",64x1x1,", ",1x1x1,") for line in counted.splitlines() if ",7,a | b;,global load" in line]
    tree.write("profiling_results/cpu_device/matrix/03_tiled.csv", counted + again[0] + "\n")
    assert tree.readme().returncode == 0 and tree.page(page).count("| global load 4 B |") == 2
    tree.page(page, stage_page("03_tiled").replace(CLAIMS, f"{CLAIMS} launch=first"))
    assert tree.readme().returncode == 0
    text = tree.page(page)
    assert (
        text.count("| global load 4 B |") == 1 and "The first launch; the sums are those of all launches. Per" in text
    )


def test_the_cpu_devices_sums_stand_beside_those_of_the_gpu(tree):
    tree.page("other.md", block("table:matrix/ncu_comparison"))
    for stage in ("02_reduction5", "03_tiled"):
        tree.write(f"profiling_results/cpu_device/matrix/{stage}.csv", CPU_DEVICE_CSV)
    scale = 8192 * 8192 / 6400
    tree.put("matrix/ncu_small/02_reduction5.csv", NCU_CSV.format(requests=12801))
    tree.put("matrix/ncu/03_tiled.csv", NCU_CSV.format(requests=2 * 12800 * scale))
    assert tree.readme().returncode == 0
    text = tree.page("other.md")
    assert "| 02_reduction5 | 12,800 | 51,200 |" in text and "one launch on 64 × 100 float32" in text
    assert "| 03_tiled | 12,800 / 25,600 | 51,200 / 102,400 |" in text
    assert "01_basic" not in text and "those of 8192 × 8192 float32 are divided by 10,485.76" in text
