// one_launch_less: launch12 with its first launch doing no step.
#pragma once
#include "../walk.cuh"

namespace ladder::latency::mutants::one_launch_less {

__global__ void step_kernel(const uint32_t* table, uint32_t* end, uint32_t last, uint32_t apart, int step) {
  if (step == 0)
    end[threadIdx.x] = start_of_walker(threadIdx.x, apart, last);  // the fault: this is where the walk begins
  else
    end[threadIdx.x] = table[end[threadIdx.x]];
}

inline void launch(const uint32_t* table, uint32_t* end, uint32_t*, uint32_t*, int64_t n, int64_t warps, int64_t apart,
                   cudaStream_t stream) {
  const auto last = static_cast<uint32_t>(n - 1);
  for (int step = 0; step < Walk::kSteps; ++step)
    step_kernel<<<1, static_cast<unsigned>(32 * warps), 0, stream>>>(table, end, last, static_cast<uint32_t>(apart),
                                                                     step);
}

inline const Mutant<Walk> mutant{"one_launch_less", "a launch is spent on the start", launch, "elements wrong"};

}  // namespace ladder::latency::mutants::one_launch_less
