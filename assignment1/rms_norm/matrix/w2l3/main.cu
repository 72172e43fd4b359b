// test_w2l3: the document's kernels under its labels, in the form of its benchmark: without a weight, 100 samples each.
// It takes the options of rms_norm_matrix_test.
#include <cstdio>
#include <string>
#include <vector>

#include "assignment1/rms_norm/matrix/01_basic/kernel.cuh"
#include "assignment1/rms_norm/matrix/02_reduction5/kernel.cuh"
#include "assignment1/rms_norm/matrix/03_tiled/kernel.cuh"
#include "assignment1/rms_norm/matrix/04_hybrid/kernel.cuh"
#include "assignment1/rms_norm/matrix/05_warp_shuffle/kernel.cuh"
#include "assignment1/rms_norm/matrix/06_vectorized/kernel.cuh"
#include "common/check_stages.h"
#include "common/csv_file.h"
#include "common/description.h"
#include "common/program.h"
#include "common/text.h"
#include "hybrid.cuh"

namespace ladder::matrix {
namespace {

constexpr Requires kBlockPerRow = {0, RmsNorm::one_block_per_row};

// In the document's order, and then variants of its last kernel.
const std::vector<AnyStage> all = {
    basic::stage,
    warp_shuffle::stage,
    vectorized::stage,
    reduction5::stage,
    tiled::stage,
    hybrid::stage,
    Stage<RmsNorm>{"04_without_alignment_test", "04, whose launcher tests the alignment of all rows at once",
                   w2l3::launch<hybrid::kVectorsPerThread, false>, kBlockPerRow},
    Stage<RmsNorm>{"04_with_8_vectors", "04, with at most 8 float4 per thread: all of a row of 8192",
                   w2l3::launch<8, true>, kBlockPerRow},
    Stage<RmsNorm>{"04_with_4_vectors", "04, with at most 4 float4 per thread: all of a row of 4096",
                   w2l3::launch<4, true>, kBlockPerRow},
};

std::string label_of(const AnyStage& stage) {
  for (const auto& [label, name] : description.labels)
    if (std::string(name) == stage.name) return label;
  return stage.name;
}

bool is_w2l3(const AnyStage& stage) { return label_of(stage).rfind("W2L3_", 0) == 0; }

double gb_per_s(const Report& report, const Result& result) {
  return result.stage->op->bytes(report.options.shape, report.options.variant) / result.timing.microseconds / 1e3;
}

std::string said_of(const Report& report, const Result& result) {
  if (result.verdict == Verdict::skipped) return "skipped: " + result.reason;
  if (result.verdict != Verdict::pass) return "FAIL: " + result.reason;
  if (result.timed) {
    const double rate = gb_per_s(report, result), peak = report.device.peak_bytes_per_second / 1e9;
    const std::string of_peak = peak > 0 ? text(" (%.1f%% of peak)", 100.0 * rate / peak) : "";
    return text("Time: %.4f ms | Bandwidth: %.2f GB/s", result.timing.microseconds / 1e3, rate) + of_peak;
  }
  return text("PASS: error %.1e, limit %.1e; barriers per row: %.0f", result.worst_error, result.tolerance,
              result.counters.barriers_per_block);
}

void print(const Report& report) {
  const Options& options = report.options;
  const std::string line(40, '='), matrix = shape_text(RmsNorm::get(), options.shape);
  std::printf("W2L3 Optimization Test\n%s\n\n", line.c_str());
  const Result* best = nullptr;
  bool timed = false;
  for (const Result& result : report.results) timed = timed || result.timed;
  if (timed)
    std::printf("Benchmarking kernels on %s matrix (%d iterations)...\n\n", matrix.c_str(), options.iterations);
  else
    std::printf("Checking kernels on %s matrix...\n\n", matrix.c_str());
  int number = 0;
  for (const Result& result : report.results) {
    std::printf("%d. %s kernel:\n   %s\n\n", ++number, label_of(*result.stage).c_str(),
                said_of(report, result).c_str());
    if (result.timed && is_w2l3(*result.stage) && (!best || result.timing.microseconds < best->timing.microseconds))
      best = &result;
  }
  if (best)
    std::printf("Best W2L3 kernel: %s (%.2f GB/s)\n", label_of(*best->stage).c_str(), gb_per_s(report, *best));
  else
    std::printf("Best W2L3 kernel: not known, because no kernel was timed%s\n",
                report.device.cpu ? "; the CPU device checks and counts, and a GPU is needed for times" : "");
  std::printf("%s\n", line.c_str());
}

}  // namespace
}  // namespace ladder::matrix

int main(int argc, char** argv) {
  using namespace ladder;
  std::vector<const char*> words(argv, argv + argc);
  words.insert(words.begin() + 1, "--no-weight");
  bool counts = false;
  for (const std::string word : words) counts = counts || word.rfind("--iterations", 0) == 0;
  if (!counts) words.insert(words.begin() + 1, {"--iterations", "100"});
  return guarded(argv[0], [&] {
    const Options options = parse_options(matrix::all, 0, static_cast<int>(words.size()), words.data());
    if (options.list || options.profile)
      return run_all(matrix::all, static_cast<int>(words.size()), const_cast<char**>(words.data()));
    const CsvFile csv(options.csv);
    require_device();
    const Report report = check_stages(matrix::all, options);
    csv.write(report.csv());
    matrix::print(report);
    return report.all_right() ? 0 : 1;
  });
}
