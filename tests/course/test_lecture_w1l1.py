"""The first page: what it shows of its programs is what they print, and what it says of them is so."""

import json
import re

import pytest
from conftest import BACKEND, BUILD, ROOT, run
from fakes import read
from ladder.core import ladders, results

FOLDER = "lectures/W1L1_first_kernel"
LESSON, PROGRAMS = ROOT / FOLDER, BUILD / FOLDER
PAGE = (LESSON / "README.md").read_text(encoding="utf-8")
WRITTEN = re.sub(
    r"(?<=:begin )[^\n]*-->.*?<!-- [^\n]*:end -->", "", PAGE, flags=re.S
)  # without what make readme writes
SHOWN = re.findall(r"^```text\n\$ \./(\w.*)\n((?:.*\n)*?)```$", WRITTEN, re.M)
PLAIN = ["hello", "who_am_i", "add", "errors", "device_query"]
LADDER = ladders.find("W1L1")
builds = pytest.mark.builds(FOLDER)
cpu_only = pytest.mark.skipif(BACKEND != "cpu", reason="the page shows what the CPU device prints")


def comparable(text):
    """Without what belongs to the machine or to the run: folders, addresses, the size of memory and caches."""
    text = re.sub(r"0x[0-9a-f…]+", "0x…", text.replace(f"{LESSON}/", ""))
    return re.sub(r"(?<=^L2 cache) .*|(?<=^global memory) .*", "", text, flags=re.M)


@builds
@cpu_only
@pytest.mark.parametrize("command, shown", SHOWN, ids=[command for command, _ in SHOWN])
def test_the_page_shows_what_the_program_prints(command, shown):
    result = run("bash", "-c", f"./{command} 2>&1", cwd=PROGRAMS)
    assert comparable(result.stdout) == comparable(shown)
    assert result.returncode == (1 if command.endswith("checked") else 0)


def test_the_analysis_says_what_the_page_shows_of_it():
    command, shown = re.search(r"^```text\n\$ \.\./\.\./(simt/analyze .*)\n((?:.*\n)*?)```$", WRITTEN, re.M).groups()
    assert shown in run("bash", "-c", f"../../{command}", cwd=LESSON).stdout


@builds
def test_every_program_and_every_mistake_is_shown():
    assert list(dict.fromkeys(command.split()[0] for command, _ in SHOWN)) == PLAIN
    mistakes = run(PROGRAMS / "errors")
    assert mistakes.returncode == 2
    named = re.findall(r"launch|early|address|overrun", mistakes.stdout)
    assert named == [command.split()[1] for command, _ in SHOWN if re.fullmatch(r"errors \w+", command)]


def test_the_page_has_a_place_for_each_stored_output():
    assert re.findall(r"^<!-- table:output:begin (\w+) -->$", PAGE, re.M) == list(LADDER.outputs)


@pytest.mark.parametrize("name", PLAIN)
def test_the_programs_are_plain_cuda(name):
    included = re.findall(r"#include (.*)", (LESSON / f"{name}.cu").read_text(encoding="utf-8"))
    assert included[:2] == ["<cuda_runtime.h>", "<cstdio>"] and all(file.startswith("<") for file in included)


def test_one_line_compiles_a_program_anywhere(tmp_path):
    assert run(ROOT / "simt/simtcc", LESSON / "hello.cu", "-o", "hello", cwd=tmp_path).returncode == 0
    assert run(tmp_path / "hello").stdout == dict(SHOWN)["hello"]


@builds
@cpu_only
def test_the_order_of_threads_changes_the_order_of_lines_only():
    said = run(PROGRAMS / "who_am_i", SIMT_ORDER="reversed").stdout.splitlines()
    shown = dict(SHOWN)["who_am_i"].splitlines()
    assert said != shown and sorted(said) == sorted(shown)


@builds
@pytest.mark.parametrize("given, code", [(("1", "1024"), 0), (("1", "1025"), 1), (("0", "32"), 1)])
def test_who_am_i_says_why_a_launch_failed(given, code):
    result = run(PROGRAMS / "who_am_i", *given)
    assert result.returncode == code and ("invalid" in result.stdout) == (code == 1), result.stdout


@builds
@cpu_only
def test_the_ladder_passes_and_the_long_input_is_refused_by_one_thread():
    result = run(PROGRAMS / "first_kernel_test", "--n", 40000)
    assert result.returncode == 0, result.stdout + result.stderr
    verdicts = re.findall(r"^(vector_add\d) +(\w+) ", result.stdout, re.M)
    assert verdicts[:5] == [("vector_add0", "skipped"), *((f"vector_add{number}", "PASS") for number in range(1, 5))]
    assert "try --n 32768 or less" in result.stdout
    result = run(PROGRAMS / "first_kernel_test", "--n", 32768, "--stage", 0)
    assert result.returncode == 0 and "vector_add0  PASS" in result.stdout


def requests(stage):
    """Of all loads and stores."""
    rows = read(results.store() / results.CPU_DEVICE / f"W1L1/{stage}.csv")
    return sum(int(row["requests"]) for row in rows if row["file"])


def test_what_the_page_says_of_requests():
    one_thread, one_block, many, loop, wide = (requests(stage.name) for stage in LADDER.stages)
    assert one_thread == 32 * one_block, "a thirty-second"
    assert one_block == many == loop, "the same"
    assert many == 4 * wide, "a quarter"


SECOND_QUESTION = """
#include <cstdint>
#include <cstdio>
#include <vector>
{kernel}
int main() {{
  const int n = 32768;
  std::vector<float> x(n), y(n);
  float *a, *c;
  cudaMalloc(&a, 4 * n);
  cudaMalloc(&c, 4 * n);
  for (int i = 0; i < n; ++i) x[i] = i;
  cudaMemcpy(a, x.data(), 4 * n, cudaMemcpyHostToDevice);
  add_kernel<<<32, 256>>>(a, a, c, n);
  cudaMemcpy(y.data(), c, 4 * n, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += y[i] != 2 * i;
  std::printf("%d wrong", wrong);
}}
"""


def test_the_answer_to_the_second_question(tmp_path):
    """A stride of one block: a right result, and nearly 32 times the requests of 32 blocks; no hazard is reported."""
    kernel = re.search(
        r"^__global__.*?^}\n", (LESSON / "vector_add3.cu").read_text(encoding="utf-8"), re.M | re.S
    ).group()
    counted = {}
    for stride in ("threads", "blockDim.x"):
        changed = kernel.replace("i += threads", f"i += {stride}").replace(
            "const int64_t threads", "[[maybe_unused]] const int64_t threads"
        )
        (tmp_path / "add.cu").write_text(SECOND_QUESTION.format(kernel=changed))
        result = run(ROOT / "simt/analyze", "add.cu", "--json", "-", cwd=tmp_path)
        assert result.returncode == 0 and "0 wrong" in result.stderr, result.stderr
        (analyzed,) = json.loads(result.stdout)["kernels"]
        counted[stride] = sum(access["requests"] for access in analyzed["accesses"])
    assert 25 < counted["blockDim.x"] / counted["threads"] < 32
