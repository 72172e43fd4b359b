// Experiment 2, and what the experiments share.
#include "experiments.h"

#include <algorithm>
#include <cmath>

#include "common/copy_kernel.h"

namespace ladder::memory_bandwidth {

AnyStage fastest_copy(const Report& report) {
  const Result* fastest = nullptr;
  for (const Result& result : report.results) {
    const bool kernel = result.stage->op == &Copy::get() && std::string(result.stage->name) != "13_memcpy";
    if (!kernel || !result.timed) continue;
    if (!fastest || result.timing.microseconds < fastest->timing.microseconds) fastest = &result;
  }
  return fastest ? *fastest->stage : Stage<Copy>{"copy kernel", "", launch_copy};
}

Pairs::Pairs(const AnyStage& copy, int64_t bytes, int64_t count, const Change& change)
    : copy_(copy),
      words_(bytes / 4),
      count_(count),
      case_(*copy.op, {{words_ * count}}, 1, change),
      problem_(case_, copy.op->plain()) {
  problem_.buffers.prepare(case_);
  CUDA_CHECK(cudaDeviceSynchronize());
}

void Pairs::launch(int64_t number, cudaStream_t stream) {
  const Arguments all = problem_.buffers.arguments();
  void* const pair[] = {all.tensor<uint32_t>(0) + number * words_, all.tensor<uint32_t>(1) + number * words_};
  copy_({pair, {{words_}}, all.scalars}, stream);
}

Timing Pairs::time(int iterations) {
  const auto one = [this](int64_t number, cudaStream_t stream) { launch(number, stream); };
  const Timing timing = measure(one, count_, iterations);
  require_right();
  return timing;
}

void Pairs::require_right() {
  CUDA_CHECK(cudaGetLastError());
  const std::string failure =
      problem_.buffers.verify(case_, problem_.variant()).failure + problem_.buffers.side_effects(case_);
  if (!failure.empty()) throw std::runtime_error(text("%s is wrong after timing: %s", copy_.name, failure.c_str()));
}

int64_t cold_pairs(int64_t bytes, const Device& device) {
  return static_cast<int64_t>(std::ceil(std::max(kPoolBytes, 8.0 * device.l2_bytes) / moved_bytes(bytes)));
}

Timing time_cold(const AnyStage& copy, int64_t bytes, const Report& report, const Change& change) {
  const Timing timing = Pairs(copy, bytes, cold_pairs(bytes, report.device), change).time(report.options.iterations);
  require_possible(copy.name + (" of " + size_text(bytes)), moved_bytes(bytes), timing, report.device);
  return timing;
}

Table cold_warm(const Report& report) {
  const AnyStage copy = fastest_copy(report);
  const Device& device = report.device;
  const int iterations = report.options.iterations;
  Table table;
  table.title = text("Experiment 2: %s, cold with pairs in turn, warm with one pair again and again", copy.name);
  table.columns = {{"buffer_bytes", nullptr},
                   {"buffer", "buffer"},
                   {"footprint_bytes", nullptr},
                   {"cold_pairs", "pairs"},
                   {"cold_microseconds", "cold us"},
                   {"cold_spread_percent", "spread", "%"},
                   {"cold_gb_per_s", "GB/s"},
                   {"cold_percent_of_datasheet", "of datasheet", "%"},
                   {"warm_microseconds", "warm us"},
                   {"warm_spread_percent", "spread", "%"},
                   {"warm_apparent_gb_per_s", nullptr},
                   {"warm_apparent_percent_of_datasheet", "\"of datasheet\"", "%"},
                   {"warm_verdict", "warm verdict"},
                   {"variant", nullptr},
                   {"l2_bytes", nullptr},
                   {"iterations", nullptr}};
  table.remarks = "cache artefact: the L2 cache moved the bytes, faster than the datasheet's memory could have\n";
  for (const int64_t bytes :
       {64 * kKiB, 128 * kKiB, 256 * kKiB, 512 * kKiB, kMiB, 2 * kMiB, 4 * kMiB, 6 * kMiB, 8 * kMiB, 12 * kMiB,
        16 * kMiB, 24 * kMiB, 32 * kMiB, 48 * kMiB, 64 * kMiB, 128 * kMiB, 256 * kMiB, 512 * kMiB, kGiB}) {
    const int64_t pairs = cold_pairs(bytes, device), needed = 2 * pairs * bytes + 64 * kMiB;
    size_t free_bytes = 0, total_bytes = 0;
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (needed > static_cast<int64_t>(free_bytes)) {
      table.remarks += text("%s skipped: not enough GPU memory is free\n", size_text(bytes).c_str());
      continue;
    }
    const Timing cold = time_cold(copy, bytes, report), warm = Pairs(copy, bytes).time(iterations);
    const double moved = moved_bytes(bytes), peak = device.peak_bytes_per_second;
    const bool artefact = peak > 0 && 1e6 * moved / warm.microseconds > peak;
    Cells& row = table.rows.emplace_back();
    append(row, {{std::to_string(bytes), size_text(bytes), text("%.0f", moved), std::to_string(pairs)}});
    append(row, {time_cells(cold), rate_cells(moved, cold, device), time_cells(warm), rate_cells(moved, warm, device)});
    append(row,
           {{artefact ? "cache artefact" : "", copy.name, text("%.0f", device.l2_bytes), std::to_string(iterations)}});
  }
  return table;
}

}  // namespace ladder::memory_bandwidth
