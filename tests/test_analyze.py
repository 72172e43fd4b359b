"""make analyze: a stage's counters are those that its write-up speaks of, what is stored is fresh."""

import csv
import json
import math
import sys

import pytest

from conftest import BACKEND, LADDER, ROOT, make, run

sys.path.insert(0, str(ROOT / "scripts"))
import cpu_device  # noqa: E402

STAGES = sorted(path.parent.name for path in (ROOT / LADDER).glob("[0-9]*_*/kernel.cuh"))
ROWS, COLS = 64, 8192
STORE = ROOT / "profiling_results/cpu_device"

# What the write-ups say of 8192 columns. loads and stores: (bytes a lane, sectors a request) of their global accesses;
# asked: bytes that loads ask for, an element (input and weight); barriers of a block, shuffles of a warp.
CLAIMS = {
    "01_basic": {"loads": {(4, 32), (4, 1)}, "stores": {(4, 32)}, "asked": 12, "barriers": 0, "shuffles": 0},
    "02_reduction5": {"loads": {(4, 4)}, "stores": {(4, 4)}, "asked": 12, "barriers": 9, "shuffles": 0},
    "03_tiled": {"loads": {(4, 4)}, "stores": {(4, 4)}, "asked": 12, "barriers": 72, "shuffles": 0},
    "04_hybrid": {"loads": {(16, 16)}, "stores": {(16, 16)}, "asked": 12, "barriers": 4, "shuffles": 0},
    "05_warp_shuffle": {"loads": {(4, 4)}, "stores": {(4, 4)}, "asked": 12, "barriers": 1, "shuffles": 10},
    "06_vectorized": {"loads": {(16, 16)}, "stores": {(16, 16)}, "asked": 12, "barriers": 1, "shuffles": 10},
    # The row is read once: 4 bytes an element for the input, 4 for the weight.
    "07_registers": {"loads": {(16, 16)}, "stores": {(16, 16)}, "asked": 8, "barriers": 1, "shuffles": 10},
    "08_critical_path": {"loads": {(16, 16)}, "stores": {(16, 16)}, "asked": 8, "barriers": 1, "shuffles": 5},
    "09_streaming": {"loads": {(16, 16)}, "stores": {(16, 16)}, "asked": 8, "barriers": 1, "shuffles": 5},
    "10_block_shapes": {"loads": {(16, 16)}, "stores": {(16, 16)}, "asked": 8, "barriers": 1, "shuffles": 5},
    # 8 blocks fit on the CPU device, for 8 rows each: the weight is read once for all of them.
    "11_persistent": {"loads": {(16, 16)}, "stores": {(16, 16)}, "asked": 4.5, "barriers": 8, "shuffles": 40},
    # A bulk copy is one request of one lane for a whole row of 1024 sectors.
    "12_bulk_copy": {"loads": {(32768, 1024)}, "stores": {(16, 16)}, "asked": 4.5, "barriers": 9, "shuffles": 40},
    "13_cluster": {"loads": {(16, 16)}, "stores": {(16, 16)}, "asked": 8, "barriers": 1, "shuffles": 5},
    "14_dependent_launch": {"loads": {(16, 16)}, "stores": {(16, 16)}, "asked": 8, "barriers": 1, "shuffles": 5},
    "15_many_blocks": {"loads": {(16, 16)}, "stores": {(16, 16)}, "asked": 8, "barriers": 1, "shuffles": 5},
}


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A folder with the counters of every stage, counted now."""
    folder = tmp_path_factory.mktemp("counted")
    result = make("analyze", "S=all", f"RESULTS={folder}")
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def rows_of(folder, stage):
    with open(folder / f"{stage}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def lines_of(folder, stage):
    return [row for row in rows_of(folder, stage) if row["file"]]


def shapes(rows, what):
    """{(bytes a lane, sectors a request)} of the lines that make more than a hundredth of the requests of this kind."""
    rows = [row for row in rows if row["what"].startswith(what)]
    most = sum(int(row["requests"]) for row in rows)
    rows = [row for row in rows if int(row["requests"]) > most / 100]
    return {(int(row["bytes_per_lane"]), int(row["sectors"]) / int(row["requests"])) for row in rows}


def product(text):
    return math.prod(map(int, text.split("x")))


def barriers_of(rows):
    """A block's, summed over the lines: each thread passes them all."""
    passed = [row for row in rows if row["what"] == "block_barrier"]
    return sum(int(row["lanes"]) / product(row["grid"]) / product(row["block"]) for row in passed)


def shuffles_of(rows):
    called = [row for row in rows if row["what"] == "shuffle"]
    return sum(int(row["requests"]) / product(row["grid"]) / -(-product(row["block"]) // 32) for row in called)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_does_what_its_write_up_says(counted, stage):
    assert stage in CLAIMS, f"{stage} has no claims in {__file__}: what does its write-up say of its accesses?"
    rows, claims = lines_of(counted, stage), CLAIMS[stage]
    asked = sum(int(row["bytes"]) for row in rows if row["what"].startswith("global load")) / ROWS / COLS
    assert shapes(rows, "global load") == claims["loads"]
    assert shapes(rows, "global store") == claims["stores"]
    assert asked == claims["asked"]
    assert barriers_of(rows) == claims["barriers"]
    assert shuffles_of(rows) == claims["shuffles"]


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_has_bank_conflicts(counted, stage):
    """The padded tile of 03_tiled among them. Lanes that write into other blocks of a cluster meet in no bank."""
    for row in lines_of(counted, stage):
        assert row["wavefronts"] == row["ideal_wavefronts"] or "map_shared_rank" in row["source"], row


@pytest.mark.parametrize("stage", STAGES)
def test_sums_are_those_of_the_lines(counted, stage):
    rows = rows_of(counted, stage)
    for total in (row for row in rows if not row["file"]):
        same = [r for r in rows if r["file"] and r["what"].startswith(total["what"]) and r["kernel"] == total["kernel"]]
        for column in ("requests", "lanes", "bytes", "sectors", "wavefronts"):
            if total[column]:
                assert int(total[column]) == sum(int(row[column] or 0) for row in same), (total, column)


def test_the_runtime_counts_the_same_barriers(counted, ladder, tmp_path):
    """The ordinary build's own count, which the ladder prints, is another piece of code."""
    if BACKEND != "cpu":
        pytest.skip("a GPU's program prints no counters")
    run(ladder, "--rows", ROWS, "--cols", COLS, "--no-small", "--csv", tmp_path / "ladder.csv")
    with open(tmp_path / "ladder.csv", newline="") as file:
        printed = {row["stage"]: float(row["barriers_per_block"]) for row in csv.DictReader(file)}
    assert {stage: barriers_of(lines_of(counted, stage)) for stage in STAGES} == printed


def test_what_is_stored_is_fresh(counted):
    """make analyze S=all stores it anew. Another g++ may keep other loads, so it is held to its own."""
    assert sorted(path.name for path in STORE.iterdir()) == sorted(path.name for path in counted.iterdir())
    if (STORE / "environment.txt").read_text() != (counted / "environment.txt").read_text():
        pytest.skip("what is stored was counted with another g++")
    stale = [
        stage for stage in STAGES if (STORE / f"{stage}.csv").read_text() != (counted / f"{stage}.csv").read_text()
    ]
    assert stale == [], "make analyze S=all counts them anew"


# What differs, and has to: a grid as large as the device, each block of which loads the weight; bulk copies, which the
# H200 does not count as loads; stores into another block's shared memory, which it does not count as shared ones.
DIFFERENT = {
    "11_persistent": {"load requests", "load sectors"},
    "12_bulk_copy": {"load requests", "load sectors"},
    "13_cluster": {"shared store wavefronts"},
}
# Of these the counters of shared memory were not read.
WITHOUT_SHARED = [stage for stage in STAGES if "07" <= stage[:2] <= "12"]


@pytest.mark.parametrize("stage", STAGES)
def test_nsight_compute_counts_the_same(stage):
    """Where the H200's counters of the same kernel are stored, they are within half a percent."""
    both = cpu_device.comparison(ROOT / "profiling_results/h200", stage)
    if not both:
        pytest.skip("not profiled")
    assert len(both) == (4 if stage in WITHOUT_SHARED else 6)
    different = {title for title, (here, there) in both.items() if not cpu_device.agree(here, there)}
    assert different == DIFFERENT.get(stage, set()), both


def analyze(*arguments, cwd=ROOT, **environment):
    return run(ROOT / "simt/analyze", *arguments, cwd=cwd, **environment)


@pytest.mark.parametrize("padding, wavefronts", [(0, 32), (1, 1)])
def test_padding_removes_the_conflicts_of_a_tile(tmp_path, padding, wavefronts):
    source = ROOT / "tests/analyze/transpose.cu"
    result = analyze(source, f"-DPADDING={padding}", "--json", "-", "--html", "x.html", "--", "a", "b", cwd=tmp_path)
    assert result.returncode == 0 and sorted(result.stderr.splitlines()) == ["no error, 2 arguments", "to stderr"]
    data = json.loads(result.stdout)
    (kernel,) = data["kernels"]
    (column,) = [access for access in kernel["accesses"] if (access["space"], access["kind"]) == ("shared", "load")]
    assert column["file"] == str(source) and column["source"].startswith("out[(x + threadIdx.y)")
    assert column["wavefronts"] == wavefronts * column["requests"] == wavefronts * 128
    assert bool(column["remark"]) == (padding == 0) and data["hazards"] == []
    assert kernel["barriers_per_block"] == 1
    drawn = (tmp_path / "x.html").read_text()
    assert ('class="clash"' in drawn) == (padding == 0) and "tile[threadIdx.x][threadIdx.y];" in drawn


def test_a_mistake_is_told_in_terms_of_the_students_file(tmp_path):
    (tmp_path / "my_kernel.cu").write_text("__global__ void k(int* p) {\n  *p = nothing;\n}\nint main() {}\n")
    result = analyze("my_kernel.cu", cwd=tmp_path)
    assert result.returncode == 1 and result.stdout == ""
    assert "my_kernel.cu:2:8: error: 'nothing' was not declared" in result.stderr.replace("‘", "'").replace("’", "'")
    assert "Traceback" not in result.stderr


def test_the_report_comes_after_the_programs_output_and_its_exit_code_counts(tmp_path):
    (tmp_path / "my_kernel.cu").write_text(
        "#include <cstdio>\n#include <cstdlib>\n__global__ void k(int* p) {\n  p[threadIdx.x] = 1;\n}\n"
        "int main(int, char** argv) {\n  int* p;\n  cudaMalloc(&p, 128);\n  k<<<1, 32>>>(p);\n"
        '  std::puts("from the program");\n  return std::atoi(argv[1]);\n}\n'
    )
    assert run(ROOT / "simt/simtcc", "--analyze", "my_kernel.cu", "-o", "program", cwd=tmp_path).returncode == 0
    right = analyze("--program", "program", "--", "0", cwd=tmp_path)
    assert right.returncode == 0 and right.stderr == ""
    assert right.stdout.startswith("from the program\n──")
    assert "      4  p[threadIdx.x] = 1;\n" in right.stdout and "hazards: none" in right.stdout
    wrong = analyze("--program", "./program", "--", "3", cwd=tmp_path)
    assert wrong.returncode == 1 and wrong.stderr == "analyze: the program ended with exit code 3\n"
    assert "p[threadIdx.x] = 1;" in wrong.stdout
    plain = run("./program", "0", cwd=tmp_path)
    assert plain.stdout == "from the program\n" and plain.stderr == ""


def test_make_analyze(tmp_path):
    folder = f"{LADDER}/05_warp_shuffle"
    result = make("analyze", f"S={folder}", "ARGS=--rows 2 --cols 1024")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 x 1024" in result.stdout and "PASS" in result.stdout
    assert "kernel warp_shuffle::" in result.stdout and f"  {folder}/kernel.cuh" in result.stdout
    assert "html: build/analyze/05_warp_shuffle.html" in result.stdout
    assert (ROOT / "build/analyze/05_warp_shuffle.html").read_text().endswith("</html>\n")


@pytest.mark.parametrize("asked", ["", "nonsense"])
def test_make_analyze_explains_itself(asked):
    refused = make("analyze", f"S={asked}")
    assert refused.returncode == 2 and f"{LADDER}/05_warp_shuffle" in refused.stderr
    assert ("make analyze needs S=" in refused.stderr) == (asked == "")
