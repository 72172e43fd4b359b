// uncached7: a step is a load that passes L1 (__ldcg: cached in L2 alone). Where the line is, in L2 or in DRAM only,
// depends on the table's size and on who has read it before.
#include <cuda_runtime.h>

#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency::uncached7 {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  const Clock clock;
#pragma unroll 18
  for (int step = 0; step < Walk::kSteps; ++step) at = __ldcg(table + at);
  clock.stop(at, ticks);
  end[threadIdx.x] = at;
}

inline const Stage<Walk> stage{"uncached7", "a load that L2 or DRAM serves", launch_block<walk_kernel>, {0, one_block}};

}  // namespace ladder::latency::uncached7

LADDER_MAIN(ladder::latency::uncached7::stage)
