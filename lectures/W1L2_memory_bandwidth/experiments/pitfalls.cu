// Experiment 4: wrong ways to time. Its kernels are in a file, and therefore in a module, of their own, so that no
// other kernel's launch brings their code onto the device.
#include <cstring>
#include <utility>

#include "common/random.h"
#include "experiments.h"

namespace ladder::memory_bandwidth {
namespace {

constexpr int64_t kLarge = 512 * kMiB, kSmall = 8 * kKiB;
constexpr int kThreads = 256, kNewcomers = 8;

// Each number makes the same code a different kernel, with a first launch of its own.
template <int kNumber>
__global__ void newcomer_kernel(const float* __restrict__ from, float* __restrict__ to) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  to[i] = from[i];
}

template <int kNumber>
void launch_newcomer(const float* from, float* to, int64_t n, cudaStream_t stream) {
  newcomer_kernel<kNumber><<<static_cast<unsigned>(n / kThreads), kThreads, 0, stream>>>(from, to);
}

template <int... kNumbers>
std::vector<AnyStage> newcomers(std::integer_sequence<int, kNumbers...>) {
  return {Stage<Copy>{"newcomer", "", launch_newcomer<kNumbers>}...};
}

void all_zeros(Case& c) { std::memset(c.inputs[0].data(), 0, c.tensors[0].count() * sizeof(uint32_t)); }

void random_bits(Case& c) {
  auto* words = reinterpret_cast<uint32_t*>(c.inputs[0].data());
  for (int64_t i = 0; i < c.tensors[0].count(); ++i) words[i] = hash32(2, i);
}

}  // namespace

Table pitfalls(const Report& report) {
  const AnyStage copy = fastest_copy(report);
  const int iterations = report.options.iterations;
  Table table;
  table.title = text("Experiment 4, wrong ways beside the right one: %s, large buffers of 512 MiB", copy.name);
  table.left = 3;
  table.columns = {{"pitfall", "pitfall"},
                   {"method", "timed"},
                   {"right", "right?"},
                   {"microseconds", "us"},
                   {"spread_percent", "spread", "%"},
                   {"apparent_gb_per_s", "apparent GB/s"},
                   {"apparent_percent_of_datasheet", "of datasheet", "%"},
                   {"buffer_bytes", nullptr},
                   {"samples", nullptr}};
  table.remarks = "apparent: the copy's bytes over the time that was read off, whatever that time was of\n";
  const auto add = [&](const char* pitfall, const std::string& method, bool right, const Timing& timing,
                       int64_t bytes = kLarge, int samples = 0) {
    const bool large = bytes == kLarge;  // the small copies move too little for a rate to mean anything
    append(table.rows.emplace_back(Cells{pitfall, method, right ? "yes" : "no"}),
           {time_cells(timing),
            large ? rate_cells(moved_bytes(bytes), timing, report.device) : Cells(2),
            {std::to_string(bytes), std::to_string(samples ? samples : iterations)}});
  };

  // A launch returns at once; the clock stops before the copy has begun.
  Stopwatch stopwatch;
  const auto wait = [&] { CUDA_CHECK(cudaStreamSynchronize(stopwatch.stream())); };
  Pairs pair(copy, kLarge);
  const auto launch = [&] { pair.launch(0, stopwatch.stream()); };
  const auto until_launched = [&] { return wait(), host_microseconds(launch); };
  const auto until_done = [&] { return host_microseconds([&] { launch(), wait(); }); };
  launch();
  add("no synchronization", "host clock around the launch", false, sampled(iterations, until_launched));
  wait();
  add("no synchronization", "host clock, stream synchronized", true, sampled(iterations, until_done));
  pair.require_right();
  add("no synchronization", "graph replay, cold cache", true, time_cold(copy, kLarge, report));

  // Code reaches the device when it is first needed.
  std::vector<double> firsts, thirds;
  for (const AnyStage& newcomer : newcomers(std::make_integer_sequence<int, kNewcomers>())) {
    Pairs few(newcomer, kSmall);
    const auto once = [&] { return host_microseconds([&] { few.launch(0, stopwatch.stream()), wait(); }); };
    firsts.push_back(once());
    few.require_right();
    once();
    thirds.push_back(once());
  }
  add("no warm-up", "first launch of a kernel", false, summarize(firsts), kSmall, kNewcomers);
  add("no warm-up", "third launch of the same kernel", true, summarize(thirds), kSmall, kNewcomers);

  // Each twice, in turn: a difference between zeros and random bits counts only if it is larger than the difference
  // between two runs with the same data.
  for (const std::string again : {"", ", again"}) {
    add("zeros as data", "zeros" + again, false, time_cold(copy, kLarge, report, all_zeros));
    add("zeros as data", "random bits" + again, true, time_cold(copy, kLarge, report, random_bits));
  }
  return table;
}

}  // namespace ladder::memory_bandwidth
