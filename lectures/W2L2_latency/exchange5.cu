// exchange5: a walker goes to the thread before at each step, by way of shared memory: a store, a barrier, a load. It
// is what a shuffle does within a warp, done for a whole block.
//
// Two buffers in turn, so that one barrier per step is enough: what a slow thread still reads, no fast one overwrites.
#include <cuda_runtime.h>

#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency::exchange5 {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  __shared__ uint32_t places[2][1024];
  const Law law(table);
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  const uint32_t neighbour = (threadIdx.x + 1) % blockDim.x;
  const Clock clock;
#pragma unroll 18
  for (int step = 0; step < Walk::kSteps; ++step) {
    places[step % 2][threadIdx.x] = law.next(at);
    __syncthreads();
    at = places[step % 2][neighbour];
  }
  clock.stop(at & last, ticks);
  end[(threadIdx.x + Walk::kSteps) % blockDim.x] = at & last;
}

inline const Stage<Walk> stage{
    "exchange5", "a store, a barrier and a load in shared memory", launch_block<walk_kernel>, {0, one_block}};

}  // namespace ladder::latency::exchange5

LADDER_MAIN(ladder::latency::exchange5::stage)
