// Experiments beside a ladder's table: what a lecture measures on a GPU besides the times of its stages.
#pragma once
#include "common/report.h"

namespace ladder {

struct Experiment {
  const char* name;                    // of its CSV, without .csv
  const char* question;                // one line for --list
  Table (*run)(const Report& report);  // report: the stages, checked and timed
};

// A ladder's program with experiments: it takes --experiment N and --csv-dir DIR too. They run where all stages are
// right, on a GPU only.
int run_lecture(const std::vector<AnyStage>& stages, const std::vector<Experiment>& experiments, int argc, char** argv);

}  // namespace ladder
