// launch12: each step is a launch of its own, and the walkers wait in global memory between two launches. The first one
// writes the time, and the last one how long ago that was.
#include <cuda_runtime.h>

#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency::launch12 {

__global__ void step_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart,
                            int step) {
  const uint64_t now = nanoseconds();
  const uint32_t at = step == 0 ? start_of_walker(threadIdx.x, apart, last) : end[threadIdx.x];
  end[threadIdx.x] = table[at];
  if (threadIdx.x > 0) return;
  if (step == 0) ticks[3] = static_cast<uint32_t>(now);
  if (step == Walk::kSteps - 1) ticks[1] = static_cast<uint32_t>(now) - ticks[3];
}

inline void launch(const uint32_t* table, uint32_t* end, uint32_t*, uint32_t* ticks, int64_t n, int64_t warps,
                   int64_t apart, cudaStream_t stream) {
  const auto last = static_cast<uint32_t>(n - 1);
  for (int step = 0; step < Walk::kSteps; ++step)
    step_kernel<<<1, static_cast<unsigned>(32 * warps), 0, stream>>>(table, end, ticks, last,
                                                                     static_cast<uint32_t>(apart), step);
}

inline const Stage<Walk> stage{"launch12", "a launch", launch, {0, one_block}};

}  // namespace ladder::latency::launch12

LADDER_MAIN(ladder::latency::launch12::stage)
