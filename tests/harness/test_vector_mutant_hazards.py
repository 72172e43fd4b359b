"""The same for the mutants of the vector ladder: which of them simt/analyze catches, and at which lines."""

import subprocess

import pytest
from test_mutant_hazards import ROOT, build, hazards_of, names_in

MUTANTS = ROOT / "assignment1/rms_norm/vector/mutants"
pytestmark = pytest.mark.full

# name -> (kind, space, what stands in the hazard's lines)
HAZARDS = {
    "block_barrier_for_grid": ("race", "global", ["partial_sums[blockIdx.x] = sum;", "sum += numbers[i]"]),
    "input_before_wait": ("race", "global", ["output[i] = input[i]", "sum += input[i] * input[i]"]),
}
# The fault is in what they compute or leave out, or in what they assume about launches: no two accesses collide.
NO_HAZARD = {
    "counter_not_reset",  # the first launch is right
    "dropped_tail",
    "eps_outside_root",
    "first_256_partial_sums",
    "half_of_the_words",
    "head_taken_for_tail",
    "mean_of_block",
    "only_block_0_knows",
    "stale_words",  # atomics, of two launches
}
HANGS = {"block_leaves_early"}  # the CPU device ends the kernel, and says why

PROGRAM = """
#include <string>
{includes}
int main(int, char** argv) {{
  const std::string name = argv[1];
  const int64_t n = name == "block_leaves_early" ? 3 : 20000;
  float *in, *weight, *out, *scratch;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMalloc(&weight, n * sizeof(float));
  cudaMalloc(&scratch, ladder::RmsNormVector::kScratch * sizeof(float));
  cudaMemset(in, 0x3f, n * sizeof(float));
  cudaMemset(weight, 0x3f, n * sizeof(float));
  namespace mutants = ladder::vector::mutants;
  ladder::RmsNormVector::Launch launch = nullptr;
{choices}
  launch(in, weight, out, scratch, n, 1e-6f, nullptr);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 3;
}}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build(MUTANTS, PROGRAM, tmp_path_factory.mktemp("vector mutants"))


def test_the_tables_name_every_mutant():
    assert sorted([*HAZARDS, *NO_HAZARD, *HANGS]) == names_in(MUTANTS)


@pytest.mark.parametrize("order", ["forward", "reversed"])
@pytest.mark.parametrize("name", sorted(NO_HAZARD))
def test_a_mutant_in_good_order_gives_no_alarm(program, name, order):
    assert hazards_of(program, name, order) == []


@pytest.mark.parametrize("order", ["forward", "reversed"])
@pytest.mark.parametrize("name", sorted(HAZARDS))
def test_a_mutants_hazard_is_found_at_its_lines(program, name, order):
    found = hazards_of(program, name, order)
    kind, space, parts = HAZARDS[name]
    assert found and {(what, where) for what, where, _ in found} == {(kind, space)}, found
    for *_, lines in found:
        assert all(any(part in line for part in parts) for line in lines), lines
        assert all(any(part in line for line in lines) for part in parts), lines


@pytest.mark.parametrize("name", sorted(HANGS))
def test_a_mutant_that_would_hang_is_ended_with_a_reason(program, name):
    ended = subprocess.run([program, name], stderr=subprocess.PIPE, encoding="utf-8", timeout=60)
    assert ended.returncode == 3 and "deadlock" in ended.stderr and "the grid barrier" in ended.stderr
