"""A contributor adds a ladder of an operator that the tree does not know: two files for the operator, a folder with two
stages and a wrong kernel. Nothing else is edited, and it builds, checks, refuses, counts and is found like the others."""

import csv
import shutil

import pytest
from conftest import BACKEND, make, run

pytestmark = pytest.mark.builds()

HEADER = """\
// Each element of a vector times two.
#pragma once
#include "common/stage.h"

namespace ladder {

struct Twice {
  // input and output: n halves each; neither pointer necessarily aligned beyond 2 bytes.
  using Launch = void (*)(const void* input, void* output, int64_t n, cudaStream_t stream);
  static const Operator& get();
};

}  // namespace ladder
"""

OPERATOR = """\
#include "common/operators/twice.h"

#include "common/operators/parts.h"

namespace ladder {
namespace twice {

class Description : public Operator {
 public:
  const char* title() const override { return "twice"; }
  std::vector<Parameter> parameters() const override { return {{"n", 0, 5000, "Elements of the main input"}}; }
  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {{"input", Type::float16, Role::input, 1, shape[0]}, {"output", Type::float16, Role::output, 1, shape[0]}};
  }
  std::vector<Shape> edge_cases(bool) const override { return {{{0}}, {{1}}, {{255}}, {{257}}, {{70000}}}; }
  std::vector<Variant> variants(const Shape&) const override {
    return {plain(), off_by({1, 0})};
  }
  void fill(const Shape& shape, int, uint64_t seed, void* to) const override {
    for (int64_t i = 0; i < shape[0]; ++i) set_element(Type::float16, to, i, uniform(hash32(seed, i)));
  }
  std::unique_ptr<Oracle> oracle(const Shape&, const std::vector<const void*>& inputs) const override {
    const void* input = inputs[0];
    return exact([=](int64_t i) { return 2 * element(Type::float16, input, i); }, true);
  }
  double operations(const Shape& shape) const override { return static_cast<double>(shape[0]); }
  bool shows_operations() const override { return true; }
};

}  // namespace twice

const Operator& Twice::get() {
  static const twice::Description description;
  return description;
}

}  // namespace ladder
"""

KERNEL = """\
// {name}: one thread per element.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "common/operators/twice.h"

namespace ladder::twofold::{where} {{

__global__ void twice_kernel(const __half* input, __half* output, int64_t n) {{
  const int64_t i = int64_t{{blockIdx.x}} * {block} + threadIdx.x;
  if (i < n{fault}) output[i] = __hadd(input[i], input[i]);
}}

inline void launch(const void* input, void* output, int64_t n, cudaStream_t stream) {{
  if (n == 0) return;
  twice_kernel<<<static_cast<unsigned>((n + {block} - 1) / {block}), {block}, 0, stream>>>(
      static_cast<const __half*>(input), static_cast<__half*>(output), n);
}}

{last}

}}  // namespace ladder::twofold::{where}
"""
STAGE = 'inline const Stage<Twice> stage{{"{name}", "{name}", launch{needs}}};'
SMALL_ONLY = """, {0, [](const Shape& shape) -> const char* {
                                 return shape[0] > 100000 ? "this stage takes up to 100000 elements" : nullptr; }}"""
MUTANT = 'inline const Mutant<Twice> mutant{"last_skipped", "the last element is skipped", launch, "never written"};'
DESCRIPTION = """{"title": "Twice a vector", "operator": "twice", "program": "twofold_test", "baseline": "01_plain",
"main": {"n": 4321}, "analyze": {"n": 64}, "sweeps": {}}"""
PAGE = "# {name}\n\n<!-- table:cpu_device:begin loads=2x2 stores=2x2 asked=2 barriers=0 shuffles=0 -->\n<!-- table:cpu_device:end -->\n"


def add_stage(folder, name, block, needs=""):
    """One folder, as a contributor makes it."""
    where = name.split("_", 1)[1]
    (folder / name).mkdir(parents=True)
    last = STAGE.format(name=name, needs=needs)
    (folder / name / "kernel.cuh").write_text(KERNEL.format(name=name, where=where, block=block, fault="", last=last))
    (folder / name / "main.cu").write_text(
        '#include "kernel.cuh"\n\nint main(int argc, char** argv) '
        f"{{ return ladder::run_all({{ladder::twofold::{where}::stage}}, argc, argv); }}\n"
    )
    (folder / name / "Makefile").write_text("NAME := twice_test\nSOURCES := main.cu\ninclude ../../../mk/stage.mk\n")
    (folder / name / "README.md").write_text(PAGE.format(name=name))


@pytest.fixture(scope="module")
def tree_with_ladder(tree):
    (tree / "common/operators/twice.h").write_text(HEADER)
    (tree / "common/operators/twice.cpp").write_text(OPERATOR)
    folder = tree / "assignment2/twofold"
    add_stage(folder, "01_plain", 128)
    add_stage(folder, "02_small", 256, SMALL_ONLY)
    (folder / "mutants").mkdir()
    (folder / "mutants/last_skipped.cuh").write_text(
        KERNEL.format(name="last_skipped", where="mutants::last_skipped", block=128, fault=" - 1", last=MUTANT)
    )
    main = '#include "{0}.cuh"\n\nint main(int argc, char** argv) {{ return ladder::{1}(ladder::twofold::{2}, argc, argv); }}\n'
    (folder / "main.cu").write_text(main.format("stages", "run_all", "stages"))
    (folder / "mutants/main.cu").write_text(main.format("mutants", "run_mutants", "mutants::all"))
    (folder / "Makefile").write_text("NAME := twofold_test\nSOURCES := main.cu\ninclude ../../mk/stage.mk\n")
    (folder / "mutants/Makefile").write_text(
        "NAME := twofold_mutants\nSOURCES := main.cu\ninclude ../../../mk/stage.mk\n"
    )
    (folder / "ladder.json").write_text(DESCRIPTION)
    for leaf in (folder, folder / "mutants"):
        built = make(f"BACKEND={BACKEND}", cwd=leaf)
        assert built.returncode == 0, built.stdout + built.stderr
    yield tree
    shutil.rmtree(tree / "assignment2")
    (tree / "common/operators/twice.h").unlink()
    (tree / "common/operators/twice.cpp").unlink()


@pytest.fixture
def program(tree_with_ladder):
    return tree_with_ladder / "assignment2/twofold/twofold_test"


def test_its_stages_are_checked_on_its_own_main_input(program, tmp_path):
    result = run(program, "--csv", tmp_path / "x.csv", "--no-timing")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "4321 float16" in result.stdout and "checked on 10 small problems first" in result.stdout
    with open(tmp_path / "x.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["stage"], row["verdict"], row["n"]) for row in rows] == [
        ("01_plain", "PASS", "4321"),
        ("02_small", "PASS", "4321"),
    ]
    assert "speedup_over_plain" in rows[0] and "gflop_per_s" in rows[0] and "rows" not in rows[0]


def test_a_refusal_is_skipped_with_its_reason(program):
    result = run(program, "--n", "100001", "--no-timing")
    assert result.returncode == 0, result.stderr
    assert "02_small skipped: n = 100001: this stage takes up to 100000 elements" in " ".join(result.stdout.split())


def test_bad_command_lines_name_its_parameters(program):
    for given, said in (
        (["--n", "-1"], "--n '-1'"),
        (["--rows", "3"], "--rows"),
        (["--n", str(2**40)], "give smaller --n"),
        (["--n", "100001", "--stage", "2"], "no stage takes n = 100001: this stage takes up to 100000 elements"),
    ):
        result = run(program, *given)
        assert result.returncode == 2 and said in result.stderr and len(result.stderr.splitlines()) == 1


def test_its_mutant_is_rejected(tree_with_ladder):
    result = run(tree_with_ladder / "assignment2/twofold/mutants/twofold_mutants", "--mutant", "last_skipped")
    assert result.returncode == 1 and "rejected: " in result.stdout and "never written" in result.stdout


def test_make_knows_its_stages(tree_with_ladder):
    built = make("twofold/02_small", f"BACKEND={BACKEND}", cwd=tree_with_ladder)
    assert built.returncode == 0 and "02_small/twice_test is ready" in built.stdout, built.stderr
    ran = make("stage", "S=twofold/2", "ARGS=--n 7 --no-timing", f"BACKEND={BACKEND}", cwd=tree_with_ladder)
    assert ran.returncode == 0 and "02_small  PASS" in ran.stdout, ran.stdout + ran.stderr
    listed = make("stage", "S=nonsense", cwd=tree_with_ladder)
    assert listed.returncode == 2 and "twofold/01_plain" in listed.stderr
    assert (
        run(
            "python3", "-m", "ladder", "list", cwd=tree_with_ladder, PYTHONPATH=str(tree_with_ladder / "tools")
        ).stdout.count("twofold/")
        == 2
    )


def test_make_analyze_counts_it(tree_with_ladder):
    result = make("analyze", "S=twofold/01", cwd=tree_with_ladder)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "kernel ladder::twofold::plain::twice_kernel" in result.stdout and "hazards: none" in result.stdout
    assert (tree_with_ladder / "build/analyze/twofold/01_plain.html").is_file()


def test_a_stage_whose_names_disagree_is_an_error_that_says_so(tree_with_ladder):
    kernel = tree_with_ladder / "assignment2/twofold/01_plain/kernel.cuh"
    before = kernel.read_text()
    try:
        kernel.write_text(before.replace("twofold::plain", "twofold::simple"))
        broken = make(f"BACKEND={BACKEND}", cwd=kernel.parent)
        assert broken.returncode != 0
        assert "must have namespace ladder::twofold::plain {, so that it agrees with its place" in broken.stderr
    finally:
        kernel.write_text(before)
