"""make analyze: a stage's counters are those that its page claims, and the stored counts are fresh."""

import json
import re
import shutil

import pytest
from conftest import BACKEND, FULL, LADDER, ROOT, cores, make, program, run
from fakes import read
from ladder.core import ladders, markers, results
from ladder.measure import cpu_device

pytestmark = pytest.mark.builds()

STAGES = ladders.stages_of("all")
MATRIX = [stage for stage in STAGES if stage.ladder.id == ladders.DEFAULT]
STORE = results.store() / results.CPU_DEVICE


def each(stages):
    return pytest.mark.parametrize("stage", stages, ids=lambda stage: stage.id)


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A folder with the counters of every stage, counted now; the quick run counts one ladder's, and takes the rest as
    they are stored."""
    folder = tmp_path_factory.mktemp("counted")
    if not FULL:
        shutil.copytree(STORE, folder, dirs_exist_ok=True)
    result = make("analyze", "S=all" if FULL else f"S={ladders.DEFAULT}/all", f"RESULTS={folder}", timeout=1800)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def path_of(folder, stage):
    return folder / stage.ladder.id / f"{stage.name}.csv"


def lines_of(folder, stage):
    return [row for row in read(path_of(folder, stage)) if row["file"]]


@each(STAGES)
def test_a_stage_does_what_its_write_up_says(counted, stage):
    """The claims are in the marker of the page's own table; tools/ladder/core/markers.py says what they mean."""
    claimed = cpu_device.claimed(stage)
    found = cpu_device.counted(path_of(counted, stage), stage.ladder.analyze)
    assert {name: found[name] for name in claimed} == claimed


@each(STAGES)
def test_no_stage_has_bank_conflicts(counted, stage):
    """Including the padded tile of 03_tiled. Lanes that write into other blocks of a cluster share no bank."""
    if "conflicts" in markers.claims(stage):
        pytest.skip("its page speaks of them")
    for row in lines_of(counted, stage):
        assert row["wavefronts"] == row["ideal_wavefronts"] or "map_shared_rank" in row["source"], row


@each(STAGES)
def test_sums_are_those_of_the_lines(counted, stage):
    rows = read(path_of(counted, stage))
    for total in (row for row in rows if not row["file"]):
        launch = (total["kernel"], total["grid"], total["block"])
        same = [r for r in rows if r["file"] and (r["kernel"], r["grid"], r["block"]) == launch]
        same = [r for r in same if r["what"].startswith(total["what"])]
        for column in ("requests", "lanes", "bytes", "sectors", "wavefronts"):
            if total[column]:
                assert int(total[column]) == sum(int(row[column] or 0) for row in same), (total, column)


@pytest.mark.builds(LADDER)
def test_the_runtime_counts_the_same_barriers(counted, tmp_path):
    """The ordinary build's own count, which the ladder prints, is another piece of code."""
    if BACKEND != "cpu":
        pytest.skip("a GPU's program prints no counters")
    given = [word for name, value in MATRIX[0].ladder.analyze.items() for word in (f"--{name}", value)]
    run(program(LADDER), *given, "--no-small", "--csv", tmp_path / "ladder.csv")
    printed = {row["stage"]: float(row["barriers_per_block"]) for row in read(tmp_path / "ladder.csv")}
    assert {stage.name: cpu_device.operations(lines_of(counted, stage))[0] for stage in MATRIX} == printed


def is_number(cell):
    return re.fullmatch(r"-?\d+(\.\d+)?(e[-+]\d+)?", cell)


def are_alike(path, stored, counted):
    """What is counted is the same in every character. What an experiment computes in float32 is not, since a processor
    may fuse a multiplication and an addition: there, words are the same, and numbers of one size."""
    if path.stem not in ladders.find(path.parts[0]).computed:
        return stored == counted
    cells = [re.split("[,\n]", text) for text in (stored, counted)]
    pairs = [(a, b) for a, b in zip(*cells) if a != b]
    near = all(is_number(a) and is_number(b) and float(a) == pytest.approx(float(b), rel=0.5) for a, b in pairs)
    return len(cells[0]) == len(cells[1]) and near


def test_what_is_stored_is_fresh(counted):
    """make analyze S=all stores it anew. g++ 12, 13 and 14 keep the same loads; a newer one that does not is named."""
    paths = sorted(path.relative_to(counted) for path in counted.rglob("*") if path.is_file())
    assert sorted(path.relative_to(STORE) for path in STORE.rglob("*") if path.is_file()) == paths
    tables = [path for path in paths if path.suffix == ".csv"]
    stale = [
        str(path) for path in tables if not are_alike(path, (STORE / path).read_text(), (counted / path).read_text())
    ]
    compilers = [(folder / "environment.txt").read_text().strip() for folder in (STORE, counted)]
    assert stale == [], f"make analyze S=all counts them anew (stored: {compilers[0]}, here: {compilers[1]})"


def titles(claim):
    return {word.replace("_", " ") for word in claim.split(",") if word}


@each(STAGES)
def test_nsight_compute_counts_the_same(stage):
    """If the H200's counters of the same kernel are stored, they agree within half a percent. The page's marker names
    the counters that have to differ and those that were not read, and the page's text says why."""
    both = cpu_device.comparison(results.store() / "h200", stage)
    if not both:
        pytest.skip("not profiled")
    claims = markers.claims(stage)
    profile, _ = cpu_device.profile_of(results.store() / "h200", stage)
    several = cpu_device.has_several_launches(results.read(profile, ["name"]))
    of_longest = {"load sectors", "store sectors"} if several else set()
    assert set(both) == set(cpu_device.COMPARED) - titles(claims.get("unread", "")) - of_longest
    different = {title for title, (here, there) in both.items() if not cpu_device.agree(here, there)}
    assert different == titles(claims.get("differs", "")), both


def analyze(*arguments, cwd=ROOT, **environment):
    return run(ROOT / "simt/analyze", *arguments, cwd=cwd, **environment)


@pytest.mark.parametrize("padding, wavefronts", [(0, 32), (1, 1)])
def test_padding_removes_the_conflicts_of_a_tile(tmp_path, padding, wavefronts):
    source = ROOT / "tests/harness/analyze/transpose.cu"
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
    assert re.search(r"^checked on \d+ small problems first", result.stdout, re.MULTILINE)  # including a tail
    assert "  1 launch of 2 blocks of 256 threads" in result.stdout  # and of these nothing is counted
    assert "::warp_shuffle::rms_norm_kernel" in result.stdout and f"  {folder}/kernel.cuh" in result.stdout
    assert "html: build/analyze/matrix/05_warp_shuffle.html" in result.stdout
    assert (ROOT / "build/analyze/matrix/05_warp_shuffle.html").read_text().endswith("</html>\n")


@pytest.mark.parametrize(
    "file, given, kernel",
    [
        (
            f"{LADDER}/05_warp_shuffle/main.cu",
            ["-I.", "--", "--rows", "2", "--cols", "1024"],
            "::warp_shuffle::rms_norm_kernel",
        ),
        ("lectures/W2L1_reduction/reduction0.cu", [], "::reduction0::"),
    ],
)
def test_a_file_of_the_course_is_analyzed_as_make_builds_it(tmp_path, file, given, kernel):
    """From any folder, without -I, with what the program is linked with; without options on make analyze's input."""
    result = analyze(ROOT / file, "--json", tmp_path / "counted.json", *given, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "PASS" in result.stdout and ("2 x 1024" if given else "\nn = 65536 float32") in result.stdout
    assert kernel in json.loads((tmp_path / "counted.json").read_text())["kernels"][0]["name"]


def test_a_file_in_the_repository_finds_its_includes(tmp_path):
    folder = ROOT / "build/analyze/own"
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "own.cu"
    source.write_text(
        '#include "common/kernel_helpers.cuh"\n__global__ void k(float* p) { *p = ladder::warp_reduce_sum(1.0f); }\n'
        "int main() {\n  float* p;\n  cudaMalloc(&p, 4);\n  k<<<1, 32>>>(p);\n  cudaDeviceSynchronize();\n}\n"
    )
    result = analyze(source, cwd=tmp_path)
    assert "hazards" in result.stdout and "kernel k" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("asked", ["", "nonsense"])
def test_make_analyze_explains_itself(asked):
    refused = make("analyze", f"S={asked}")
    assert refused.returncode == 2 and "  matrix/05_warp_shuffle\n" in refused.stderr
    assert ("a stage must be named" in refused.stderr) == (asked == "")


LESSON = ROOT / "lectures/W3L2_nsight_compute/README.md"


@pytest.fixture(scope="module")
def printed():
    """The reports of which W3L2's page shows lines, by the words of its markers."""
    said = {}
    for asked, numbers in (("matrix", "12359"), ("W1L2", "1")):
        ladder = ladders.find(asked)
        built = make(f"-j{cores()}", "BACKEND=cpu", f"{ladder.path}/analyzed")
        assert built.returncode == 0, built.stdout + built.stderr
        program = ROOT / "build/analyze" / ladder.path / ladder.program
        given = [word for name, value in ladder.analyze.items() for word in (f"--{name}", value)]
        for number in numbers:
            result = analyze("--program", program, "--", "--profile", *given, "--stage", number)
            assert result.returncode == 0, result.stdout + result.stderr
            said[ladder.stage(number).id.replace("/", " ")] = result.stdout
    source = ["tests/harness/analyze/transpose.cu", "-DPADDING=0"]
    said[" ".join(source)] = analyze(*source, "--", "a", "b").stdout
    return said


def test_the_lines_that_the_lesson_shows_are_fresh(printed):
    text = LESSON.read_text(encoding="utf-8")
    excerpts = re.findall(r"<!-- analyze (.*?) -->\n\n```text\n(.*?)\n```", text, re.S)
    assert len(excerpts) == text.count("<!-- analyze ") == 8
    for asked, excerpt in excerpts:
        lines = iter([line.rstrip() for line in printed[asked].splitlines()])
        for wanted in excerpt.splitlines():
            assert wanted in lines, f"{asked}: not printed any more, or not in this order: {wanted}"
    assert all("hazards: none" in said for said in printed.values())
