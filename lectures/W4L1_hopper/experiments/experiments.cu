// Experiments 2 to 5: each pair over the sizes at which its feature gains and costs.
#include "experiments.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "common/operators/group_sum.h"
#include "common/text.h"
#include "lectures/W4L1_hopper/residency.h"

namespace ladder::hopper {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

const AnyStage& named(const std::string& name) {
  for (const std::vector<AnyStage>* some : {&stages, &variants})
    for (const AnyStage& stage : *some)
      if (stage.name == name) return stage;
  throw std::logic_error(text("there is no stage %s", name.c_str()));
}

void require_right(const std::string& what, const Outcome& outcome) {
  if (!outcome.failure.empty()) throw std::runtime_error(what + " is wrong after timing: " + outcome.failure);
}

// n words, with a cold cache.
Timing time_cold(const AnyStage& stage, int64_t n, const Report& report) {
  const Case given(*stage.op, {{n}}, 1);
  Problem problem(given, stage.op->plain());
  Pool pool(problem, report.device);
  pool.prepare();
  const Timing timing = measure(stage, problem, pool, report.options.iterations);
  const std::string what = text("%s of %lld words", stage.name, static_cast<long long>(n));
  require_right(what, pool.verify(stage));
  const double bytes = stage.op->bytes(given.shape, problem.variant());
  if (pool.larger_than_cache()) require_possible(what, bytes, timing, report.device);
  return timing;
}

// The same buffers again and again, so that L2 may still hold what the launch before has left there.
Timing time_again(const AnyStage& stage, int64_t n, const Report& report) {
  const Case given(*stage.op, {{n}}, 1);
  Problem problem(given, stage.op->plain());
  problem.buffers.prepare(given);
  const auto launch = [&](int64_t, cudaStream_t stream) { problem.launch(stage, problem.buffers.arguments(), stream); };
  const Timing timing = measure(launch, 1, report.options.iterations);
  require_right(stage.name, problem.buffers.verify(given, problem.variant()));
  return timing;
}

}  // namespace

Table cluster(const Report& report) {
  Table table;
  table.title = "Experiment 2: groups of 128 KiB, us a launch, buffers in turn";
  table.columns = {{"groups", "groups"},
                   {"one_block_microseconds", "one block"},
                   {"one_block_spread_percent", "spread", "%"},
                   {"two_kernels_microseconds", "two kernels"},
                   {"two_kernels_spread_percent", "spread", "%"},
                   {"cluster_2_microseconds", "cluster of 2"},
                   {"cluster_2_spread_percent", "spread", "%"},
                   {"cluster_4_microseconds", "of 4"},
                   {"cluster_4_spread_percent", "spread", "%"},
                   {"cluster_8_microseconds", "of 8"},
                   {"cluster_8_spread_percent", "spread", "%"},
                   {"iterations", nullptr}};
  for (const int64_t groups : {1, 4, 16, 64, 132, 256, 1024, 4096}) {
    Cells& row = table.rows.emplace_back(Cells{std::to_string(groups)});
    for (const char* name : {"01_one_block", "02_two_kernels", "cluster_2", "cluster_4", "03_cluster"})
      append(row, {time_cells(time_cold(named(name), groups * GroupSum::kGroup, report))});
    append(row, {{std::to_string(report.options.iterations)}});
  }
  return table;
}

Table bulk_copy(const Report& report) {
  Table table;
  table.title = "Experiment 3: a copy of 256 MiB by one block for each SM, cold";
  table.columns = {{"threads", "threads"},
                   {"by_threads_microseconds", "by threads, us"},
                   {"by_threads_spread_percent", "spread", "%"},
                   {"by_threads_gb_per_s", "GB/s"},
                   {"by_threads_percent_of_datasheet", "of datasheet", "%"},
                   {"bulk_microseconds", "in bulk, us"},
                   {"bulk_spread_percent", "spread", "%"},
                   {"bulk_gb_per_s", "GB/s"},
                   {"bulk_percent_of_datasheet", "of datasheet", "%"},
                   {"iterations", nullptr}};
  constexpr int64_t kWords = 1 << 26;
  const auto add = [&](int threads, const std::string& by_threads, const std::string& bulk) {
    Cells& row = table.rows.emplace_back(Cells{std::to_string(threads)});
    for (const std::string& name : {by_threads, bulk}) {
      const Timing timing = time_cold(named(name), kWords, report);
      append(row, {time_cells(timing), rate_cells(8.0 * kWords, timing, report.device)});
    }
    append(row, {{std::to_string(report.options.iterations)}});
  };
  add(32, "by_threads_32", "bulk_copy_32");
  add(64, "04_by_threads", "05_bulk_copy");
  for (const int threads : {128, 256, 512}) {
    const std::string number = std::to_string(threads);
    add(threads, "by_threads_" + number, "bulk_copy_" + number);
  }
  return table;
}

Table dependent_launch(const Report& report) {
  Table table;
  table.title = "Experiment 4: two kernels, us for both, buffers in turn";
  table.columns = {{"buffer_bytes", nullptr},
                   {"buffer", "buffer"},
                   {"in_order_microseconds", "in order"},
                   {"in_order_spread_percent", "spread", "%"},
                   {"dependent_microseconds", "dependent"},
                   {"dependent_spread_percent", "spread", "%"},
                   {"saved_microseconds", "saved"},
                   {"iterations", nullptr}};
  for (const int64_t bytes : {4 * kKiB, 64 * kKiB, 512 * kKiB, 2 * kMiB, 8 * kMiB, 32 * kMiB, 128 * kMiB}) {
    const Timing in_order = time_cold(named("06_in_order"), bytes / 4, report);
    const Timing dependent = time_cold(named("07_dependent"), bytes / 4, report);
    append(table.rows.emplace_back(Cells{std::to_string(bytes), size_text(bytes)}),
           {time_cells(in_order),
            time_cells(dependent),
            {text("%.3f", in_order.microseconds - dependent.microseconds), std::to_string(report.options.iterations)}});
  }
  return table;
}

namespace {

// While it lives, a part of L2 is kept for accesses that are to persist.
class SetAside {
 public:
  explicit SetAside(size_t bytes) {
    CUDA_CHECK(cudaCtxResetPersistingL2Cache());  // the lines that the hints' launches have left
    int most = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, 0));
    CUDA_CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, std::min(bytes, static_cast<size_t>(most))));
    CUDA_CHECK(cudaDeviceGetLimit(&set_aside_bytes, cudaLimitPersistingL2CacheSize));
  }
  ~SetAside() {
    set_aside_bytes = 0;
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0);
    cudaCtxResetPersistingL2Cache();
  }
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;
};

}  // namespace

Table residency(const Report& report) {
  Table table;
  table.title = "Experiment 5: a table beside a stream that is 8 times as long, us a launch, the same buffers again";
  table.columns = {{"table_bytes", nullptr},
                   {"table", "table"},
                   {"stream_microseconds", "stream alone"},
                   {"stream_spread_percent", "spread", "%"},
                   {"normal_microseconds", "normal"},
                   {"normal_spread_percent", "spread", "%"},
                   {"held_microseconds", "hints"},
                   {"held_spread_percent", "spread", "%"},
                   {"window_microseconds", "window"},
                   {"window_spread_percent", "spread", "%"},
                   {"set_aside", "set aside"},
                   {"set_aside_bytes", nullptr},
                   {"l2_bytes", nullptr},
                   {"iterations", nullptr}};
  table.remarks = "stream alone: a copy of as many floats, which nothing that also reads a table can beat\n";
  for (const int64_t bytes : {4 * kMiB, 8 * kMiB, 16 * kMiB, 24 * kMiB, 32 * kMiB, 48 * kMiB, 64 * kMiB}) {
    const int64_t n = 8 * bytes / 4;
    const Timing alone = time_again(named("stream_alone"), n, report);
    const Timing normal = time_again(named("08_normal"), n, report);
    const Timing held = time_again(named("09_held"), n, report);
    const SetAside set_aside(static_cast<size_t>(bytes));
    const Timing window = time_again(named("10_window"), n, report);
    append(table.rows.emplace_back(Cells{std::to_string(bytes), size_text(bytes)}),
           {time_cells(alone),
            time_cells(normal),
            time_cells(held),
            time_cells(window),
            {size_text(static_cast<int64_t>(set_aside_bytes)), std::to_string(set_aside_bytes),
             text("%.0f", report.device.l2_bytes), std::to_string(report.options.iterations)}});
  }
  return table;
}

}  // namespace ladder::hopper
