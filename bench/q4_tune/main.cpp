// Measures every shape of kernel that a policy of include/q4_gemm may choose: make tune S=q4_gemm, which then writes
// this GPU's policies. On the CPU device, which is never timed, every shape is checked instead:
//   make -C bench/q4_tune BACKEND=cpu run
#include <cstdio>

#include "bench/q4_tune/measurements.h"
#include "common/command_line.h"
#include "common/program.h"
#include "common/report.h"

namespace q4_tune {
namespace {

int check(const ladder::Device& device) {
  std::vector<std::string> refused;
  const int right = check_all(device, refused);
  for (const std::string& refusal : refused) std::printf("refused: %s\n", refusal.c_str());
  std::printf("%zu candidates PASS, %d launches, %zu refused\n", candidates().size(), right, refused.size());
  if (device.cpu) std::printf("the CPU device is never timed: make tune S=q4_gemm measures on a GPU only\n");
  return refused.empty() ? 0 : 1;
}

int body(int argc, char** argv) {
  std::string csv_path;
  int samples = 3;
  bool check_only = false, list = false;
  ladder::CommandLine line(
      "Measures the candidates for a policy in include/q4_gemm/policies on a GPU, or checks them on the CPU device.",
      "Exit code: 0 all right, 1 a wrong result, an impossible time or a CUDA failure, 2 a bad command line.");
  line.add_flag("--check", check_only, "check every candidate and time none");
  line.add_flag("--list", list, "list the candidates and stop");
  line.add_text("--csv", csv_path, "FILE", "write the measurements to this file");
  line.add_number<int>("--samples", samples, 1, 1000, "a whole number from 1 to 1000, for example 7",
                       "samples of each time, each about two milliseconds of launches");
  line.parse(argc, argv);
  if (list) {
    for (const Candidate& candidate : candidates()) std::printf("%s\n", candidate.name().c_str());
    return 0;
  }
  const ladder::CsvFile file(csv_path);

  ladder::require_device();
  const ladder::Device device = ladder::current_device();
  std::printf("%s\n", device.line().c_str());
  std::fflush(stdout);
  if (check_only || device.cpu) {
    if (!csv_path.empty()) throw ladder::UsageError("--csv: nothing is timed here; leave it out, or run this on a GPU");
    return check(device);
  }
  const std::vector<Measurement> measurements = measure_all(device, samples);
  file.write(csv(measurements, device, samples));
  return 0;
}

}  // namespace
}  // namespace q4_tune

int main(int argc, char** argv) {
  return ladder::guarded(argv[0], [&] { return q4_tune::body(argc, argv); });
}
