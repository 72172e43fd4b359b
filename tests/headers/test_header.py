"""The production header: its answers on the CPU device, how it compiles, what the analysis says of it, and whether its
tests can fail. The test program is that of tests/headers/rms_norm, whose main.cpp says how to run it on a GPU."""

import re

import pytest
from conftest import BUILD, FULL, ROOT, changed_header, full_but, program, run

HEADER = ROOT / "include/rms_norm"
FOLDER = "tests/headers/rms_norm"
TESTS, OBJECTS, PROGRAM = ROOT / FOLDER, BUILD / FOLDER, program(FOLDER)
builds = pytest.mark.builds(FOLDER)
TEAMS = TESTS / "teams/main.cu"
SIMTCC = [ROOT / "simt/simtcc", f"-I{ROOT}"]
FAST = ["-O0"]  # where what is compiled matters, and how fast it runs does not
WARNINGS = ["-Xcompiler", "-Wall,-Wextra", "-Werror", "all-warnings"]
STANDARDS = ["c++17", "c++20"]


def summary(result):
    """(passed, failed, skipped) of the program's last line."""
    found = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", result.stdout, re.MULTILINE)
    assert found, result.stdout + result.stderr
    return tuple(int(number) for number in found.groups())


# --- Answers ------------------------------------------------------------------------------------------------


ANSWERS = [("forward", ""), ("reversed", "bfloat16 fused_add:")]
QUICKLY = [
    ("forward", "bfloat16 forward:"),
    ("forward", "bfloat16 backward, from"),
    ("reversed", "stored rstd"),
    ("reversed", "bfloat16 fused_add: row lengths"),
    ("reversed", "bfloat16 rope"),
    ("reversed", "quantized"),
    ("reversed", "nvfp4"),
]


@builds
@pytest.mark.parametrize("order, groups", ANSWERS if FULL else QUICKLY)
def test_answers(order, groups):
    result = run(PROGRAM, "--quick", "--filter", groups, timeout=600, SIMT_ORDER=order)
    passed, failed, _ = summary(result)
    assert result.returncode == 0 and failed == 0 and passed > (500 if FULL else 10), result.stdout


@builds
def test_two_devices():
    result = run(PROGRAM, "--quick", "--filter", "two devices", timeout=600, SIMT_DEVICES="2")
    passed, failed, skipped = summary(result)
    assert result.returncode == failed == skipped == 0 and passed > 10, result.stdout + result.stderr


@pytest.mark.full
@builds
@pytest.mark.parametrize("rows, cols", [("1030", "16401"), ("520", "33001")])
def test_long_unaligned_rows_of_large_problems(rows, cols):
    """Problems of more than 64 MB have shapes of their own there."""
    result = run(PROGRAM, "--rows", rows, "--cols", cols, "--filter", "bfloat16 f", timeout=600)
    passed, failed, _ = summary(result)
    assert result.returncode == 0 and failed == 0 and passed >= 6, result.stdout


@builds
def test_every_group_is_listed_and_can_be_chosen():
    listed = run(PROGRAM, "--list").stdout.splitlines()
    assert len(listed) == len(set(listed)) > (100 if FULL else 40)
    chosen = run(PROGRAM, "--quick", "--filter", listed[1])
    assert chosen.returncode == 0 and chosen.stdout.count("pass  ") == 1 and listed[1] in chosen.stdout


@builds
@pytest.mark.parametrize("arguments", [["--filter", "no such group"], ["--cols", "0"], ["--rows", "3"], ["--nonsense"]])
def test_bad_command_lines(arguments):
    refused = run(PROGRAM, *arguments)
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1, refused.stderr


# --- Compilation --------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("standard", full_but(STANDARDS, "c++17"))
def test_compiles_in_two_files_for_the_cpu_device(tmp_path, standard):
    """g++ sees some mistakes only while it optimizes, which FULL=1 lets it do once."""
    fast = [] if FULL and standard == "c++17" else FAST
    files = [TESTS / "alone/first.cu", TESTS / "alone/second.cu", "-o", tmp_path / "program"]
    made = run(*SIMTCC, f"-I{ROOT}/include", f"-std={standard}", *fast, *WARNINGS, *files)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    assert run(tmp_path / "program").returncode == 0


INTERFACE = r"""
#include <rms_norm/policies/h200.cuh>
#include <rms_norm/rms_norm.cuh>
#include <cstdio>
#include <cstring>
#include <vector>

using namespace rms_norm;

static void expect(bool right, const char* what) {
  if (!right) std::printf("wrong: %s\n", what);
}
static void expect_reason(const char* got, const char* wanted) {
  if (std::strcmp(got ? got : "", wanted) != 0) std::printf("wrong: %s, not %s\n", got ? got : "none", wanted);
}

struct Other : policies::H200 {
  static constexpr Shape kForward[] = {{64, kAnySize, 1, 128, 1, Access::strided, Eviction::normal}};
};

int main() {
  constexpr int64_t kRows = 3, kCols = 64;
  std::vector<float> host(kRows * kCols, 2.0f);
  float *x, *y, *weight;
  void* workspace;
  cudaMalloc(&x, sizeof(float) * kRows * kCols);
  cudaMalloc(&y, sizeof(float) * kRows * kCols);
  cudaMalloc(&weight, sizeof(float) * kCols);
  cudaMalloc(&workspace, kWorkspaceBytes);
  cudaMemcpy(x, host.data(), sizeof(float) * host.size(), cudaMemcpyDefault);
  const auto first = [&] {
    float value = 0;
    cudaMemcpy(&value, y, sizeof value, cudaMemcpyDefault);
    cudaMemset(y, 0, sizeof(float) * kCols);
    return value;
  };
  Options options;
  expect(forward(x, nullptr, y, kRows, kCols) == cudaSuccess && first() > 0.99f, "no weight");
  expect(forward(Tensor{x}, nullptr, Tensor{y, {kCols}}, kRows, kCols) == cudaSuccess && first() > 0.99f, "tensors");
  expect(forward<Other>(x, nullptr, y, kRows, kCols) == cudaSuccess && first() > 0.99f, "another policy");
  for (const Cache cache : {Cache::normal, Cache::evict_first}) {
    options.cache = cache;
    expect(forward(x, nullptr, y, kRows, kCols, options) == cudaSuccess && first() > 0.99f, "cache");
  }
  expect(fused_add_rms_norm(x, x, x, nullptr, y, kRows, kCols) == cudaSuccess && first() > 0.99f, "residual");

  expect_reason(explain(x, weight, y, kRows, kCols), "");
  expect_reason(explain(x, weight, y, -1, kCols), "rows is negative");
  expect_reason(explain(x, weight, y, kRows, 0), "cols is less than 1");
  expect_reason(explain(x, weight, static_cast<float*>(nullptr), kRows, kCols), "y is nullptr");
  expect_reason(explain(x, weight, weight, 1, kCols), "y overlaps weight");
  expect_reason(explain(x, weight, x + 1, kRows, kCols), "y overlaps x, and is not the same tensor");
  expect_reason(explain(x, nullptr, Tensor{y, {kCols - 1}}, kRows, kCols), "rows of y overlap each other");
  expect_reason(explain(x, x, weight, weight, y, 1, kCols), "residual_out overlaps weight");
  expect_reason(explain(x, x, y, weight, y, kRows, kCols), "y overlaps residual_out");
  expect_reason(explain(Tensor{x, {kCols, 1, 5}}, weight, x, kRows, kCols), "");  // a stride that no row needs
  expect_reason(explain(Tensor{x, {INT64_MAX}}, weight, x, 1, kCols), "");

  // Columns of one buffer: strided tensors may lie in each other's gaps, and may not overlap.
  constexpr int64_t kHalf = kCols / 2;
  const auto half = [&](float* data) { return Tensor{data, {kCols}}; };
  expect_reason(explain(half(x), nullptr, half(x + kHalf), kRows, kHalf), "");
  expect_reason(explain(half(x), x + kHalf, half(x + kCols), 1, kHalf), "");
  expect_reason(explain(half(y), x + kHalf, half(x), kRows, kHalf), "");  // a weight between the rows of y
  expect_reason(explain(half(y), x + kHalf - 1, half(x), kRows, kHalf), "y overlaps weight");
  expect_reason(explain(half(y), x + kHalf + 1, half(x), kRows, kHalf), "y overlaps weight");
  for (const int64_t distance : {int64_t{1}, kHalf - 1, kHalf + 1, kCols})
    expect_reason(explain(half(x), nullptr, half(x + distance), 2, kHalf), "y overlaps x, and is not the same tensor");
  expect_reason(explain(Tensor{x + kCols, {-kCols}}, nullptr, half(x), 2, kHalf),
                "y overlaps x, and is not the same tensor");
  expect_reason(explain(half(x), half(x + kHalf), half(x + kHalf), weight, half(x), kRows, kHalf), "");
  expect_reason(explain(half(x), half(y), half(y), weight, half(y + kHalf), kRows, kHalf), "");
  expect_reason(explain(half(x), half(y), half(y), weight, half(y + 1), 2, kHalf),
                "y overlaps residual, and is not the same tensor");

  // With eps = 0, squares that are 0 in float32 make a row infinite, and a row of zeros NaN.
  Options exact;
  for (const float value : {0.0f, 2e-23f, 4e-23f})
    for (const float eps : {0.0f, 1e-38f}) {
      exact.eps = eps;
      std::vector<float> row(kCols, value);
      cudaMemcpy(y, row.data(), sizeof(float) * kCols, cudaMemcpyDefault);
      expect(forward(y, nullptr, y, 1, kCols, exact) == cudaSuccess, "eps");
      cudaMemcpy(row.data(), y, sizeof(float) * kCols, cudaMemcpyDefault);
      const float found = row[kCols - 1];
      expect(eps > 0     ? found >= 0 && found < 1e-3f
             : value == 0  ? found != found
             : value < 3e-23f ? found > 1e38f
                              : found > 0.5f && found < 2,
             "a small row");
    }

  options.workspace = workspace;
  expect_reason(explain(x, weight, y, kRows, kCols, options), "");
  for (void* taken : {static_cast<void*>(x), static_cast<void*>(y), static_cast<void*>(weight)}) {
    options.workspace = taken;
    expect_reason(explain(x, weight, y, kRows, kCols, options), "workspace overlaps a tensor");
  }
  options.workspace = nullptr;
  options.eps = -1.0f;
  expect_reason(explain(x, weight, y, kRows, kCols, options), "eps is negative or not finite");

  expect(init_workspace(nullptr) == cudaErrorInvalidValue, "a workspace of nullptr");
  expect(init_workspace(static_cast<char*>(workspace) + 8) == cudaErrorInvalidValue, "a misaligned workspace");
  expect(init_workspace(workspace) == cudaSuccess, "a workspace");
  std::printf("done\n");
}
"""


def test_the_interface(tmp_path):
    (tmp_path / "interface.cu").write_text(INTERFACE, encoding="utf-8")
    made = run(
        *SIMTCC, f"-I{ROOT}/include", "-std=c++17", *FAST, *WARNINGS, "interface.cu", "-o", "interface", cwd=tmp_path
    )
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    assert run(tmp_path / "interface").stdout == "done\n"


CHECKED = r"""
#include <rms_norm/rms_norm.cuh>
#include <cstdio>

using namespace rms_norm::detail;

// Two blocks that find different numbers of the launch before, as they do whose workspace another kernel uses too.
int main() {
  constexpr int64_t kCols = 4096;
  float *x, *y;
  void* workspace;
  cudaMalloc(&x, sizeof(float) * kCols);
  cudaMalloc(&y, sizeof(float) * kCols);
  cudaMalloc(&workspace, rms_norm::kWorkspaceBytes);
  cudaMemset(x, 0, sizeof(float) * kCols);
  rms_norm::init_workspace(workspace);
  const uint64_t others = uint64_t{7} << 32;
  cudaMemcpy(static_cast<uint64_t*>(workspace) + 1, &others, sizeof others, cudaMemcpyDefault);
  Problem<float, void, float, float> p = {x, nullptr, y};
  p.rows = 1, p.cols = kCols, p.workspace = static_cast<uint64_t*>(workspace);
  row_in_parts<4, 4, 256, 0, false, rms_norm::Access::strided, MemoryExchange><<<2, 256>>>(p, kCols / 8, 2, 1);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"""


@pytest.mark.full
def test_a_checked_build_does_not_wait_for_ever(tmp_path):
    (tmp_path / "checked.cu").write_text(CHECKED, encoding="utf-8")
    options = [f"-I{ROOT}/include", "-std=c++17", *FAST, "-DRMS_NORM_CHECKED", "checked.cu", "-o", "checked"]
    made = run(*SIMTCC, *options, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "cudaErrorLaunchFailure" in run(tmp_path / "checked", timeout=120).stdout


@pytest.mark.parametrize("order", full_but(["forward", "reversed"], "reversed"))
def test_teams_of_blocks(tmp_path, order):
    made = run(*SIMTCC, f"-I{ROOT}/include", "-std=c++17", *FAST, *WARNINGS, TEAMS, "-o", "teams", cwd=tmp_path)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    done = run(tmp_path / "teams", SIMT_ORDER=order, timeout=120)
    lines = done.stdout.splitlines()
    right = [line for line in lines if line.endswith(": cudaSuccess, 0 wrong")]
    assert done.returncode == 0 and len(lines) == len(right) == 21, done.stdout + done.stderr


# What is wrong, and how the header becomes so.
WRONG_TEAMS = {
    "a row is fetched into a place that still waits": (
        r"i < kRowsHeld - kRowsWaiting;",
        "i < 1 + kRowsHeld - kRowsWaiting;",
    ),
    "the end of a phase is taken for that of the next one": (r", odd_phase = !odd_phase;", ";"),
    "the rstd of another row": (r"shared\.rstds\[written\.place\]", "shared.rstds[added.place]"),
    "the head and tail of another row": (r"load_ends\(written\.k \+ kTeamWarps\)", "load_ends(written.k)"),
    "the weight of another pack": (r"factors\(share\.weight\[v\]\)", "factors(share.weight[0])"),
}


@pytest.mark.full
@pytest.mark.parametrize("wrong", WRONG_TEAMS)
def test_wrong_teams_are_rejected(tmp_path, wrong):
    changed_header(HEADER, tmp_path, WRONG_TEAMS[wrong])
    made = run(*SIMTCC, f"-I{tmp_path}/include", "-std=c++17", *FAST, TEAMS, "-o", "teams", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert run(tmp_path / "teams", SIMT_ORDER="reversed", SIMT_TIMEOUT="2", timeout=120).returncode in (1, 2)


@pytest.mark.full
def test_nothing_in_teams_races(tmp_path):
    done = run(ROOT / "simt/analyze", f"-I{ROOT}", f"-I{ROOT}/include", "-std=c++17", TEAMS, cwd=tmp_path, timeout=300)
    assert "hazards: none" in done.stdout, done.stdout + done.stderr


@pytest.mark.full
def test_code_for_an_older_architecture_has_no_clusters(tmp_path):
    """As on a new GPU that runs what was compiled for compute capability 7.5: the instructions are not there."""
    no_clusters = r"__cluster_barrier_arrive_relaxed\(\)", "__trap()"
    changed_header(HEADER, tmp_path, (r"attributes\.ptxVersion", "75"), no_clusters)
    (tmp_path / "older.cu").write_text(OLDER, encoding="utf-8")
    made = run(*SIMTCC, f"-I{tmp_path}/include", "-std=c++17", *FAST, "older.cu", "-o", "older", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert run(tmp_path / "older").stdout == "no error, 1.0000\n" * 3


OLDER = r"""
#include <rms_norm/rms_norm.cuh>
#include <cstdio>
#include <vector>

int main() {
  for (const int64_t cols : {4096, 65536, 262144}) {
    const std::vector<float> ones(2 * cols, 1.0f);
    float *x, *y, last = 0;
    cudaMalloc(&x, sizeof(float) * 2 * cols);
    cudaMalloc(&y, sizeof(float) * 2 * cols);
    cudaMemcpy(x, ones.data(), sizeof(float) * 2 * cols, cudaMemcpyDefault);
    rms_norm::Options options;
    options.dependent_launch = true;
    cudaError_t error = rms_norm::forward(x, x, y, 2, cols, options);
    if (error == cudaSuccess) error = cudaMemcpy(&last, y + 2 * cols - 1, sizeof last, cudaMemcpyDefault);
    std::printf("%s, %.4f\n", cudaGetErrorString(error), last);
  }
}
"""


FEWER_MULTIPROCESSORS = r"""
#include <rms_norm/rms_norm.cuh>
#include <cstdio>
#include <vector>

int main() {
  constexpr int64_t kCols = 65536;
  for (const int64_t rows : {1, 90}) {  // blocks all over the GPU share a row, or form teams
    const std::vector<float> ones(rows * kCols, 1.0f);
    float *x, *y, last = 0;
    cudaMalloc(&x, sizeof(float) * rows * kCols);
    cudaMalloc(&y, sizeof(float) * rows * kCols);
    cudaMemcpy(x, ones.data(), sizeof(float) * rows * kCols, cudaMemcpyDefault);
    rms_norm::Options options;
    cudaMalloc(&options.workspace, rms_norm::kWorkspaceBytes);
    rms_norm::init_workspace(options.workspace);
    const cudaError_t error = rms_norm::forward(x, nullptr, y, rows, kCols, options);
    cudaMemcpy(&last, y + rows * kCols - 1, sizeof last, cudaMemcpyDefault);
    std::printf("%s, %d, %s\n", cudaGetErrorName(error), last > 0.999f, cudaGetErrorName(cudaGetLastError()));
  }
}
"""


@pytest.mark.parametrize("falls_back", full_but([True, False], True))
def test_a_stream_may_have_fewer_multiprocessors_than_the_gpu(tmp_path, falls_back):
    """As in a green context: the blocks of the GPU cannot all run at once, so a kernel that does not need it is taken."""
    many = r"return cudaDeviceGetAttribute\(&device\.multiprocessors, \w+, number\)"
    changes = [(many, "device.multiprocessors = 160; return cudaSuccess")]
    if not falls_back:
        changes.append((r"!was_too_large\(error\)", "true"))
    changed_header(HEADER, tmp_path, *changes)
    (tmp_path / "fewer.cu").write_text(FEWER_MULTIPROCESSORS, encoding="utf-8")
    made = run(*SIMTCC, f"-I{tmp_path}/include", "-std=c++17", *FAST, "fewer.cu", "-o", "fewer", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    wrong = "cudaErrorCooperativeLaunchTooLarge, 0, cudaErrorCooperativeLaunchTooLarge\n"
    assert run(tmp_path / "fewer").stdout == 2 * ("cudaSuccess, 1, cudaSuccess\n" if falls_back else wrong)


USUAL = """\
#include <rms_norm/usual_types.cuh>

int main() {
  const float* x = nullptr;
  return rms_norm::forward(x, x, static_cast<float*>(nullptr), 1, 1) == cudaErrorInvalidValue ? 0 : 1;
}
"""


@pytest.mark.full
def test_usual_types_are_compiled_once(tmp_path):
    (tmp_path / "main.cu").write_text(USUAL, encoding="utf-8")
    compile = [*SIMTCC, f"-I{ROOT}/include", "-std=c++17", *FAST]
    assert run(*compile, "main.cu", "-o", "alone", cwd=tmp_path).returncode != 0  # the instances are not there
    made = run(*compile, "main.cu", HEADER / "usual_types.cu", "-o", "both", cwd=tmp_path, timeout=300)
    assert made.returncode == 0, made.stderr
    assert run(tmp_path / "both").returncode == 0


def test_the_example_of_the_page_runs(tmp_path):
    page = (HEADER / "README.md").read_text(encoding="utf-8")
    (tmp_path / "example.cu").write_text(re.search(r"```cpp\n(.*?)```", page, re.DOTALL).group(1), encoding="utf-8")
    made = run(ROOT / "simt/simtcc", f"-I{ROOT}/include", *FAST, "example.cu", "-o", "example", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert run(tmp_path / "example").stdout == "1.0000\n"


# Of GPUs that nobody measured: compute capability, multiprocessors, KB of shared memory that a block may have, bits of
# memory. An H100 PCIe gets the tables of the other H100.
OTHER_GPUS = {
    "T4": (75, 40, 64, 256),
    "A100": (80, 108, 163, 5120),
    "Jetson AGX Orin": (87, 16, 163, 256),
    "GeForce RTX 4090": (89, 128, 99, 384),
    "H100 PCIe": (90, 114, 227, 5120),
    "GeForce RTX 5090": (120, 170, 99, 512),
}


@pytest.mark.full
@builds
def test_answers_within_the_limits_of_other_gpus(tmp_path):
    """Beyond them, a launch is refused, as there. All four are also part of the choice of a kernel."""
    shared, capability, bits = (f'std::atoi(std::getenv("{name}"))' for name in ("SHARED", "CAPABILITY", "BITS"))
    refused = f"if (grid.shared_bytes > {shared} << 10 || ({capability} < 90 && (grid.cluster > 1 || grid.dependent)))"
    changes = [
        (r"#include <atomic>", r"\g<0>\n#include <cstdlib>"),
        (r"attributes\.ptxVersion", capability),
        (r"bits == kH100Bits", f"{bits} == kH100Bits"),
        (r"bytes = std::max\(0, bytes", f"bytes = std::max(0, ({shared} << 10)"),
        (r"config\.gridDim = ", rf"{refused} return cudaErrorInvalidConfiguration;\n  \g<0>"),
    ]
    program = build(tmp_path, "-O1", changes=changes)
    for name, (architecture, multiprocessors, kilobytes, width) in OTHER_GPUS.items():
        limits = dict(CAPABILITY=architecture, SHARED=kilobytes, BITS=width, SIMT_MULTIPROCESSORS=multiprocessors)
        of_run = {variable: str(value) for variable, value in limits.items()}
        result = run(program, "--quick", "--filter", "bfloat16 f", timeout=600, **of_run)
        passed, failed, _ = summary(result)
        assert result.returncode == 0 and failed == 0 and passed > 500, name + result.stdout


# --- Known-wrong headers and the analysis -------------------------------------------------------------------


def build(folder, *options, changes=(), source="bfloat16.cu"):
    """The tests of one file alone, with a copy of the header in which each (pattern, replacement) is applied."""
    changed_header(HEADER, folder, *changes)
    source = TESTS / source
    # Without the groups of rstd.cu, which --filter would find with those of backward.cu.
    others = {"large.cu", "backward.cu", "quantized.cu", "rope.cu", *(path.name for path in TESTS.glob("*.cpp"))}
    others -= {source.name}
    files = [
        source,
        *(OBJECTS / f"{name}.o" for name in sorted(others)),
        BUILD / "libcommon.a",
        "-o",
        folder / "program",
    ]
    made = run(*SIMTCC, f"-I{folder}/include", "-std=c++17", "-w", *options, *files, timeout=600)
    assert made.returncode == 0, made.stderr
    return folder / "program"


# name: (what is replaced, by what, the group that must fail)
MUTANTS = {
    "eps_outside_the_root": (r"rsqrtf\((.*?) \+ p\.eps\)", r"(rsqrtf(\1) + p.eps)", "forward: modes"),
    "weight_offset_ignored": (r"p\.weight_offset \+ ", "", "forward: modes"),
    "llama_rounds_once": (r"options\.rounding == Rounding::llama", "false", "forward: modes"),
    "residual_not_added": (r"reinterpret_cast<const Two&>\(b\.word\[i\]\)", "Two{}", "fused_add: row lengths"),
    "residual_not_stored": (r"\(P::kAdds\) store<hinted>", "(false) store<hinted>", "fused_add: row lengths"),
    "tail_dropped": (r"; i < packs\)", "; i < packs - 1)", "forward: row lengths"),
    "product_with_another_weight": (r"\(input\[v\], weight\[v\],", "(input[v], weight[0],", "forward: row lengths"),
    "sum_of_a_warp_lost": (r"sums\[threadIdx\.x / 32\] =", "sums[threadIdx.x / 64] =", "forward: row lengths"),
    "heads_at_one_place": (r"\* steps\.head", "* 0", "forward: heads"),
    "head_dropped": (r"exists \? head : 0", "0", "forward: row lengths"),
    "odd_tail_dropped": (r"exists \? tail : 0", "0", "forward: row lengths"),
    "rows_in_turn_stored_at_one_place": (r"row\.advance_output\(step\);", "", "forward: row counts"),
    "unaligned_weight_not_shifted": (r"odd \? 16 : 32\)", "32)", "forward: alignment"),
    "eps_not_checked": (r"!\(options\.eps >= 0\.0f\) \|\|", "false ||", "forward: arguments"),
    "gradient_without_the_mean": (r"add_product\(-value, slope, product\)", "product", "backward"),
    "gradient_with_rstd_once": (r"p\.inverse_cols \* rstd \* rstd;", "p.inverse_cols * rstd;", "backward"),
    "gradient_of_one_row": (r"dweight\[v\]\[k\] \+=", "dweight[v][k] =", "backward"),
    "gradient_of_one_long_row": (r"number == blockIdx\.x \? 0\.0f : partial\[i\]", "0.0f", "backward"),
    "gradients_on_each_other": (r"p\.partial \+ group \* p\.pitch", "p.partial", "backward"),
    "gradients_of_the_last_block_lost": (r"k < p\.count; k \+=", "k < p.count - 1; k +=", "backward"),
    "gradient_of_the_sum_not_added": (r"rstd, slope, added\(k\)\)", "rstd, slope, 0.0f)", "backward"),
    "gradient_from_another_row": (r"at = at \+ stage_packs == .*?;", "at = at;", "backward"),
    "gradients_of_one_token": (r"if \(head < p\.heads\) return;", "return;", "backward"),
    "shorter_row_not_filled_up": (r"memory\[0\] = memory\[to_next_tensor\] = \{\};", "", "backward"),
    "odd_row_moved_by_whole_words": (r"bytes % 4 \* 8", "0", "backward"),
    "odd_row_read_before_it_came": (
        r"\(!kAligned\) __syncwarp\(\);(\n    float value)",
        r"(!kAligned) {}\1",
        "backward",
    ),
    "odd_rows_ends_lost": (r"byte < end && !is_whole\(chunk\)", "byte < end && false", "backward"),
    "odd_rows_end_kept": (r"pack\.word\[i\] &= bytes > 4 \* i \? 0xffffu : 0u", "pack.word[i] &= ~0u", "backward"),
    "gradient_of_one_part": (
        r"result\.products \+= numbers\[box\]\[i\]",
        "result.products = numbers[box][0]",
        "backward",
    ),
    "rstd_of_another_row": (r"store_rstd\(had_number", "store_rstd(number", "forward, stored rstd"),
    "rstd_of_another_head": (r"blockIdx\.y \* rstd_steps\.head", "blockIdx.y", "forward, stored rstd"),
    "rstd_of_the_row_before": (
        r"stored_rstd, turn & \(lanes - 1\)",
        "stored_rstd, turn > 0 ? turn - 1 & lanes - 1 : 0",
        "backward, stored rstd",
    ),
    "gradients_of_the_last_row_lost": (r"row < rows\)", "row < rows - 1)", "backward"),
    "gradient_from_rows_that_dx_replaced": (r"p\.dx\.data != p\.x\.data && ", "", "backward"),
    "stored_rstd_ignored_by_long_rows": (r"P::kHasRstd \? stored_rstd : ", "", "backward, from float32, stored rstd"),
    "rotated_the_other_way": (r"- y \* sine\[k\]", "+ y * sine[k]", "rope"),
    "all_rotated_by_the_first_angles": (r"angle = u \* N", "angle = 0", "rope"),
    "keys_by_the_weight_of_queries": (r"is_query \? p\.q_weight : p\.k_weight", "p.q_weight", "rope"),
    "rope_rounds_once": (r"if \(p\.round_first\) unpack", "if (false) unpack", "rope"),
    "unknown_positions_read": (r"!is_known", "false", "rope"),
    "quantized_without_the_largest": (r"scale_of\(most \* unit\)", "scale_of(1.0f)", "quantized"),
    "quantized_by_a_product": (
        r"quotient<Q>\(share\.value\[v\]\[k\], divisor, inverse\[v\]\)",
        "share.value[v][k] * inverse[v]",
        "quantized",
    ),
    "scales_of_other_columns": (r"\(i >> p\.block_log\)", "((i >> p.block_log) + 1)", "quantized"),
    "fours_of_another_row": (r"row % 128 / 32 \* 4", "row % 64 / 32 * 4", "nvfp4"),
    "scale_rounded_after_its_use": (r"static_cast<float>\(rounded\) \* scale", "most / 6.0f", "nvfp4"),
    "overlap_not_checked": (r"!rows_are_apart\(", "false && !rows_are_apart(", "forward: arguments"),
}


# What of a file the group of a mutant does not need, and g++ compiles for as long.
NOT_NEEDED = {
    "forward": ("bfloat16.cu", r"static const .* fused_add;\n"),
    "fused_add": ("bfloat16.cu", r"static const .* forward;\n"),
    "float32 forward": ("float32.cu", r"static const .* fused_add;\n"),
    "rope": ("rope.cu", r"add<float, float, float>\(.*\n  add_halves<__half>\(groups, quick\), "),
    "backward": ("backward.cu", r"  add_others<.*\n"),
    "forward, stored rstd": ("rstd.cu", r"    .*answers_stored<true>.*\n(    add<.*\n)+"),
    "backward, stored rstd": ("rstd.cu", r"(    .*answers_stored<.*\n)+"),
    "backward, from float32, stored rstd": ("rstd.cu", r"(    .*answers_stored<.*\n)+    add<E, E, E, .*\n"),
    "nvfp4": ("nvfp4.cu", r"    groups\.push_back\(\{\"bfloat16 fused_add nvfp4.*\n.*\n"),
    "quantized": ("quantized.cu", r"  add_quantized<__nv_bfloat16, __nv_bfloat16,.*\n"),
}


def less(folder, function):
    """The tests of one function alone, those of gradients for two mixtures alone; the path of the file."""
    name, left_out = NOT_NEEDED[function]
    text, count = re.subn(left_out, "", (TESTS / name).read_text(encoding="utf-8"))
    assert count == 1, f"{name} has no {left_out} any more: change what is left out"
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


# In float32, where another order shows in most rows.
NOT_INVARIANT = {
    "option ignored": (r"if \(wanted\.batch_invariant\)", "if (false)"),
    "another order elsewhere": (r"if \(order\.in_pairs\) return", "if (false) return"),
    "rows share blocks by their number": (r" && !options\.batch_invariant;", ";"),
    "rows of odd length begin with a head": (r"!wide && !options\.batch_invariant", "!wide"),
}


@pytest.mark.full
@builds
@pytest.mark.parametrize("name", NOT_INVARIANT)
def test_a_header_that_is_not_batch_invariant_is_rejected(name, tmp_path):
    program = build(tmp_path, "-O0", changes=[NOT_INVARIANT[name]], source=less(tmp_path, "float32 forward"))
    result = run(program, "--quick", "--filter", "float32 forward: batch invariance", timeout=300)
    assert result.returncode == 1 and "other bits" in result.stdout, result.stdout + result.stderr


def test_what_wrong_headers_change_is_there():
    """Most of them are compiled in the full run only."""
    header = "".join(path.read_text(encoding="utf-8") for path in HEADER.rglob("*.cuh"))
    patterns = [pattern for pattern, *_ in (*MUTANTS.values(), *NOT_INVARIANT.values())]
    assert [pattern for pattern in patterns if not re.search(pattern, header)] == []


@builds
@pytest.mark.parametrize("name", full_but(MUTANTS, "tail_dropped"))
def test_wrong_header_is_rejected(name, tmp_path):
    pattern, replacement, group = MUTANTS[name]
    source = less(tmp_path, group.partition(":")[0])
    program = build(tmp_path, "-O0", changes=[(pattern, replacement)], source=source)
    result = run(program, "--quick", "--filter", f"bfloat16 {group}", timeout=300)
    assert result.returncode == 1 and summary(result)[1] > 0, result.stdout + result.stderr


def analyzed(program, *arguments):
    result = run(ROOT / "simt/analyze", "--program", program, "--", *arguments, timeout=600)
    assert re.search(r"^hazards: ", result.stdout, re.MULTILINE), result.stdout + result.stderr
    return result


@pytest.mark.full  # tests/harness/test_mutant_hazards.py shows the kind
@builds
class TestAnalysis:
    """Rows in registers, several a block and one; long rows in a cluster, and on a workspace in many blocks."""

    @pytest.fixture(scope="class")
    def program(self, tmp_path_factory):
        return build(tmp_path_factory.mktemp("analysis"), "--analyze")

    @pytest.mark.parametrize(
        "shape",
        [("20", "64,256,111"), ("3", "1000,4096,8193"), ("1,2", "70000,140001")],
    )
    def test_no_hazards(self, program, shape):
        rows, cols = shape
        result = analyzed(program, "--rows", rows, "--cols", cols)
        assert result.returncode == 0 and "hazards: none" in result.stdout, result.stdout + result.stderr
        assert summary(result)[1] == 0

    @pytest.mark.parametrize(
        "function, group",
        [
            ("backward", "bfloat16 backward"),
            ("forward, stored rstd", "bfloat16 forward, stored rstd"),
            ("backward, stored rstd", "stored rstd"),
            ("rope", "bfloat16 rope"),
            ("quantized", "bfloat16 quantized"),
        ],
    )
    def test_no_hazards_beside_the_norms(self, function, group, tmp_path):
        """Of a few mixtures of types: the accesses of the others differ in their width only."""
        program = build(tmp_path, "--analyze", source=less(tmp_path, function))
        result = analyzed(program, "--quick", "--filter", group)
        assert result.returncode == 0 and "hazards: none" in result.stdout, result.stdout + result.stderr
        assert summary(result)[1] == 0

    def test_sees_a_missing_barrier(self, tmp_path):
        program = build(tmp_path, "--analyze", changes=[(r"__syncthreads\(\);", "")])
        result = analyzed(program, "--rows", "3", "--cols", "4096")
        assert result.returncode == 1 and "hazards: none" not in result.stdout
