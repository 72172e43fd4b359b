"""What simt/analyze makes of a program's raw results: a stored sample, and programs."""

import csv
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

SIMT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SIMT))
from report import exports, model, remarks, terminal, webpage

SAMPLE = SIMT / "tests/analysis/sample.cu"


@pytest.fixture
def dump():
    return sample_dump()


def sample_dump():
    text = (SIMT / "tests/analysis/sample_dump.json").read_text()
    return json.loads(text.replace('"sample.cu"', json.dumps(str(SAMPLE))))


@pytest.fixture
def analysis(dump):
    return model.read(dump)


def line_of(kernel, line, space, kind):
    (found,) = [a for a in kernel.accesses if (a.place.line, a.space, a.kind) == (line, space, kind)]
    return found


def test_requests_of_one_line_are_summed(analysis):
    transpose, column_sums = analysis.kernels
    load = line_of(transpose, 10, "shared", "load")  # two program counters
    assert (load.requests, load.lanes, load.transfers, load.ideal, load.excess) == (128, 4096, 4096, 128, 3968)
    assert load.per_request == 32 and load.ideal_per_request == 1 and load.worst["wavefronts"] == 32
    strided = line_of(column_sums, 15, "global", "load")
    assert strided.moved == 2048 * 32 and strided.efficiency == 0.125 and strided.lanes_per_request == 32
    assert column_sums.barriers_per_block() == 1 and transpose.barriers_per_block() == 0
    assert transpose.total("global", "load").bytes == 16384 and transpose.total("shared", "atomic") is None


def test_the_text_fits_and_shows_source_numbers_and_remarks(analysis):
    text = terminal.report(analysis)
    assert max(map(len, text.splitlines())) <= 100
    words = re.sub(r"\s+", " ", text)
    for said in (
        "1 launch of 2 × 2 blocks of 32 × 32 threads; 4,096 bytes of shared memory per block",
        "10 out[y * n + x] = tile[threadIdx.x][threadIdx.y];",
        "load shared 4 B 128 32.00 (1) wavefronts 32.0",
        "32 wavefronts per request where 1 would do: neighbouring lanes are 128 bytes apart, so all access the same bank",
        "load global 4 B 64 32.00 (4) sectors 12.5 % 32.0",
        "32 sectors per request where 4 would do: neighbouring lanes are 256 bytes apart",
        "4 sectors per request where 2 would do: of neighbouring elements, only 16 are requested",
        "neighbouring elements: 16 bytes per lane instead of 4 would take a quarter of the requests",
        "1 barrier per block",
        "loads 64 8,192 B 65.5 kB 12.5 % 32.00 (4) 8,192 B 1.00",
        "1. race: read after write, in shared memory, kernel transpose, 3,968 times",
        "sample.cu:9 store, thread (1, 0, 0), block 0 tile[threadIdx.y][threadIdx.x] = in[y * n + x];",
        "sample.cu:10 load, thread (0, 1, 0), block 0 out[y * n + x] = tile[threadIdx.x][threadIdx.y];",
        "what tile + 4 bytes One thread reads what another has written",
        "Exact:",
        "Model:",
        "Unknown without hardware: time",
    ):
        assert said in words, said
    assert "\033" not in text and "\033[1;31m" in terminal.report(analysis, style=terminal.Style(True))


def test_an_atomic_or_a_tail_gets_no_advice_about_width(analysis):
    kernel = analysis.kernels[0]
    load = line_of(kernel, 9, "global", "load")
    assert "a quarter" in remarks.remark(load, kernel)
    load.requests = load.ideal = load.transfers = 1  # a line that makes few of the kernel's requests
    assert remarks.remark(load, kernel) is None
    store = line_of(kernel, 10, "global", "store")
    store.kind = "atomic"
    assert remarks.remark(store, kernel) is None


@pytest.mark.parametrize(
    "addresses, transfers, said",
    [
        ([[lane, 4 + 4 * lane] for lane in range(32)], 5, "from 4 bytes past the start of a sector"),
        ([[lane, 32768 * lane] for lane in range(32)], 32, "neighbouring lanes are 32 KiB apart"),
        ([[lane, 4 * (lane * 37 % 512)] for lane in range(32)], 20, "follow no single step"),
    ],
)
def test_the_reason_is_read_off_the_addresses(analysis, addresses, transfers, said):
    kernel = analysis.kernels[0]
    load = line_of(kernel, 9, "global", "load")
    load.worst, load.transfers = {"addresses": addresses, "sectors": transfers}, load.requests * transfers
    assert f"{transfers} sectors per request where 4 would do: " in remarks.remark(load, kernel)
    assert said in remarks.remark(load, kernel)


def test_only_the_busiest_shape_is_shown_unless_all_are_wanted(dump):
    other = json.loads(json.dumps(dump["kernels"][0]))
    other.update(grid=[7, 1, 1])
    for site in other["sites"]:
        site["requests"] //= 2
    dump["kernels"].append(other)
    analysis = model.read(dump)
    text = " ".join(terminal.report(analysis).split())
    assert "1 launch of 2 × 2 blocks" in text and "not shown: 1 other shape (--launches)" in text
    assert "of 7 blocks" not in text and "of 7 blocks" in terminal.report(analysis, every_shape=True)
    assert "of 7 blocks" not in webpage.page(analysis) and "of 7 blocks" in webpage.page(analysis, True)


def test_a_filter_keeps_a_kernel_and_its_hazards(dump):
    kept = model.read(dump).only("column")
    assert [kernel.name for kernel in kept.kernels] == ["column_sums"] and kept.hazards == []
    assert len(model.read(dump).only("trans").hazards) == 1
    assert "no kernel ran" in terminal.report(model.read(dump).only("nonsense"))


def test_a_kernel_without_hooks_is_named(dump):
    dump["kernels"][0].update(sites=[], operations=[], blocks_run=[])
    dump["hazards"] = []
    analysis = model.read(dump)
    text = terminal.report(analysis)
    assert "not analysed, since built without simtcc --analyze: transpose" in text and "kernel transpose\n" not in text
    assert "kernel column_sums" in text and "transpose" not in exports.as_csv(analysis)


def test_a_kernel_that_faults_at_once_is_shown(dump):
    dump["kernels"][0].update(sites=[], operations=[], blocks_run=[])
    dump["error"] = dump["hazards"][0]["sentence"]
    text = terminal.report(model.read(dump))
    assert "kernel transpose\n" in text and "not analysed" not in text and text.count("One thread reads") == 1


def test_a_kernel_that_a_fault_ended_is_counted_up_to_there(dump):
    (race,) = dump["hazards"]
    elsewhere = {**race["first"], "thread": None, "block": None}  # the others, who wait at the same line
    found = model.read({**dump, "hazards": [{**race, "what": "mask", "second": elsewhere}]})
    text = terminal.report(found)
    assert " ".join(text.split()).count("stopped by a fault: counted up to there") == 1
    assert "     at " in text and "     and " not in text


def test_a_pair_of_lines_is_one_hazard(dump):
    (race,) = dump["hazards"]
    back = {**race, "first": race["second"], "second": race["first"]}
    (merged,) = model.read({**dump, "hazards": [race, back]}).hazards
    assert merged.count == 2 * race["count"] and merged.first.place.line == 9


def test_of_very_many_hazards_the_first_are_shown(dump):
    dump["hazards"] = [{**dump["hazards"][0], "kernel": f"kernel{i}"} for i in range(25)]
    text = terminal.report(model.read(dump))
    assert " 20. race" in text and " 21. race" not in text and "and 5 more: --json lists all" in text


def test_json_holds_everything(analysis):
    data = json.loads(exports.as_json(analysis))
    transpose, column_sums = data["kernels"]
    assert transpose["grid"] == [2, 2, 1] and transpose["totals"]["shared_load"]["wavefronts"] == 4096
    strided = column_sums["accesses"][0]
    assert strided["file"] == str(SAMPLE) and strided["line"] == 15 and strided["source"].startswith("for (int i")
    assert strided["sectors"] == 2048 and strided["bytes_moved"] == 65536 and "256 bytes" in strided["remark"]
    assert len(strided["worst"]["addresses"]) == 32
    (hazard,) = data["hazards"]
    assert hazard["first"]["line"] == 9 and hazard["second"]["line"] == 10 and hazard["variable"] == "tile + 4 bytes"


def test_csv_has_sums_and_lines(analysis):
    rows = list(csv.DictReader(io.StringIO(exports.as_csv(analysis, root=SIMT / "tests"))))
    sums = {(row["kernel"], row["what"]): row for row in rows if not row["file"]}
    assert sums["column_sums", "global load"]["distinct_bytes"] == "8192"
    assert sums["transpose", "shared load"]["wavefronts"] == "4096"
    lines = [row for row in rows if row["line"] == "15"]
    assert [row["file"] for row in lines] == ["analysis/sample.cu"]
    assert lines[0]["sectors"] == "2048" and lines[0]["bytes_per_lane"] == "4" and lines[0]["block"] == "32x1x1"
    (barrier,) = [row for row in rows if row["what"] == "block_barrier"]
    assert barrier["requests"] == "1" and barrier["sectors"] == ""


class Tags(HTMLParser):
    """Notes every tag, and that each that is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in ("meta", "br", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag, name=None):
        return [found for found, attributes in self.seen if found == tag and name in (None, attributes.get("class"))]


def test_the_page_is_whole_and_needs_nothing_else(analysis):
    text = webpage.page(analysis)
    page = Tags(text)
    assert page.open == []
    assert not [name for tag, attributes in page.seen for name in attributes if name in ("src", "href")]
    assert "http" not in text and "url(" not in text and "prefers-color-scheme: dark" in text
    assert len(page.all("svg")) == 4
    # 32 words in one bank; four full sectors; 32 sectors with one word each; 16 words of four sectors.
    assert len(page.all("rect", "clash")) == 32
    assert len(page.all("rect", "used")) == 32 + 32 + 16
    assert text.count("The first two columns:") == 2  # kernels
    assert len(page.all("main")) == 1 and text.index("The first two columns:") < text.index('<table class="source">')
    assert "<th></th>" not in text and not [
        kind for kind, more in page.seen if more.get("class") == "wide" and not more.get("aria-label")
    ]
    assert "<title>Analysis of 05: a &amp; b</title>" in webpage.page(analysis, name="05: a & b")
    plain = re.sub("<[^>]*>", "", text)
    assert "__global__ void transpose(const float* in, float* out, int n) {" in plain  # a line without an access
    assert "int main()" not in text
    assert "race: read after write" in text and "tile + 4 bytes" in text


def test_what_a_program_says_does_not_become_markup(dump):
    dump["kernels"][0]["name"] = "f<a&b>"
    dump["error"] = "<script>"
    text = webpage.page(model.read(dump))
    assert "f&lt;a&amp;b&gt;" in text and "<script>" not in text


def test_wide_accesses_are_drawn_word_by_word():
    from report import warp_pictures

    drawn = warp_pictures.sectors([[lane, 16 * lane] for lane in range(32)], 16)
    assert drawn.count('class="used"') == 128 and 'aria-label="16 sectors"' in drawn
    assert warp_pictures.banks([[lane, 0] for lane in range(32)], 4).count(">0+<") == 1  # a broadcast
    assert 'aria-label="at most 2 words in one bank"' in warp_pictures.banks([[0, 0], [1, 128]], 4)


def analyze(*arguments, cwd, **environment):
    return subprocess.run(
        [str(word) for word in (SIMT / "analyze", *arguments)],
        cwd=str(cwd),
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "which .cu file"),
        (["--json"], "--json lacks its value"),
        (["--json="], "--json is given nothing"),
        (["--program", "gone"], "--program gone: no such program"),
        (["--program", "/bin/true", "x.cu"], "/bin/true is built already"),
        (["--json", "-", "--csv", "-", "x.cu"], "only one of --json and --csv"),
        (["--html", "gone/x.html", "x.cu"], "--html gone/x.html: cannot be written"),
        (["--csv", ".", "x.cu"], "--csv .: cannot be written"),
        (["-c", "x.cu"], "-c: the program is built, run and thrown away"),
        (["gone.cu"], "gone.cu: no such file"),
        (["--nonsense", "x.cu"], "unknown option --nonsense"),
        (["x.cu", "-I"], "-I lacks its value"),
    ],
)
def test_a_bad_command_line_is_refused(tmp_path, arguments, said):
    (tmp_path / "x.cu").write_text("int main() {}\n")
    result = analyze(*arguments, cwd=tmp_path)
    assert result.returncode == 2 and result.stdout == "" and said in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.cu"]


def test_help_names_every_option(tmp_path):
    shown = analyze("--help", cwd=tmp_path)
    assert shown.returncode == 0 and shown.stderr == ""
    for option in ("--program", "--kernel", "--launches", "--json", "--csv", "--html", "--name", "--root"):
        assert option in shown.stdout


def test_a_program_of_another_build_is_one_sentence(tmp_path):
    result = analyze("--program", "/bin/echo", "--", "hello", cwd=tmp_path)
    assert result.returncode == 1 and result.stdout == "hello\n"
    assert "there are no results" in result.stderr and "simtcc --analyze" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.full
def test_a_filter_that_fits_no_kernel_names_those_there_are(tmp_path):
    program = tmp_path / "sample"
    subprocess.run([SIMT / "simtcc", "--analyze", SAMPLE, "-o", program], check=True)
    result = analyze("--program", program, "--kernel", "nonsense", cwd=tmp_path)
    assert result.returncode == 2 and result.stdout == "no error\n"
    assert "--kernel nonsense: no such kernel ran; those that did: transpose" in result.stderr


@pytest.fixture(scope="module")
def script():
    """simt/analyze as a module."""
    loader = SourceFileLoader("analyze", str(SIMT / "analyze"))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("analyze", loader))
    loader.exec_module(script)
    return script


def test_a_file_beside_the_makefile_of_all_is_no_stage(script):
    stage = SIMT.parent / "assignment1/rms_norm/matrix/05_warp_shuffle/Makefile"
    assert script.has_rules(stage) and not script.has_rules(SIMT.parent / "Makefile")


def test_a_reader_is_told_why_it_takes_so_long(script, monkeypatch, capsys):
    monkeypatch.setattr(script, "PATIENCE", 0.1)
    assert script.wait_for(subprocess.Popen(["sleep", "0"])) == 0
    assert script.wait_for(subprocess.Popen(["sleep", "1"])) == 0
    assert capsys.readouterr().err.count("still runs after 0.1 seconds") == 1


@pytest.mark.parametrize(
    "lines, marked, shown",
    [
        (["int a;", "template <int N>", "__global__ void k() {", "  x;", "}", "int b;"], {4}, (2, 5)),
        (["// about", "inline __device__ int f() {", "  x;", "  y;", "}"], {3, 4}, (1, 5)),
        (["KERNEL(x)"] * 100, {50}, (47, 53)),
        (["x"], {1}, (1, 1)),
        (["__global__ void k() { x; }  // all of it", "int main() {", "}"], {1}, (1, 1)),
    ],
)
def test_the_listing_shows_whole_functions(lines, marked, shown):
    assert webpage.extent(lines, marked) == shown


def test_a_programs_race_is_told_with_both_lines(tmp_path):
    """The whole way, on the program that the stored sample speaks of."""
    result = analyze(SAMPLE, "--json", tmp_path / "report.json", "--html", tmp_path / "report.html", cwd=tmp_path)
    assert result.returncode == 1 and result.stderr == ""
    assert result.stdout.startswith("no error\n") and f"html: {tmp_path}/report.html\n" in result.stdout
    said = " ".join(result.stdout.split())
    # Who it was stands beside the line, or below it where the folder's name is long.
    for line, kind in ((9, "store"), (10, "load")):
        assert re.search(rf"sample\.cu:{line} [^:]*{kind}, thread", said), said
    assert "what tile + " in said
    data = json.loads((tmp_path / "report.json").read_text())
    (race,) = [hazard for hazard in data["hazards"] if hazard["what"] == "race"]
    assert {race["first"]["line"], race["second"]["line"]} == {9, 10} and race["kernel"] == "transpose"
    stored = sample_dump()["kernels"]
    for kernel, expected in zip(data["kernels"], stored):
        of_stored = model.read({"program": "", "kernels": [expected], "hazards": []}).kernels[0]
        for name, total in kernel["totals"].items():
            wanted = of_stored.total(*name.split("_"))
            transfers = total.get("sectors", total.get("wavefronts"))
            assert (total["requests"], total["bytes"], transfers) == (wanted.requests, wanted.bytes, wanted.transfers)
    assert Tags((tmp_path / "report.html").read_text()).open == []
