// Experiment 5: model_replay for every model, a decode step and a prefill.
#include "replay.cuh"

#include "experiments.h"

namespace ladder::inference {

Table replay(const Report& report) {
  ReplayOptions options;
  options.tokens = {1, 512};
  options.seed = report.options.seed;
  options.iterations = report.options.iterations;
  options.timed = true;
  Table table = replay_table(options, [](const std::string&) {});
  table.title = "Experiment 5: " + table.title;
  return table;
}

}  // namespace ladder::inference
