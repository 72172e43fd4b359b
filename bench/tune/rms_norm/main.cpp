// Measures every shape of kernel that a policy of the header may choose: make tune, which then writes this GPU's
// policy. On the CPU device, which is never timed, every shape is checked instead:   make -C bench/tune BACKEND=cpu run
#include <cstdio>

#include "bench/tune/measurements.h"
#include "bench/tune/program.h"

namespace tune {
namespace {

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

std::string measure(const ladder::Device& device, int samples) {
  return csv(measure_all(device, samples), device, samples);
}

}  // namespace
}  // namespace tune

int main(int argc, char** argv) {
  return tune::program({"make tune", "include/rms_norm/policies", tune::candidates().size(), 5, tune::print_list,
                        tune::check_all, tune::measure},
                       argc, argv);
}
