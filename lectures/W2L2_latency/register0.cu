// register0: a step is computed: one multiply-add, whose result the next one needs. Nothing leaves the registers.
//
// It is what every other step of this lecture contains besides its own unit: an index becomes an address that way.
#include <cuda_runtime.h>

#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency::register0 {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  const Law law(table);
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  const Clock clock;
#pragma unroll 18
  for (int step = 0; step < Walk::kSteps; ++step) at = law.next(at);
  clock.stop(at & last, ticks);
  end[threadIdx.x] = at & last;
}

inline const Stage<Walk> stage{"register0", "a multiply-add", launch_block<walk_kernel>, {0, one_block}};

}  // namespace ladder::latency::register0

LADDER_MAIN(ladder::latency::register0::stage)
