// Experiments 3 and 4: what a clock says about launches.
#include <chrono>

#include "check.h"
#include "experiments.h"
#include "figures.h"
#include "first_launch.h"

namespace memory_bandwidth {
namespace {

using ladder::Stopwatch;
using ladder::text;
using ladder::Timing;

constexpr int kLaunches = 500;  // in a row: fewer than a stream holds before the next launch has to wait for room

__global__ void empty_kernel() {}

template <class Sample>
Timing sampled(int samples, Sample sample) {
  std::vector<double> microseconds;
  for (int i = 0; i < samples; ++i) microseconds.push_back(sample());
  return ladder::summarize(std::move(microseconds));
}

template <class Work>
double host_microseconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

// One row of experiment 3: the same launch, timed in three ways, and what it costs the CPU to ask for it.
std::vector<std::string> launch_cells(const std::string& name, const std::function<void(cudaStream_t)>& submit,
                                      int iterations) {
  Stopwatch stopwatch;
  std::vector<double> submits;
  const auto back_to_back = [&] {
    return stopwatch.microseconds([&] {
      submits.push_back(host_microseconds([&] {
                          for (int i = 0; i < kLaunches; ++i) submit(stopwatch.stream());
                        }) /
                        kLaunches);
    }) / kLaunches;
  };
  back_to_back();  // warm-up
  submits.clear();
  const Timing plain = sampled(iterations, back_to_back), submitted = ladder::summarize(submits);
  const Timing pair = sampled(iterations, [&] { return stopwatch.microseconds([&] { submit(stopwatch.stream()); }); });
  CUDA_CHECK(cudaGetLastError());
  const Timing graph = ladder::measure([&](int64_t, cudaStream_t stream) { submit(stream); }, 1, iterations);
  std::vector<std::string> cells = {name};
  for (const Timing& timing : {graph, plain, submitted, pair}) {
    cells.push_back(microseconds_text(timing));
    cells.push_back(spread_text(timing));
  }
  return cells;
}

}  // namespace

Table Experiments::launch() {
  const Variant& copy = ceiling();
  Table table{"launch",
              text("Experiment 3, short kernels, us a launch: %d launches in a row, warm buffers, median of %d samples",
                   kLaunches, iterations_),
              {{"work", "what is launched"},
               {"graph_microseconds", "in a graph"},
               {"graph_spread_percent", "spread", "%"},
               {"plain_microseconds", "in a stream"},
               {"plain_spread_percent", "spread", "%"},
               {"submit_microseconds", "CPU's share"},
               {"submit_spread_percent", "spread", "%"},
               {"event_pair_microseconds", "event pair each"},
               {"event_pair_spread_percent", "spread", "%"},
               {"variant", nullptr},
               {"iterations", nullptr}},
              {},
              ""};
  Stopwatch stopwatch;
  stopwatch.microseconds([] {});
  const Timing nothing = sampled(iterations_, [&] { return stopwatch.microseconds([] {}); });
  table.rows.push_back({"nothing", "", "", "", "", "", "", microseconds_text(nothing), spread_text(nothing)});
  table.rows.push_back(launch_cells(
      "empty kernel", [](cudaStream_t stream) { empty_kernel<<<1, 32, 0, stream>>>(); }, iterations_));
  for (const int64_t bytes : {8 * kKiB, 64 * kKiB, 2 * kMiB}) {
    const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
    prepare(copy, to_.data(), count);
    table.rows.push_back(launch_cells(
        "copy of " + size_text(static_cast<double>(bytes)),
        [&](cudaStream_t stream) { copy.launch(from_.data(), to_.data(), count, stream); }, iterations_));
    require_right(copy, count);
  }
  for (auto& row : table.rows) {
    row.push_back(copy.name);
    row.push_back(std::to_string(iterations_));
  }
  table.remarks = text(
      "two events with nothing between them are %s us apart: an event pair cannot see a kernel that is shorter\n"
      "where 'in a stream' equals the CPU's share, it is the CPU that was timed\n",
      microseconds_text(nothing).c_str());
  return table;
}

Table Experiments::pitfalls() {
  Table table{"pitfalls",
              text("Experiment 4, wrong ways beside the right one: %s, buffers of %s", ceiling().name,
                   size_text(kLadderBytes).c_str()),
              {{"pitfall", "pitfall"},
               {"method", "timed"},
               {"right", "right?"},
               {"microseconds", "us"},
               {"spread_percent", "spread", "%"},
               {"apparent_gb_per_s", "apparent GB/s"},
               {"apparent_percent_of_datasheet", "of datasheet", "%"},
               {"buffer_bytes", nullptr},
               {"samples", nullptr}},
              {},
              ""};
  table.left = 3;
  const Variant& copy = ceiling();
  const auto add = [&](const char* pitfall, const char* method, bool right, const Timing& timing, int64_t bytes,
                       size_t samples) {
    const double moved = moved_bytes(copy, bytes);
    const bool large = bytes == kLadderBytes;  // the short kernels move too little for a rate to mean anything
    table.rows.push_back({pitfall, method, right ? "yes" : "no", microseconds_text(timing), spread_text(timing),
                          large ? rate_text(moved, timing) : "", large ? of_datasheet(moved, timing) : "",
                          std::to_string(bytes), std::to_string(samples)});
  };

  // A launch returns at once; the clock stops before the copy has begun.
  Stopwatch stopwatch;
  const int64_t count = kLadderBytes / static_cast<int64_t>(sizeof(float));
  const auto launch = [&] { copy.launch(from_.data(), to_.data(), count, stopwatch.stream()); };
  const auto wait = [&] { CUDA_CHECK(cudaStreamSynchronize(stopwatch.stream())); };
  const size_t samples = static_cast<size_t>(iterations_);
  launch();
  const Timing unsynchronized = sampled(iterations_, [&] {
    wait();
    return host_microseconds(launch);
  });
  wait();
  const Timing synchronized = sampled(iterations_, [&] {
    return host_microseconds([&] {
      launch();
      wait();
    });
  });
  CUDA_CHECK(cudaGetLastError());
  add("no synchronization", "host clock around the launch", false, unsynchronized, kLadderBytes, samples);
  add("no synchronization", "host clock, stream synchronized", true, synchronized, kLadderBytes, samples);
  add("no synchronization", "graph replay, cold cache", true, time_cold(copy, kLadderBytes), kLadderBytes, samples);

  // Code reaches the device when it is first needed.
  std::vector<double> firsts, laters;
  for (const auto& newcomer : newcomers()) {
    const auto once = [&] {
      return host_microseconds([&] {
        newcomer(from_.data(), to_.data(), stopwatch.stream());
        wait();
      });
    };
    prepare(copy, to_.data(), kNewcomerFloats);
    firsts.push_back(once());
    require_right(copy, kNewcomerFloats);
    once();
    laters.push_back(once());
  }
  CUDA_CHECK(cudaGetLastError());
  const int64_t newcomer_bytes = kNewcomerFloats * static_cast<int64_t>(sizeof(float));
  add("no warm-up", "first launch of a kernel", false, ladder::summarize(firsts), newcomer_bytes, firsts.size());
  add("no warm-up", "third launch of the same kernel", true, ladder::summarize(laters), newcomer_bytes, laters.size());

  // Each twice, in turn: a difference between zeros and random bits counts only where it exceeds that between two of a
  // kind.
  for (const bool again : {false, true}) {
    const int64_t used = cold_pairs(kLadderBytes) * count;
    CUDA_CHECK(cudaMemset(from_.data(), 0, used * sizeof(float)));
    add("zeros as data", again ? "zeros, again" : "zeros", false, time_cold(copy, kLadderBytes), kLadderBytes, samples);
    fill_random(from_.data(), used, 2);
    add("zeros as data", again ? "random bits, again" : "random bits", true, time_cold(copy, kLadderBytes),
        kLadderBytes, samples);
  }
  table.remarks = "apparent: the copy's bytes over the time that was read off, whatever that time was of\n";
  return table;
}

}  // namespace memory_bandwidth
