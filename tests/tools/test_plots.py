"""The plots are those of the stored files, the same data give the same files, and nothing needs a GPU."""

import re
import shutil
import sys

import pytest
from conftest import ROOT, run
from fake_ladder import STAGES, ladder_csv
from fakes import CONTROLS, WITH_CONTROLS, Machine, refused
from ladder import __main__ as command_line
from ladder.core import ladders, markers, results
from ladder.pages import drawing, pictures, plots, roofline, svg

COLD_WARM = """\
buffer_bytes,cold_gb_per_s,cold_percent_of_datasheet,warm_apparent_gb_per_s,variant,l2_bytes,gpu,cuda_runtime,date
65536,100.0,2.0,150.0,fake,1048576,NVIDIA Fake 9000,13.0,2026-01-31
131072,200.0,4.0,300.0,fake,1048576,NVIDIA Fake 9000,13.0,2026-01-31
"""
KINDS = ["W2L1_cold_warm", "matrix_bandwidth", "matrix_by_columns", "matrix_few_rows", "matrix_long_rows"]
KINDS += ["vector_bandwidth", "vector_lengths"]


def both(first, second, **more):
    """The CSVs of two inputs, one below the other."""
    return ladder_csv(first, **more) + ladder_csv(second, **more).split("\n", 1)[1]


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path, gpu=False)
    store = "profiling_results/fake-9000"
    machine.write(f"{store}/matrix/main.csv", ladder_csv())
    machine.write(f"{store}/matrix/by_columns.csv", both(None, {"rows": 1024, "cols": 65536}))
    machine.write(f"{store}/matrix/few_rows.csv", both({"rows": 1, "cols": 4096}, {"rows": 64, "cols": 4096}))
    machine.write(f"{store}/matrix/long_rows.csv", both({"rows": 1, "cols": 65536}, {"rows": 1, "cols": 1048576}))
    vector = {"stages": STAGES[:2], "optional": ()}
    machine.write(f"{store}/vector/main.csv", ladder_csv({"n": 4194304}, **vector))
    machine.write(f"{store}/vector/lengths.csv", both({"n": 1024}, {"n": 2048}, **vector))
    machine.write(f"{store}/W2L1/cold_warm.csv", COLD_WARM)
    return machine


def drawn(folder):
    found = folder.iterdir() if folder.is_dir() else []
    return {path.name: path.read_bytes() for path in found if path.suffix == ".svg"}


@pytest.mark.full
def test_stored_plots_are_not_stale(tmp_path):
    """The SVG is text and the same for the same data; make plots renews it."""
    gpus = results.stored_gpus()
    for gpu in gpus:
        assert command_line.main(["plot", "--gpu", gpu, "--out", str(tmp_path)]) == 0
    for name, content in drawn(tmp_path).items():
        assert (ROOT / "plots" / name).is_file(), f"{name} has not been drawn: make plots"
        assert (ROOT / "plots" / name).read_bytes() == content, f"{name} is stale: make plots"
    assert set(drawn(ROOT / "plots")) == set(drawn(tmp_path)), "a plot of what is not stored"


def datasheets(plots):
    """The datasheet's bandwidths that the SVGs name; matplotlib draws letters, and writes the text in a comment."""
    return {int(rate) for plot in plots.values() for rate in re.findall(rb"<!-- datasheet,? (\d+) -->", plot)}


def test_all_plots_of_a_gpu_have_its_stored_datasheet(machine, tmp_path):
    machine.write("profiling_results/fake-9000/environment.txt", "datasheet bandwidth: 5000 GB/s\n")
    assert machine.run("plot", "--out", tmp_path / "stored").returncode == 0
    assert datasheets(drawn(tmp_path / "stored")) == {5000}
    for gpu in results.stored_gpus(results.ENVIRONMENT):  # others have no plots with a datasheet
        stored = results.environment(results.store() / gpu).get(results.DATASHEET, "")
        of_gpu = {name: plot for name, plot in drawn(ROOT / "plots").items() if name.startswith(f"{gpu}_")}
        assert datasheets(of_gpu) == {int(stored.split()[0])}


def test_the_same_data_give_the_same_files(machine, tmp_path):
    for folder in ("first", "second"):
        assert machine.run("plot", "--out", tmp_path / folder).returncode == 0
    first = drawn(tmp_path / "first")
    assert set(first) == {f"fake-9000_{kind}.svg" for kind in KINDS}
    assert first == drawn(tmp_path / "second")
    assert b"<dc:date>" not in first["fake-9000_matrix_bandwidth.svg"]


def test_controls_are_read_in_tables_and_not_drawn(machine, tmp_path):
    machine.add_ladder("assignment1/rms_norm/matrix", WITH_CONTROLS, STAGES)
    controls = both(None, {"rows": 1024, "cols": 65536}, stages=CONTROLS)
    machine.write("profiling_results/fake-9000/matrix/controls.csv", controls)
    assert machine.run("plot", "--out", tmp_path / "drawn").returncode == 0
    assert [name for name in drawn(tmp_path / "drawn") if "control" in name] == []


def test_a_run_of_a_gpu_is_drawn_beside_its_csv(machine, tmp_path):
    """By the command itself, which finds the package without help."""
    run_csv = machine.write("run/run.csv", ladder_csv(factor={"03_tiled": 2}))
    environment = {"PYTHONPATH": "", "PATH": machine.environment({})["PATH"]}
    for name in ("tools", "plots"):
        shutil.copytree(ROOT / name, machine.root / name, ignore=shutil.ignore_patterns("__pycache__", "*.svg"))
    result = run(
        sys.executable, machine.root / "plots/plot_bandwidth.py", "--run", run_csv, cwd=tmp_path, **environment
    )
    assert result.returncode == 0 and "stored" not in result.stdout, result.stderr
    assert set(drawn(run_csv.parent)) == {"fake-9000_matrix_bandwidth.svg"}
    assert drawn(machine.root / "plots") == {}


def test_a_run_without_times_draws_the_stored_result_and_says_so(machine):
    run_csv = machine.write("run/run.csv", ladder_csv(timed=False))
    result = machine.run("plot", "--run", run_csv)
    assert result.returncode == 0 and "not timed" in result.stdout and "stored" in result.stdout
    assert "fake-9000_matrix_bandwidth.svg" in drawn(run_csv.parent)


def test_a_run_may_be_another_ladder_s(machine):
    run_csv = machine.write("run/run.csv", ladder_csv({"n": 4194304}, STAGES[:2], optional=()))
    assert machine.run("plot", "--run", run_csv, "--ladder", "vector").returncode == 0
    assert "fake-9000_vector_bandwidth.svg" in drawn(run_csv.parent)
    assert machine.run("plot", "--run", run_csv, "--ladder", "tensor").returncode == 2


def test_where_nothing_is_stored_it_says_so_and_ends_well(machine):
    shutil.rmtree(machine.root / "profiling_results")
    result = machine.run("plot")
    assert result.returncode == 0 and "make bench" in result.stdout and drawn(machine.root / "plots") == {}


@pytest.mark.parametrize(
    "arguments, said", [(["--gpu", "z80"], "GPU=z80"), (["--run", "/nonexistent.csv"], "/nonexistent.csv")]
)
def test_what_it_cannot_draw_it_names_in_one_sentence(machine, arguments, said):
    result = machine.run("plot", *arguments)
    refused(result, said)
    assert len(result.stderr.splitlines()) == 1


def test_a_csv_of_something_else_is_refused(machine):
    refused(machine.run("plot", "--run", machine.write("other.csv", "a,b\n1,2\n")), "lacks the column")


def test_every_plot_is_in_a_page():
    pages = "\n".join(markers.text_of(page) for page in markers.pages())
    assert [path.name for path in (ROOT / "plots").glob("*.svg") if f"plots/{path.name})" not in pages] == []


def test_every_picture_is_in_a_page_and_says_what_it_shows():
    """The pictures of tools/ladder/pages/pictures.py, each of which has a title in it and an alternative text in its pages."""
    pages = "\n".join(path.read_text(encoding="utf-8") for path in markers.pages())
    drawn_ones = sorted((ROOT / "plots").glob("*pictures_*.svg"))
    assert len(drawn_ones) >= 9
    for path in drawn_ones:
        assert re.search(r"<title>[^<]{20,}</title>", path.read_text(encoding="utf-8")), path
        shown = re.findall(rf"!\[([^\]]*)\]\([./]*plots/{path.name}\)", pages)
        assert shown and all(len(words) > 30 for words in shown), path


def test_pictures_have_the_counted_numbers(tmp_path, monkeypatch):
    """A picture of 5 sectors per request says 5, and one without its file is left out."""
    line = "k,1,1x1x1,32x1x1,1x1x1,a.cu,1,x,global load,4,{requests},320,1280,{sectors},40,,,"
    head = (ROOT / "profiling_results/cpu_device/matrix/01_basic.csv").read_text().splitlines()[0]
    monkeypatch.setattr(results, "store", lambda: tmp_path)
    (tmp_path / "cpu_device/matrix").mkdir(parents=True)
    (tmp_path / "cpu_device/matrix/01_basic.csv").write_text(f"{head}\n{line.format(requests=10, sectors=70)}\n")
    pictures.draw_sectors(tmp_path / "pictures")
    assert not (tmp_path / "pictures_sectors.svg").exists()
    (tmp_path / "cpu_device/matrix/02_reduction5.csv").write_text(f"{head}\n{line.format(requests=10, sectors=50)}\n")
    pictures.draw_sectors(tmp_path / "pictures")
    text = (tmp_path / "pictures_sectors.svg").read_text()
    assert "7 sectors per request: 224 bytes" in text and "5 sectors per request: 160 bytes" in text


def test_the_pictures_of_the_first_lecture_have_its_numbers(tmp_path, monkeypatch):
    """The grid is that of who_am_i.cu, and the sectors are the counted ones."""
    pictures.draw_grid(tmp_path / "pictures")
    text = (tmp_path / "pictures_grid.svg").read_text()
    program = (ROOT / "lectures/W1L1_first_kernel/who_am_i.cu").read_text()
    blocks, threads = map(int, re.findall(r": (\d+);", program))
    assert f"{blocks} blocks of {threads} threads" in text and f"elements {threads} to {threads + 31}" in text
    assert text.count(">0</text>") == blocks + 1  # each block's first thread, and the array's first element
    counts = (ROOT / "profiling_results/cpu_device/W1L1/vector_add1.csv").read_text()
    monkeypatch.setattr(results, "store", lambda: tmp_path)
    (tmp_path / "cpu_device/W1L1").mkdir(parents=True)
    (tmp_path / "cpu_device/W1L1/vector_add1.csv").write_text(counts.replace("8192,8192,,", "10240,8192,,"))
    pictures.draw_coalesced(tmp_path / "pictures")
    text = (tmp_path / "pictures_coalesced.svg").read_text()
    assert "32 sectors per request: 1024 bytes" in text and "5 sectors per request: 160 bytes" in text


def test_a_stage_has_one_style_in_all_plots():
    for ladder in ladders.all_ladders():
        styles = {stage.name: tuple(drawing.style_of(ladder, stage.name).items()) for stage in ladder.stages}
        if len(styles) <= len(drawing.MARKERS):
            assert len(set(styles.values())) == len(styles), ladder.id


@pytest.mark.parametrize("count, sizes", [(1, [1]), (4, [4]), (5, [2, 3]), (9, [3, 3, 3]), (16, [4, 4, 4, 4])])
def test_panels_share_the_stages(count, sizes):
    parts = drawing.parts_of(list(range(count)))
    assert sorted(map(len, parts)) == sizes and sum(parts, []) == list(range(count))


def test_every_plot_and_picture_is_dark_on_a_dark_page():
    for path in (ROOT / "plots").glob("*.svg"):
        assert f"{svg.dark_style()}</style>" in path.read_text(encoding="utf-8"), path


def greys(text):
    """The colours without a hue that an SVG names outside of its style."""
    text = re.sub(r"<style.*?</style>", "", text, flags=re.S)
    return {found.lower() for found in re.findall(r"#[0-9a-fA-F]{6}", text) if len({*re.findall("..", found[1:])}) == 1}


def test_every_grey_of_a_plot_or_picture_has_another_one_on_a_dark_page():
    kept = {svg.ON_BRIGHT, drawing.GREY}
    for path in (ROOT / "plots").glob("*.svg"):
        assert greys(path.read_text(encoding="utf-8")) <= {*svg.DARK, *kept}, path


def test_a_long_caption_stays_inside_of_its_figure(tmp_path):
    plt, figure, axes = drawing.figure_of(3)
    seen = []
    figure.savefig, save = lambda *given, **more: (seen.append(extent(figure)), save(*given, **more)), figure.savefig
    drawing.save(plt, figure, tmp_path / "plot", "more and more multiply-adds for each element, " * 4, {"gpu": "a GPU"})
    ((left, right, width),) = seen
    assert 0 <= left < right <= width


def extent(figure):
    figure.draw_without_rendering()
    caption = figure._supxlabel.get_window_extent()
    return caption.x0, caption.x1, figure.bbox.width


def test_whiskers_are_as_long_as_the_spread():
    """Of 200 us, whose samples lie within 4 percent from the 10th to the 90th percentile: 4 us both ways."""
    assert drawing.spread_at(8, {"spread_percent": "4.0"}, 200.0) == (8, 200.0, 4.0)
    assert drawing.spread_at(8, {"spread_percent": ""}, 200.0) == (8, 200.0, 0)
    plt, figure, axes = drawing.figure_of(3)
    for across, ends in ((False, [(8, 196), (8, 204)]), (True, [(4, 200), (12, 200)])):
        drawing.whiskers(axes, [(8, 200.0, 4.0)], drawing.BLUE, across)
        (segment,) = axes.collections[-1].get_segments()
        assert segment.tolist() == [list(end) for end in ends]
    plt.close(figure)


def test_words_at_neighbouring_places_are_one_word():
    points = [(1, "0"), (2, "0"), (4, "NaN"), (8, "0.5"), (16, "NaN")]
    assert plots.runs_of(points) == [("0", 1, 2), ("NaN", 4, 4), ("NaN", 16, 16)]


def test_no_colour_of_a_plot_has_two_meanings():
    """As many colours as a plot has ladders, and each stage of a ladder its own, as far as there are any."""
    assert len({color.lower() for color, _ in drawing.LINES}) == len(drawing.LINES) >= len(roofline_ladders())
    assert len({marker for _, marker in drawing.LINES}) == len(drawing.LINES)
    assert len({color.lower() for color in drawing.COLORS}) == len(drawing.COLORS)


def roofline_ladders():
    found = {}
    for gpu in results.stored_gpus():
        found = max(found, roofline.of_ladders(results.store() / gpu, ladders.all_ladders()), key=len)
    return found
