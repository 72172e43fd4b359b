// Experiment 2: each stage again, with one set of buffers in place of many.
#include "common/text.h"
#include "experiments.h"

namespace ladder::vector {

Table warm(const Report& report) {
  const Device& device = report.device;
  Table table;
  table.title = "Experiment 2: cold with many buffer sets in turn, warm with one set again and again";
  table.columns = {{"stage", "stage"},
                   {"cold_microseconds", "cold us"},
                   {"cold_spread_percent", "spread", "%"},
                   {"cold_gb_per_s", "GB/s"},
                   {"cold_percent_of_datasheet", "of datasheet", "%"},
                   {"warm_microseconds", "warm us"},
                   {"warm_spread_percent", "spread", "%"},
                   {"warm_apparent_gb_per_s", "\"GB/s\""},
                   {"warm_apparent_percent_of_datasheet", "\"of datasheet\"", "%"},
                   {"warm_verdict", "warm verdict"},
                   {"n", nullptr},
                   {"iterations", nullptr}};
  table.remarks = "cache artefact: the L2 cache moved the bytes, faster than the datasheet's memory could have\n";
  for (const Result& result : report.results) {
    if (!result.timed) continue;
    const AnyStage& stage = *result.stage;
    const Case given(*stage.op, report.options.shape, report.options.seed);
    Problem problem(given, report.options.variant);
    problem.buffers.prepare(given);
    const auto one = [&](int64_t, cudaStream_t stream) { problem.launch(stage, problem.buffers.arguments(), stream); };
    const Timing timing = measure(NumberedLaunch(one), 1, report.options.iterations);
    const std::string failure = problem.buffers.verify(given, problem.variant()).failure;
    if (!failure.empty()) throw std::runtime_error(text("%s is wrong when warm: %s", stage.name, failure.c_str()));

    const double bytes = stage.op->bytes(report.options.shape, report.options.variant);
    const double peak = device.peak_bytes_per_second;
    const bool artefact = peak > 0 && 1e6 * bytes / timing.microseconds > peak;
    Cells& row = table.rows.emplace_back(Cells{stage.name});
    append(row, {time_cells(result.timing), rate_cells(bytes, result.timing, device), time_cells(timing),
                 rate_cells(bytes, timing, device)});
    append(row, {{artefact ? "cache artefact" : "", std::to_string(report.options.shape[0]),
                  std::to_string(report.options.iterations)}});
  }
  return table;
}

}  // namespace ladder::vector
