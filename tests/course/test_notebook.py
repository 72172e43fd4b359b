"""lectures/colab.ipynb: its cells, which are shell scripts, run in a checkout without a GPU; it is stored without outputs."""

import json

import pytest
from conftest import ROOT, run

NOTEBOOK = json.loads((ROOT / "lectures/colab.ipynb").read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
MAGIC = "%%bash\n"  # the rest of such a cell is given to bash


def tagged(tag):
    return [cell for cell in CODE if tag in cell["metadata"].get("tags", [])]


def said_by(cells, edit=lambda script: script):
    """What the cells print, one after the other; each must succeed. They start in the notebook's folder, as in Jupyter."""
    for cell in cells:
        script = edit("".join(cell["source"]).removeprefix(MAGIC))
        done = run("bash", "-c", script, cwd=ROOT / "lectures", timeout=1500)
        assert done.returncode == 0, done.stdout + done.stderr
        yield done.stdout


def test_it_is_a_notebook_without_outputs():
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 4)
    for cell in CODE:
        assert "".join(cell["source"]).startswith(MAGIC)
        assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.builds("lectures/W1L1_first_kernel")
def test_the_first_lecture_runs():
    """The cells of the exercise write into my/, which belongs to the user: test_exercises.py runs their commands."""
    cells = [cell for cell in CODE if cell not in tagged("exercise") + tagged("long")]
    _, hello, squares, report, additions = said_by(cells)
    assert "Hello from thread 3 of block 1" in hello and "thread 39 is lane  7 of warp 1" in hello
    assert "the last square is 998001" in squares
    assert "store global 4 B" in report and "hazards: none" in report
    assert additions.count("PASS") == 4 and "vector_add0 skipped" in additions  # one thread would take too long


@pytest.mark.full
@pytest.mark.builds("assignment1/rms_norm/matrix")
def test_the_matrix_ladder_runs():
    """With fewer rows: test_cli.py takes all."""
    (ROOT / "build/notebook").mkdir(exist_ok=True)  # as the first cells do
    stages, report = said_by(tagged("long"), lambda script: script.replace(" --csv", " --rows 256 --csv"))
    assert stages.count("PASS") == 16 and "FAIL" not in stages
    assert "rms_norm_kernel_fast" in report
