// Replays the RMSNorm calls of a decode step and of a prefill of some models: before, after, the production header, the
// header with dependent launch, and as many empty kernels. Checks every result; on a GPU it measures the steps too.
#include <cstdio>

#include "assignment1/rms_norm/inference/experiments/engine.cuh"
#include "assignment1/rms_norm/inference/experiments/replay.cuh"
#include "common/command_line.h"
#include "common/csv_file.h"
#include "common/program.h"

namespace ladder::inference {
namespace {

struct Given {
  ReplayOptions options;
  std::string csv;
};

Given parse_replay(int argc, char** argv) {
  Given given;
  ReplayOptions& options = given.options;
  std::string model = "all", phase = "both", names;
  for (const Model& known : kModels) names += std::string(known.name) + ", ";
  int64_t tokens = built_for_cpu_device() ? 2 : 512;
  bool no_timing = false;
  CommandLine line("Replays the RMSNorm calls of one decode step and of one prefill of a model.",
                   "Exit code: 0 all right, 1 a wrong result or a CUDA failure, 2 a bad command line.");
  line.add_text("--model", model, "NAME", "One of " + names + "or all");
  line.add_text("--phase", phase, "P", "decode, prefill or both");
  line.add_number<int64_t>("--tokens", tokens, 2, 65536, "a whole number from 2 to 65536, for example 512",
                           "Tokens of the prefill");
  line.add_number<uint64_t>("--seed", options.seed, 0, UINT64_MAX, "a whole number from 0 to 2^64 - 1, for example 1",
                            "Seed of the random inputs");
  line.add_number<int>("--iterations", options.iterations, 1, 100000, "a whole number from 1 to 100000, for example 50",
                       "Timed steps (GPU only)");
  line.add_flag("--no-timing", no_timing, "Check only (GPU only: the CPU device is never timed)");
  line.add_text("--csv", given.csv, "FILE", "Also write the table to this file");
  line.parse(argc, argv);
  if (line.was_given("--csv") && given.csv.empty()) throw UsageError("--csv: give the name of a file to write");
  if (model != "all") {
    options.models.clear();
    for (const Model& known : kModels)
      if (model == known.name) options.models = {known};
    if (options.models.empty())
      throw UsageError(text("--model '%s': no such model; give %sor all", model.c_str(), names.c_str()));
  }
  if (phase != "decode" && phase != "prefill" && phase != "both")
    throw UsageError(text("--phase '%s': give decode, prefill or both", phase.c_str()));
  if (phase != "prefill") options.tokens.push_back(1);
  if (phase != "decode") options.tokens.push_back(tokens);
  options.timed = !no_timing;
  return given;
}

int run(int argc, char** argv) {
  return guarded(argv[0], [&] {
    Given given = parse_replay(argc, argv);
    const CsvFile csv(given.csv, "--csv");
    require_device();
    const Device device = current_device();
    given.options.timed &= !device.cpu;
    std::printf("%s\n\n", device.line().c_str());
    std::fflush(stdout);
    Progress progress;
    const Table table = replay_table(given.options, [&](const std::string& what) { progress.show(what); });
    progress.clear();
    std::printf("%s", table.print().c_str());
    if (device.cpu) std::printf("\nThe CPU device is never timed: it has checked every call of the steps.\n");
    csv.write(table.csv(device));
    return 0;
  });
}

}  // namespace
}  // namespace ladder::inference

int main(int argc, char** argv) { return ladder::inference::run(argc, argv); }
