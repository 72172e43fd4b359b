// Experiments beside a ladder's table: what a lecture measures on a GPU besides the times of its stages.
#pragma once
#include <chrono>
#include <initializer_list>

#include "common/report.h"

namespace ladder {

struct Experiment {
  const char* name;                    // of its CSV, without .csv
  const char* question;                // one line for --list
  Table (*run)(const Report& report);  // report: the stages, checked and timed
  bool is_timed = true;                // false: it also runs where nothing is timed, on the CPU device for example
};

// A ladder's program with experiments: it also takes --experiment N and --csv-dir DIR. The table of the stages is
// main.csv there. The experiments run only if all stages are right, and those that are timed only on a GPU.
int run_all(const std::vector<AnyStage>& stages, const std::vector<Experiment>& experiments, int argc, char** argv);

// Cells of an experiment's table.
using Cells = std::vector<std::string>;
Cells time_cells(const Timing& timing);  // microseconds, spread
Cells rate_cells(double bytes, const Timing& timing,
                 const Device& device);  // GB/s, percent of the datasheet's bandwidth
std::string size_text(int64_t bytes);    // "64 KiB", "1 GiB"
void append(Cells& row, std::initializer_list<Cells> parts);

// Times some work with the host's clock; the number of samples suits work that takes microseconds.
template <class Work>
double host_microseconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}
template <class Sample>
Timing sampled(int samples, Sample sample) {
  std::vector<double> microseconds;
  for (int i = 0; i < samples; ++i) microseconds.push_back(sample());
  return summarize(std::move(microseconds));
}

}  // namespace ladder
