// cached6: the table lies in global memory, and a step is a load. The block has read the table before, so that L1 holds
// what fits (counter: L1 hit rate).
#include <cuda_runtime.h>

#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency::cached6 {

constexpr uint32_t kRead = 1 << 16;  // words, 256 KiB: as much as an SM has

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  uint32_t sum = 0;
  for (uint32_t i = threadIdx.x; i <= min(last, kRead - 1); i += blockDim.x) sum += table[i];
  if (__syncthreads_or(sum != 0) == 0) return;  // never, but the compiler has to load the words
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  const Clock clock;
#pragma unroll 18
  for (int step = 0; step < Walk::kSteps; ++step) at = table[at];
  clock.stop(at, ticks);
  end[threadIdx.x] = at;
}

inline const Stage<Walk> stage{"cached6", "a load that L1 may serve", launch_block<walk_kernel>, {0, one_block}};

}  // namespace ladder::latency::cached6

LADDER_MAIN(ladder::latency::cached6::stage)
