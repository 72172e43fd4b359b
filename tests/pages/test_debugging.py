"""The transcripts of DEBUGGING.md: its program, compiled and run as the page says, answers what the page shows."""

import re
import shutil

import pytest
from conftest import ROOT, run

PAGE = (ROOT / "DEBUGGING.md").read_text(encoding="utf-8")
PROGRAM, PRINT = re.findall(r"^```cuda\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SHOWN = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("debugging")
    (place / "block_sum.cu").write_text(PROGRAM)
    built = run(ROOT / "simt/simtcc", "-g", "-O0", "block_sum.cu", "-o", "block_sum", cwd=place)
    assert built.returncode == 0, built.stderr
    return place


def plain(text):
    """Without what differs from machine to machine: addresses and folders."""
    return re.sub(r"/\S*/block_sum", "block_sum", re.sub(r"0x[0-9a-f]{6,}(?!\))", "0x…", text))


def test_the_sum_depends_on_the_order(folder):
    forward, backward = (run("./block_sum", cwd=folder, SIMT_ORDER=order).stdout for order in ("forward", "reversed"))
    assert forward != backward
    assert f"$ ./block_sum\n{forward}$ SIMT_ORDER=reversed ./block_sum\n{backward}" in PAGE


def test_analyze_names_the_race(folder):
    # A ccache that is told hash_dir=false hands out code that names another folder.
    report = run(ROOT / "simt/analyze", "block_sum.cu", cwd=folder, CCACHE_DISABLE="1")
    shown = next(text for text in SHOWN if "simt/analyze" in text).split("\n", 1)[1]
    assert report.returncode == 1 and shown in report.stdout


def test_a_barrier_repairs_it(folder):
    line = "  parts[i] = x[i] * x[i];\n"
    assert PROGRAM.splitlines(keepends=True)[5] == line
    (folder / "repaired.cu").write_text(PROGRAM.replace(line, line + "  __syncthreads();\n"))
    report = run(ROOT / "simt/analyze", "repaired.cu", cwd=folder)
    assert report.returncode == 0 and "the sum is 128" in report.stdout


def test_a_kernel_prints(folder):
    line = "  int i = threadIdx.x;\n"
    (folder / "prints.cu").write_text(PROGRAM.replace(line, line + PRINT))
    run(ROOT / "simt/simtcc", "prints.cu", "-o", "prints", cwd=folder)
    assert run("./prints", cwd=folder).stdout.startswith(next(text for text in SHOWN if text.startswith("thread 0")))


@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb on this machine")
def test_gdb_stops_in_the_kernel(folder):
    shown = next(text for text in SHOWN if "(gdb)" in text)
    commands = [word for line in re.findall(r"^\(gdb\) (.*)", shown, re.MULTILINE) for word in ("-ex", line)]
    said = run("gdb", "-q", "-batch", *commands, "./block_sum", cwd=folder, SIMT_WORKERS="1").stdout
    for line in shown.splitlines():
        if not line.startswith(("(gdb)", "$ SIMT")):
            assert plain(line) in plain(said).splitlines(), said
