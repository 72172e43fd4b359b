// Experiment 6: one kernel launched again and again, first without a rest and then with a pause before each sample, and
// the clock beside it.
#include <chrono>
#include <stdexcept>
#include <thread>

#include "assignment2/q4_gemm/05_tile2d/kernel.cuh"
#include "common/text.h"
#include "experiments.h"

namespace ladder::q4_gemm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSeconds = 10.0, kSampleMicroseconds = 200e3;

__global__ void spin(long long cycles) {
  for (const long long begin = clock64(); clock64() - begin < cycles;) continue;
}

// Of the multiprocessors, now. What a launch takes cancels out.
double clock_mhz(Stopwatch& stopwatch) {
  const auto spun = [&](long long cycles) {
    return stopwatch.microseconds([&] { spin<<<1, 1, 0, stopwatch.stream()>>>(cycles); });
  };
  const double longer = spun(3000000), shorter = spun(1000000);
  return 2e6 / (longer - shorter);
}

}  // namespace

Table over_time(const Report& report) {
  const Shape shape = {{8192, 2, 14336}};  // that of the document's best figure
  const AnyStage stage(tile2d::stage);
  Table table;
  table.title = text("Experiment 6: %s on %s, over %.0f seconds without a pause and %.0f with one", stage.name,
                     shape_text(*stage.op, shape).c_str(), kSeconds, kSeconds);
  table.columns = {{"pause_milliseconds", "pause", " ms"},
                   {"seconds", "after", " s"},
                   {"microseconds", "us"},
                   {"gflop_per_s", "GFLOP/s"},
                   {"clock_mhz", "SM clock", " MHz"},
                   {"stage", nullptr},
                   {"m", nullptr},
                   {"n", nullptr},
                   {"k", nullptr}};
  const Case given(*stage.op, shape, report.options.seed);
  Problem problem(given, stage.op->plain());
  problem.buffers.prepare(given);
  Stopwatch stopwatch;
  const auto launches = [&](int count) {
    return stopwatch.microseconds([&] {
      for (int i = 0; i < count; ++i) problem.launch(stage, problem.buffers.arguments(), stopwatch.stream());
    });
  };
  launches(10);
  const int count = static_cast<int>(kSampleMicroseconds / (launches(100) / 100)) + 1;
  for (const int pause : {0, 200}) {
    const auto begin = Clock::now();
    for (double seconds = 0; seconds < kSeconds;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(pause));
      const double microseconds = launches(count) / count;
      const double mhz = clock_mhz(stopwatch);
      seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      table.rows.push_back({std::to_string(pause), text("%.2f", seconds), text("%.2f", microseconds),
                            text("%.1f", stage.op->operations(shape) / microseconds / 1e3), text("%.0f", mhz),
                            stage.name, std::to_string(shape[0]), std::to_string(shape[1]), std::to_string(shape[2])});
    }
  }
  const Outcome after = problem.buffers.verify(given, problem.variant());
  if (!after.failure.empty()) throw std::runtime_error(text("%s: %s", stage.name, after.failure.c_str()));
  return table;
}

}  // namespace ladder::q4_gemm
