// Experiment 3: kernels that are shorter than their launch.
#include "experiments.h"

namespace ladder::memory_bandwidth {
namespace {

constexpr int kLaunches = 500;  // one after the other; a stream holds more before a launch has to wait for room

__global__ void empty_kernel() {}

// The same launch, timed in three ways, and the time that the CPU takes to submit it.
Cells launch_cells(const std::string& name, const std::function<void(cudaStream_t)>& submit, int iterations) {
  Stopwatch stopwatch;
  std::vector<double> submits;
  const auto submit_all = [&] {
    for (int i = 0; i < kLaunches; ++i) submit(stopwatch.stream());
  };
  const auto back_to_back = [&] {
    return stopwatch.microseconds([&] { submits.push_back(host_microseconds(submit_all) / kLaunches); }) / kLaunches;
  };
  back_to_back();  // warm-up
  submits.clear();
  const Timing plain = sampled(iterations, back_to_back), submitted = summarize(submits);
  const Timing pair = sampled(iterations, [&] { return stopwatch.microseconds([&] { submit(stopwatch.stream()); }); });
  CUDA_CHECK(cudaGetLastError());
  const Timing graph = measure([&](int64_t, cudaStream_t stream) { submit(stream); }, 1, iterations);
  Cells cells = {name};
  append(cells, {time_cells(graph), time_cells(plain), time_cells(submitted), time_cells(pair)});
  return cells;
}

}  // namespace

Table launch(const Report& report) {
  const AnyStage copy = fastest_copy(report);
  const int iterations = report.options.iterations;
  Table table;
  table.title =
      text("Experiment 3, short kernels, us a launch: %d launches in a row, warm buffers, median of %d samples",
           kLaunches, iterations);
  table.columns = {{"work", "what is launched"},
                   {"graph_microseconds", "in a graph"},
                   {"graph_spread_percent", "spread", "%"},
                   {"plain_microseconds", "in a stream"},
                   {"plain_spread_percent", "spread", "%"},
                   {"submit_microseconds", "CPU's share"},
                   {"submit_spread_percent", "spread", "%"},
                   {"event_pair_microseconds", "event pair each"},
                   {"event_pair_spread_percent", "spread", "%"},
                   {"variant", nullptr},
                   {"iterations", nullptr}};
  Stopwatch stopwatch;
  stopwatch.microseconds([] {});
  const Timing nothing = sampled(iterations, [&] { return stopwatch.microseconds([] {}); });
  append(table.rows.emplace_back(Cells{"nothing", "", "", "", "", "", ""}), {time_cells(nothing)});
  const auto empty = [](cudaStream_t stream) { empty_kernel<<<1, 32, 0, stream>>>(); };
  table.rows.push_back(launch_cells("empty kernel", empty, iterations));
  for (const int64_t bytes : {8 * kKiB, 64 * kKiB, 2 * kMiB}) {
    Pairs pair(copy, bytes);
    const auto submit = [&](cudaStream_t stream) { pair.launch(0, stream); };
    table.rows.push_back(launch_cells("copy of " + size_text(bytes), submit, iterations));
    pair.require_right();
  }
  for (Cells& row : table.rows) append(row, {{copy.name, std::to_string(iterations)}});
  table.remarks = text(
      "two events with nothing between them are %s us apart: an event pair cannot see a kernel that is shorter\n"
      "where 'in a stream' equals the CPU's share, it is the CPU that was timed\n",
      time_cells(nothing).front().c_str());
  return table;
}

}  // namespace ladder::memory_bandwidth
