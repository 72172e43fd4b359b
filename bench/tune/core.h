// What the tuners of both headers have in common: the program, and how a result becomes a row of the CSV. A header's
// folder has its candidates, how one is launched and checked, and at which problems they are measured.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdio>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/csv_file.h"
#include "common/program.h"
#include "common/report.h"
#include "common/text.h"
#include "common/timing.h"

namespace tune {

// A candidate at a problem.
struct Result {
  double bytes;  // that a launch moves at least
  int64_t copies;
  std::string refusal = {};  // why it did not launch; then there is no timing
  ladder::Timing timing = {};
};

// Those that did not launch last.
inline bool is_faster(const Result& a, const Result& b) {
  if (!a.refusal.empty() || !b.refusal.empty()) return a.refusal.empty() && !b.refusal.empty();
  return a.timing.microseconds < b.timing.microseconds;
}

inline std::string refusal_of(cudaError_t error) {
  static_cast<void>(cudaGetLastError());
  return ladder::text("%s (%s)", cudaGetErrorName(error), cudaGetErrorString(error));
}
constexpr const char* kNeedsClusters = "clusters need compute capability 9.0";

// `columns` and cells_of(measurement) are what identifies a measurement, which is a Result.
template <class Measurement, class Cells>
std::string csv(const std::string& columns, const std::vector<Measurement>& measurements, Cells cells_of,
                const ladder::Device& device, int samples) {
  std::string out = columns +
                    ",verdict,reason,microseconds,spread_percent,gb_per_s,copies,samples,device,sm,"
                    "multiprocessors,driver,runtime,date\n";
  for (const Measurement& m : measurements) {
    std::vector<std::string> cells = cells_of(m);
    const bool timed = m.refusal.empty();
    for (const std::string& cell :
         {std::string(timed ? "ok" : "refused"), m.refusal, timed ? ladder::text("%.3f", m.timing.microseconds) : "",
          timed ? ladder::text("%.1f", m.timing.spread_percent) : "",
          timed ? ladder::text("%.1f", m.bytes / m.timing.microseconds / 1e3) : "", std::to_string(m.copies),
          std::to_string(samples), device.name, std::to_string(device.compute_capability),
          std::to_string(device.multiprocessors), std::to_string(device.driver), std::to_string(device.runtime),
          ladder::today()})
      cells.push_back(cell);
    out += ladder::csv_line(cells);
  }
  return out;
}

// Launches on small problems, whose results are looked at and not their times.
struct Checks {
  size_t candidates;
  int right = 0;
  std::vector<std::string> refused = {};  // a sentence each

  void add(const std::string& name, const std::string& refusal) {
    if (refusal.empty())
      ++right;
    else
      refused.push_back(name + ": " + refusal);
  }
};

// --- What a header's folder defines ----------------------------------------------------------------------------------

struct Job {
  const char *command, *policies;  // "make tune", and the folder of what it writes
  int samples;                     // of each time, where nothing else is asked for
};
extern const Job job;

// The candidates, a line each.
std::string list();

// Every candidate. Throws where one writes something wrong.
Checks check(const ladder::Device& device);

// Every candidate at every problem that a policy tells apart, as a CSV, with a line on stdout for each problem. Throws
// where one writes something wrong or is faster than the GPU's datasheet allows.
std::string measure(const ladder::Device& device, int samples);

// --- The program -----------------------------------------------------------------------------------------------------

inline int report_checks(const ladder::Device& device) {
  const Checks checks = check(device);
  for (const std::string& refusal : checks.refused) std::printf("refused: %s\n", refusal.c_str());
  std::printf("%zu candidates PASS, %d launches, %zu refused\n", checks.candidates, checks.right,
              checks.refused.size());
  if (device.cpu) std::printf("the CPU device is never timed: %s measures on a GPU only\n", job.command);
  return checks.refused.empty() ? 0 : 1;
}

inline int start(int argc, char** argv) {
  std::string csv_path;
  int samples = job.samples;
  bool check_only = false, lists = false;
  ladder::CommandLine line(
      ladder::text("Measures the candidates for a policy in %s on a GPU, or checks them on the CPU device.",
                   job.policies),
      "Exit code: 0 all right, 1 a wrong result, an impossible time or a CUDA failure, 2 a bad command line.");
  line.add_flag("--check", check_only, "check every candidate and time none");
  line.add_flag("--list", lists, "list the candidates and stop");
  line.add_text("--csv", csv_path, "FILE", "write the measurements to this file");
  line.add_number<int>("--samples", samples, 1, 1000, "a whole number from 1 to 1000, for example 7",
                       "samples of each time, each about two milliseconds of launches");
  line.parse(argc, argv);
  if (lists) {
    std::printf("%s", list().c_str());
    return 0;
  }
  const ladder::CsvFile file(csv_path);

  ladder::require_device();
  const ladder::Device device = ladder::current_device();
  std::printf("%s\n", device.line().c_str());
  std::fflush(stdout);
  if (check_only || device.cpu) {
    if (!csv_path.empty()) throw ladder::UsageError("--csv: nothing is timed here; leave it out, or run this on a GPU");
    return report_checks(device);
  }
  file.write(measure(device, samples));
  return 0;
}

inline int program(int argc, char** argv) {
  return ladder::guarded(argv[0], [&] { return start(argc, argv); });
}

}  // namespace tune
