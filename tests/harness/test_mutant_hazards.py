"""What the analysis of the CPU device says of each mutant: a mutant whose fault is one of memory or of synchronization is
caught at the lines that are wrong, and of the others, which compute the wrong thing in good order, nothing is said.

A fault's lines are found by what stands in them.
"""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUTANTS = ROOT / "assignment1/rms_norm/matrix/mutants"

# name -> (kind, space, what stands in the hazard's lines)
HAZARDS = {
    "assumed_alignment": ("misaligned", None, ["x = vec_input[i]"]),
    "cluster_without_barrier": ("race", "shared", ["part_sums[0] + part_sums[1]", "map_shared_rank(part_sums + part"]),
    "early_return": ("mask", None, ["__shfl"]),
    "input_before_wait": ("race", "global", ["output[i] = input[i]", "sum += row_input[i] * row_input[i]"]),
    "missing_barrier": ("race", "shared", ["sdata[tid] += sdata[tid + s];  // the fault"]),
    "missing_broadcast_barrier": ("race", "shared", ["rstd = value;  // the fault", "scale_row("]),
    "one_column_too_many": ("out_of_bounds", None, ["sum += row_input[i]"]),
    "overrun_by_one": ("race", "global", ["row_output[i] = i < cols"]),
    "refilled_too_early": ("race", "shared", ["memcpy_async_tx(buffer", "row_output[i] = scaled(row_input[i]"]),
    "stale_shared_memory": ("race", "shared", ["warp_sums[threadIdx.x / 32] = warp_sum", "? warp_sums[lane]"]),
    "volatile_warp_tail": ("race", "shared", ["vsdata[tid] = vsdata[tid] + vsdata[tid + s];  // the fault"]),
}
# A block ends while another reads its shared memory: found if it happens, or else because it may happen.
MAY_ALSO_FAULT = {"cluster_block_leaves": ("race", "shared", ["*cluster.map_shared_rank(&part_sum, 0)"])}
# The fault is in what they compute or leave out, or in what they assume about launches: no two accesses collide.
NO_HAZARD = {
    "byte_offset_overflow",  # below 2 GiB
    "columns_beyond_8192",
    "dropped_tail",
    "eps_outside_root",
    "last_row_skipped",
    "nan_for_zeros",
    "rows_in_grid_y",
    "square_of_mean",
    "stale_partial_sums",  # atomics, of two launches
    "sum_clipped_at_8192",
    "weight_checked_once",
    "weight_ignored",
    "weight_of_whole_passes",
    "wrong_count",
}

PROGRAM = """
#include <string>
{includes}
int main(int, char** argv) {{
  const std::string name = argv[1];
  const int64_t rows = 9, cols = name == "early_return" ? 100 : 1000;
  const int64_t offset = name == "assumed_alignment" ? 1 : 0;  // elements
  float *in, *weight, *out;
  cudaMalloc(&in, (rows * cols + offset) * sizeof(float));
  cudaMalloc(&out, (rows * cols + offset) * sizeof(float));
  cudaMalloc(&weight, (cols + offset) * sizeof(float));
  cudaMemset(in, 0x3f, (rows * cols + offset) * sizeof(float));
  cudaMemset(weight, 0x3f, (cols + offset) * sizeof(float));
  namespace mutants = ladder::matrix::mutants;
  ladder::RmsNorm::Launch launch = nullptr;
{choices}
  launch(in + offset, weight + offset, out + offset, rows, cols, 1e-6f, nullptr);
  cudaDeviceSynchronize();
}}
"""


def names_in(mutants):
    return sorted(path.stem for path in mutants.glob("*.cuh") if path.stem != "parts")


def build(mutants, text, folder):
    """A program for analysis that launches the mutant it is asked for: text with {includes} and {choices} filled in."""
    source = folder / "mutants.cu"
    names = names_in(mutants)
    source.write_text(
        text.format(
            includes="\n".join(f'#include "{mutants / name}.cuh"' for name in names),
            choices="\n".join(f'  if (name == "{name}") launch = mutants::{name}::launch;' for name in names),
        )
    )
    subprocess.run([ROOT / "simt/simtcc", "--analyze", f"-I{ROOT}", source, "-o", folder / "mutants"], check=True)
    return folder / "mutants"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build(MUTANTS, PROGRAM, tmp_path_factory.mktemp("mutants"))


def hazards_of(program, name, order):
    """[(kind, space, {text of the lines})]"""
    dump = program.with_suffix(".json")
    environment = {**os.environ, "SIMT_ANALYSIS": str(dump), "SIMT_ORDER": order}
    subprocess.run([program, name], env=environment, stderr=subprocess.DEVNULL, check=True)
    raw = json.loads(dump.read_text())

    def text(end):
        return pathlib.Path(end["file"]).read_text().splitlines()[end["line"] - 1]

    return [
        (hazard["what"], hazard["space"], [text(end) for end in (hazard["first"], hazard["second"]) if end])
        for hazard in raw["hazards"]
    ]


def test_the_tables_name_every_mutant():
    listed = [*HAZARDS, *MAY_ALSO_FAULT, *NO_HAZARD]
    assert sorted(listed) == names_in(MUTANTS)


def test_what_is_waited_for_at_a_shuffle_is_not_described_as_a_barrier():
    page = (MUTANTS / "README.md").read_text(encoding="utf-8").splitlines()
    for name in (name for name, (kind, *_) in HAZARDS.items() if kind == "mask"):
        (row,) = [line for line in page if line.startswith(f"| [{name}](")]
        for text in (row, (MUTANTS / f"{name}.cuh").read_text(encoding="utf-8")):
            assert "shuffle" in text and "barrier" not in text


@pytest.mark.parametrize("order", ["forward", "reversed"])
@pytest.mark.parametrize("name", sorted(NO_HAZARD))
def test_a_mutant_in_good_order_gives_no_alarm(program, name, order):
    assert hazards_of(program, name, order) == []


@pytest.mark.parametrize("order", ["forward", "reversed"])
@pytest.mark.parametrize("name", sorted({**HAZARDS, **MAY_ALSO_FAULT}))
def test_a_mutants_hazard_is_found_at_its_lines(program, name, order):
    found = hazards_of(program, name, order)
    kind, space, parts = {**HAZARDS, **MAY_ALSO_FAULT}[name]
    of_kind = [lines for what, where, lines in found if (what, where) == (kind, space)]
    assert of_kind, found
    for lines in of_kind:
        assert all(any(part in line for part in parts) for line in lines), lines
        assert all(any(part in line for line in lines) for part in parts), lines
    if name in HAZARDS and kind == "race" and name != "overrun_by_one":  # whose last row leaves the allocation
        assert len(of_kind) == len(found), found
