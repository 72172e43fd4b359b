// shared2: the table lies in shared memory, and a step is a load from it.
//
// Walkers that start `apart` words from each other stay apart: after any number of steps their words differ by `apart`
// times the same odd number. With 1 the lanes of a warp are in 32 different banks, with 2 two of them meet in each,
// with 32 all are in one; with 0 they are on the same word, which one access serves (counter: wavefronts per request).
#include <cuda_runtime.h>

#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency::shared2 {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  __shared__ uint32_t words[kSharedWords];
  for (uint32_t i = threadIdx.x; i <= last; i += blockDim.x) words[i] = table[i];
  __syncthreads();
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  const Clock clock;
#pragma unroll 18
  for (int step = 0; step < Walk::kSteps; ++step) at = words[at];
  clock.stop(at, ticks);
  end[threadIdx.x] = at;
}

inline const Stage<Walk> stage{"shared2", "a load from shared memory", launch_block<walk_kernel>, {0, in_shared}};

}  // namespace ladder::latency::shared2

LADDER_MAIN(ladder::latency::shared2::stage)
