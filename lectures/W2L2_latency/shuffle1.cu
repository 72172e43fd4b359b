// shuffle1: each lane holds one of the table's first 32 words, and a walker asks the lane that has its next one.
//
// A lane's number has five bits, and so has a position modulo 32: those walk by shuffles alone. The bits above follow
// beside them (a step adds factor times what they stand for), and no shuffle waits for them.
#include <cuda_runtime.h>

#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency::shuffle1 {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  const Law law(table);
  const uint32_t word = table[threadIdx.x % 32];
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  if (word > last) return;  // never, but the words have arrived before the clock starts
  uint32_t low = at;        // modulo 32, the lane to read from
  const Clock clock;
#pragma unroll 18
  for (int step = 0; step < Walk::kSteps; ++step) {
    const uint32_t next = __shfl_sync(0xffffffffu, word, static_cast<int>(low));
    at = next + law.factor * (at - at % 32);
    low = next;
  }
  clock.stop(at & last, ticks);
  end[threadIdx.x] = at & last;
}

inline const Stage<Walk> stage{"shuffle1", "a shuffle", launch_block<walk_kernel>, {0, one_block}};

}  // namespace ladder::latency::shuffle1

LADDER_MAIN(ladder::latency::shuffle1::stage)
