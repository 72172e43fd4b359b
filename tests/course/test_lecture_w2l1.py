"""The lesson about sums: what its page says beyond the claims of its markers, and launches that are repeated."""

import json

import pytest
from conftest import BACKEND, ROOT, program, run
from ladder.core import ladders
from ladder.measure import cpu_device

LESSON = ROOT / "lectures/W2L1_reduction"
CONTROLS = "lectures/W2L1_reduction/controls"
cpu_only = pytest.mark.skipif(BACKEND != "cpu", reason="the CPU device's analysis and graphs are asked")


def total(name, what, column="requests", line=None):
    """Over the launches of a stage, or of its lines that hold this text."""
    sums, rows = cpu_device.read(cpu_device.path_of(ladders.find("W2L1").stage(name)))
    chosen = sums if line is None else [row for row in rows if line in row["source"]]
    return sum(int(row[column] or 0) for row in chosen if row["what"] == what)


TREE = "+= sdata["


def test_bank_conflicts_take_back_what_the_warps_gained():
    for what in ("shared load", "shared store"):
        assert total("reduction1", what, "wavefronts", TREE) == total("reduction0", what, "wavefronts", TREE)
        assert total("reduction1", what, line=TREE) < total("reduction0", what, line=TREE) / 3
        assert total("reduction2", what, "wavefronts", TREE) == total("reduction1", what, line=TREE)


def test_trees_become_fewer():
    def requests(name):
        return total(name, "shared load") + total(name, "shared store")

    assert requests("reduction3") < 0.51 * requests("reduction2")
    reads = total("reduction4", "global load")
    assert requests("reduction4") > 2 * reads  # more than twice as many as those that read the input
    assert requests("reduction5") < 0.15 * requests("reduction4")  # an eighth, and the second launch
    assert requests("reduction6") < requests("reduction5") / 3


def test_a_quarter_of_the_loads():
    assert 3.9 < total("reduction6", "global load") / total("reduction7", "global load") < 4


PROGRAM = """
#include <cstdio>
#include <cstring>
#define LADDER_ALL_STAGES
#include "{eight}"
#include "lectures/W2L1_reduction/reduction9.cu"
using namespace ladder::reduction;
// Replays one launch of a graph on scratch memory that holds anything, and counts the right results.
int replay(ladder::Sum::Launch launch, int64_t n, int times) {{
  float *input, *output, *scratch;
  cudaMalloc(&input, n * sizeof(float));
  cudaMalloc(&output, sizeof(float));
  cudaMalloc(&scratch, ladder::Sum::scratch_floats(n) * sizeof(float));
  cudaMemset(scratch, 0x7f, ladder::Sum::scratch_floats(n) * sizeof(float));
  for (int64_t i = 0; i < n; ++i) {{
    const float one = 1.0f;
    cudaMemcpy(input + i, &one, sizeof(one), cudaMemcpyHostToDevice);
  }}
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  launch(input, output, scratch, n, stream);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  int right = 0;
  for (int k = 0; k < times; ++k) {{
    float sum = 0;
    cudaMemset(output, 0xff, sizeof(float));
    cudaGraphLaunch(executable, stream);
    cudaStreamSynchronize(stream);
    cudaMemcpy(&sum, output, sizeof(sum), cudaMemcpyDeviceToHost);
    right += sum == static_cast<float>(n);
  }}
  return right;
}}
int main(int, char** argv) {{
  const auto launch = std::strcmp(argv[1], "8") == 0 ? reduction8::launch<> : reduction9::launch<>;
  std::printf("%d of 3 and %d of 2 right\\n", replay(launch, 20001, 3), replay(launch, 5, 2));
}}
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Compiles the program for analysis with reduction8.cu as it is, or with a change; its path."""
    folder = tmp_path_factory.mktemp("w2l1")

    def compiled(name, change=lambda text: text):
        eight = folder / f"{name}_reduction8.cu"
        eight.write_text(change((LESSON / "reduction8.cu").read_text(encoding="utf-8")), encoding="utf-8")
        source = folder / f"{name}.cu"
        source.write_text(PROGRAM.format(eight=eight), encoding="utf-8")
        result = run(ROOT / "simt/simtcc", "--analyze", f"-I{ROOT}", source, "-o", folder / name)
        assert result.returncode == 0, result.stdout + result.stderr
        return folder / name

    return compiled


def analyzed(program, *arguments):
    """(what it prints, its hazards)"""
    dump = program.with_suffix(".json")
    result = run(program, *arguments, SIMT_ANALYSIS=dump)
    return result.stdout, json.loads(dump.read_text())["hazards"]


@cpu_only
def test_one_launch_can_be_repeated_on_dirty_scratch_memory(build):
    program = build("as_it_is")
    for stage in "89":
        assert analyzed(program, stage) == ("3 of 3 and 2 of 2 right\n", []), stage


@cpu_only
def test_a_missing_fence_is_found_although_the_result_is_right(build):
    """What the page's second question and the page of the mutants say."""
    program = build("without_fence", lambda text: text.replace("__threadfence();", "", 1))
    printed, hazards = analyzed(program, "8")
    assert printed == "3 of 3 and 2 of 2 right\n"
    assert [(hazard["what"], hazard["space"]) for hazard in hazards] == [("race", "global")]


@pytest.mark.full
@cpu_only
@pytest.mark.builds(CONTROLS)
def test_cub_is_skipped_without_a_gpu_and_the_others_pass():
    result = run(program(CONTROLS), "--n", 1000, "--no-small")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "cub_device_reduce skipped: n = 1000: CUB comes with NVIDIA's CUDA toolkit" in result.stdout
    assert result.stdout.count(" PASS ") == 19
