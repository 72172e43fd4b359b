// The program of make tune and of make tune S=q4_gemm: its options, and what it does with a GPU and without one.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/program.h"
#include "common/report.h"
#include "common/text.h"

namespace tune {

struct Job {
  const char *command, *policies;  // "make tune", and the folder of what it writes
  size_t candidates;
  int samples;  // of each time, where nothing else is asked for
  void (*list)();
  int (*check)(const ladder::Device&, std::vector<std::string>& refused);
  std::string (*measure)(const ladder::Device&, int samples);  // a CSV
};

inline int check(const Job& job, const ladder::Device& device) {
  std::vector<std::string> refused;
  const int right = job.check(device, refused);
  for (const std::string& refusal : refused) std::printf("refused: %s\n", refusal.c_str());
  std::printf("%zu candidates PASS, %d launches, %zu refused\n", job.candidates, right, refused.size());
  if (device.cpu) std::printf("the CPU device is never timed: %s measures on a GPU only\n", job.command);
  return refused.empty() ? 0 : 1;
}

inline int start(const Job& job, int argc, char** argv) {
  std::string csv_path;
  int samples = job.samples;
  bool check_only = false, list = false;
  ladder::CommandLine line(
      ladder::text("Measures the candidates for a policy in %s on a GPU, or checks them on the CPU device.",
                   job.policies),
      "Exit code: 0 all right, 1 a wrong result, an impossible time or a CUDA failure, 2 a bad command line.");
  line.add_flag("--check", check_only, "check every candidate and time none");
  line.add_flag("--list", list, "list the candidates and stop");
  line.add_text("--csv", csv_path, "FILE", "write the measurements to this file");
  line.add_number<int>("--samples", samples, 1, 1000, "a whole number from 1 to 1000, for example 7",
                       "samples of each time, each about two milliseconds of launches");
  line.parse(argc, argv);
  if (list) {
    job.list();
    return 0;
  }
  const ladder::CsvFile file(csv_path);

  ladder::require_device();
  const ladder::Device device = ladder::current_device();
  std::printf("%s\n", device.line().c_str());
  std::fflush(stdout);
  if (check_only || device.cpu) {
    if (!csv_path.empty()) throw ladder::UsageError("--csv: nothing is timed here; leave it out, or run this on a GPU");
    return check(job, device);
  }
  file.write(job.measure(device, samples));
  return 0;
}

inline int program(const Job& job, int argc, char** argv) {
  return ladder::guarded(argv[0], [&] { return start(job, argc, argv); });
}

}  // namespace tune
