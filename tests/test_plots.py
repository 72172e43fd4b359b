"""The plots are those of the stored files, the same data give the same files, and nothing needs a GPU."""

import shutil

import pytest

from conftest import ROOT, run
from fake_ladder import ladder_csv
from fakes import Machine

PYTHON = ROOT / ".venv/bin/python"
COLD_WARM = """\
buffer_bytes,cold_gb_per_s,cold_percent_of_datasheet,warm_apparent_gb_per_s,variant,l2_bytes,gpu,cuda_runtime,date
65536,100.0,2.0,150.0,fake,1048576,NVIDIA Fake 9000,13.0,2026-01-31
131072,200.0,4.0,300.0,fake,1048576,NVIDIA Fake 9000,13.0,2026-01-31
"""


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path, gpu=False)
    store = machine.root / "profiling_results/fake-9000"
    store.mkdir(parents=True)
    (store / "matrix_8192x8192.csv").write_text(ladder_csv())
    longer_rows = ladder_csv(1024, 65536).split("\n", 1)[1]
    (store / "matrix_by_columns.csv").write_text(ladder_csv() + longer_rows)
    (store / "few_rows.csv").write_text(ladder_csv(1, 4096) + ladder_csv(64, 4096).split("\n", 1)[1])
    (store / "long_rows.csv").write_text(ladder_csv(1, 65536) + ladder_csv(1, 1048576).split("\n", 1)[1])
    (store / "cold_warm.csv").write_text(COLD_WARM)
    return machine


def draw(machine, *arguments):
    result = run(PYTHON, machine.root / "plots/plot_bandwidth.py", *arguments, cwd=machine.root)
    assert "Traceback" not in result.stderr, result.stderr
    return result


def drawn(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".png", ".svg")}


def test_stored_plots_are_not_stale(tmp_path):
    """The SVG is text and the same for the same data; make plots renews it."""
    stores = sorted((ROOT / "profiling_results").glob("*/matrix_8192x8192.csv"))
    for store in stores:
        result = run(PYTHON, "plots/plot_bandwidth.py", "--gpu", store.parent.name, "--out", tmp_path)
        assert result.returncode == 0, result.stderr
    for name, content in drawn(tmp_path).items():
        assert (ROOT / "plots" / name).is_file(), f"{name} has not been drawn: make plots"
        if name.endswith(".svg"):
            assert (ROOT / "plots" / name).read_bytes() == content, f"{name} is stale: make plots"
    named = {path.name.split("_")[0] for path in (ROOT / "plots").glob("*.svg")}
    assert named <= {store.parent.name for store in stores}, "a plot of a GPU whose results are not stored"


def test_the_same_data_give_the_same_files(machine, tmp_path):
    for folder in ("first", "second"):
        assert draw(machine, "--out", tmp_path / folder).returncode == 0
    first = drawn(tmp_path / "first")
    kinds = ("matrix_bandwidth", "matrix_by_columns", "few_rows", "long_rows", "cold_warm")
    assert set(first) == {f"fake-9000_{kind}.{suffix}" for kind in kinds for suffix in ("png", "svg")}
    assert first == drawn(tmp_path / "second")
    assert b"<dc:date>" not in first["fake-9000_matrix_bandwidth.svg"]


def test_a_run_of_a_gpu_is_drawn_beside_its_csv(machine, tmp_path):
    (tmp_path / "run.csv").write_text(ladder_csv(factor={"03_tiled": 2}))
    result = draw(machine, "--run", tmp_path / "run.csv")
    assert result.returncode == 0 and "stored" not in result.stdout
    assert set(drawn(tmp_path)) == {"fake-9000_matrix_bandwidth.png", "fake-9000_matrix_bandwidth.svg"}
    assert drawn(machine.root / "plots") == {}


def test_a_run_without_times_draws_the_stored_result_and_says_so(machine, tmp_path):
    (tmp_path / "run.csv").write_text(ladder_csv(timed=False))
    result = draw(machine, "--run", tmp_path / "run.csv")
    assert result.returncode == 0 and "not timed" in result.stdout and "stored" in result.stdout
    assert "fake-9000_matrix_bandwidth.svg" in drawn(tmp_path)


def test_where_nothing_is_stored_it_says_so_and_ends_well(machine):
    shutil.rmtree(machine.root / "profiling_results")
    result = draw(machine)
    assert result.returncode == 0 and "make bench" in result.stdout and drawn(machine.root / "plots") == {}


@pytest.mark.parametrize(
    "arguments, said", [(["--gpu", "z80"], "GPU=z80"), (["--run", "/nonexistent.csv"], "/nonexistent.csv")]
)
def test_what_it_cannot_draw_it_names_in_one_sentence(machine, arguments, said):
    result = draw(machine, *arguments)
    assert result.returncode == 1 and said in result.stderr and len(result.stderr.splitlines()) == 1


def test_a_csv_of_something_else_is_refused(machine, tmp_path):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    result = draw(machine, "--run", tmp_path / "other.csv")
    assert result.returncode == 1 and "lacks the column" in result.stderr
