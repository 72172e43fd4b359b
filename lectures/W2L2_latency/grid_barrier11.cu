// grid_barrier11: a step is computed as in register0, and all blocks of the grid, one per SM, wait for each other after
// it. A cooperative launch guarantees that they all run.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency::grid_barrier11 {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  const auto grid = cooperative_groups::this_grid();
  const Law law(table);
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  grid.sync();  // the blocks have begun
  const Clock clock;
#pragma unroll 1
  for (int step = 0; step < Walk::kSteps; ++step) {
    at = law.next(at);
    grid.sync();
  }
  clock.stop(at & last, ticks);
  if (blockIdx.x == 0) end[threadIdx.x] = at & last;
}

inline void launch(const uint32_t* table, uint32_t* end, uint32_t*, uint32_t* ticks, int64_t n, int64_t warps,
                   int64_t apart, cudaStream_t stream) {
  cudaLaunchAttribute together = {};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  launch_blocks<walk_kernel>(multiprocessors(), together, table, end, ticks, n, warps, apart, stream);
}

inline const Stage<Walk> stage{"grid_barrier11", "a barrier of the grid", launch, {0, one_block}};

}  // namespace ladder::latency::grid_barrier11

LADDER_MAIN(ladder::latency::grid_barrier11::stage)
