// Measures every shape of kernel that a policy of the header may choose: make tune, which then writes this GPU's
// policy. On the CPU device, which is never timed, every shape is checked instead:   make -C bench/tune BACKEND=cpu run
#include <cstdio>

#include "bench/tune/measurements.h"
#include "common/command_line.h"
#include "common/program.h"
#include "common/report.h"

namespace tune {
namespace {

int check(const ladder::Device& device) {
  std::vector<std::string> refused;
  const int right = check_all(device, refused);
  for (const std::string& refusal : refused) std::printf("refused: %s\n", refusal.c_str());
  std::printf("%zu candidates PASS, %d launches, %zu refused\n", candidates().size(), right, refused.size());
  if (device.cpu) std::printf("the CPU device is never timed: make tune measures on a GPU only\n");
  return refused.empty() ? 0 : 1;
}

void print_list() {
  std::vector<std::vector<std::string>> rows = {
      {"operator", "packs", "vectors", "block", "parts", "kernel_threads", "access", "reads"}};
  for (const Candidate& c : candidates()) {
    rows.push_back({c.adds ? "fused_add_rms_norm" : "forward"});
    for (const int number : {c.shape.packs, c.shape.vectors, c.shape.block, c.shape.parts, c.kernel_threads})
      rows.back().push_back(std::to_string(number));
    rows.back().push_back(access_name(c.shape.access));
    rows.back().push_back(reads_name(c.shape.reads));
  }
  std::printf("%s", ladder::align(rows, 1).c_str());
}

int body(int argc, char** argv) {
  std::string csv_path;
  int samples = 5;
  bool check_only = false, list = false;
  ladder::CommandLine line(
      "Measures the candidates for a policy in include/rms_norm/policies on a GPU, or checks them on the CPU device.",
      "Exit code: 0 all right, 1 a wrong result, an impossible time or a CUDA failure, 2 a bad command line.");
  line.add_flag("--check", check_only, "check every candidate and time none");
  line.add_flag("--list", list, "list the candidates and stop");
  line.add_text("--csv", csv_path, "FILE", "write the measurements to this file");
  line.add_number<int>("--samples", samples, 1, 1000, "a whole number from 1 to 1000, for example 7",
                       "samples of each time, each about two milliseconds of launches");
  line.parse(argc, argv);
  if (list) {
    print_list();
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
}  // namespace tune

int main(int argc, char** argv) {
  return ladder::guarded(argv[0], [&] { return tune::body(argc, argv); });
}
