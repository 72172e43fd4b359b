// global_atomic10: an atomic addition of zero in global memory, on a copy of the table. L2 does the addition (counter:
// atomic requests).
#include <cuda_runtime.h>

#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency::global_atomic10 {

__global__ void walk_kernel(uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  const uint32_t zero = last >> 31;  // the compiler does not know it
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  const Clock clock;
#pragma unroll 18
  for (int step = 0; step < Walk::kSteps; ++step) at = atomicAdd(table + at, zero);
  clock.stop(at, ticks);
  end[threadIdx.x] = at;
}

inline const Stage<Walk> stage{
    "global_atomic10", "an atomic addition in L2", launch_on_copy<walk_kernel>, {0, one_block}};

}  // namespace ladder::latency::global_atomic10

LADDER_MAIN(ladder::latency::global_atomic10::stage)
