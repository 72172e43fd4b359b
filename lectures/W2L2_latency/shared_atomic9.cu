// shared_atomic9: shared2 with an atomic addition of zero in place of each load: it returns the word, too.
#include <cuda_runtime.h>

#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency::shared_atomic9 {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  __shared__ uint32_t words[kSharedWords];
  for (uint32_t i = threadIdx.x; i <= last; i += blockDim.x) words[i] = table[i];
  __syncthreads();
  const uint32_t zero = last >> 31;  // the compiler does not know it
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  const Clock clock;
#pragma unroll 18
  for (int step = 0; step < Walk::kSteps; ++step) at = atomicAdd(words + at, zero);
  clock.stop(at, ticks);
  end[threadIdx.x] = at;
}

inline const Stage<Walk> stage{
    "shared_atomic9", "an atomic addition in shared memory", launch_block<walk_kernel>, {0, in_shared}};

}  // namespace ladder::latency::shared_atomic9

LADDER_MAIN(ladder::latency::shared_atomic9::stage)
