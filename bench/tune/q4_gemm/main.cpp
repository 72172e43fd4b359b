// Measures every shape of kernel that a policy of include/q4_gemm may choose: make tune S=q4_gemm, which then writes
// this GPU's policies. On the CPU device, which is never timed, every shape is checked instead:
//   make -C bench/q4_tune BACKEND=cpu run
#include <cstdio>

#include "bench/q4_tune/measurements.h"
#include "bench/tune/program.h"

int main(int argc, char** argv) {
  const auto list = [] {
    for (const q4_tune::Candidate& candidate : q4_tune::candidates()) std::printf("%s\n", candidate.name().c_str());
  };
  const auto measure = [](const ladder::Device& device, int samples) {
    return q4_tune::csv(q4_tune::measure_all(device, samples), device, samples);
  };
  return tune::program({"make tune S=q4_gemm", "include/q4_gemm/policies", q4_tune::candidates().size(), 3, list,
                        q4_tune::check_all, measure},
                       argc, argv);
}
