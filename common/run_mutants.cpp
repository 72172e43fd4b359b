// The program of a ladder's mutants.
#include <cstdio>
#include <string>

#include "common/memory_check.h"
#include "common/program.h"
#include "common/report.h"
#include "common/text.h"

namespace ladder {
namespace {

const char* shown_on(Shows shows) {
  return shows == Shows::anywhere ? "any" : shows == Shows::on_cpu_device ? "cpu" : "sm_90";
}

}  // namespace

int run_mutants(const std::vector<AnyMutant>& mutants, int argc, char** argv) {
  return guarded(argv[0], [&] {
    const Options options = parse_mutant_options(argc, argv);
    if (options.list) {
      std::vector<std::vector<std::string>> rows = {{"name", "device", "rejection says", "fault"}};
      for (const AnyMutant& mutant : mutants)
        rows.push_back({mutant.stage.name, shown_on(mutant.shows), mutant.expect, mutant.stage.summary});
      std::printf("%s", align(rows, 4).c_str());
      return 0;
    }
    for (const AnyMutant& mutant : mutants) {
      if (options.mutant != mutant.stage.name) continue;
      const Operator& op = *mutant.stage.op;
      require_device(most_devices(op, op.edge_cases(true).front()));
      const Device device = current_device();
      if (mutant.shows == Shows::on_cpu_device && !device.cpu) {
        std::printf("skipped: only the CPU device shows this fault reliably\n");
        return 77;
      }
      if (mutant.shows == Shows::on_hopper && (device.cpu || device.compute_capability < 90)) {
        std::printf("skipped: only a GPU of compute capability 9.0 or newer shows this fault\n");
        return 77;
      }
      Outcome outcome;
      try {
        if (mutant.shape[0] > 0) {
          require_memory(*mutant.stage.op, mutant.shape, device, false);
          Progress progress;
          outcome = check_shape(mutant.stage, mutant.shape, options.seed, device.cpu,
                                [&](const std::string& what) { progress.show(mutant.stage.name + (": " + what)); });
        } else {
          outcome = EdgeCases(*mutant.stage.op, device.cpu, options.seed).check(mutant.stage);
        }
      } catch (const UsageError& error) {
        std::printf("skipped: %s\n", error.what());
        return 77;
      }
      if (outcome.failure.empty()) {
        std::printf("passed: the checks do not see that %s\n", mutant.stage.summary);
        return 0;
      }
      std::printf("rejected: %s\n", outcome.failure.c_str());
      return 1;
    }
    throw UsageError("--mutant " + options.mutant + ": no such mutant; give a name that --list shows");
  });
}

}  // namespace ladder
