// syncthreads4: a step is computed as in register0, and the warps of the block wait for each other after it.
#include <cuda_runtime.h>

#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency::syncthreads4 {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  const Law law(table);
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  const Clock clock;
#pragma unroll 18
  for (int step = 0; step < Walk::kSteps; ++step) {
    at = law.next(at);
    __syncthreads();
  }
  clock.stop(at & last, ticks);
  end[threadIdx.x] = at & last;
}

inline const Stage<Walk> stage{"syncthreads4", "a barrier of the block", launch_block<walk_kernel>, {0, one_block}};

}  // namespace ladder::latency::syncthreads4

LADDER_MAIN(ladder::latency::syncthreads4::stage)
