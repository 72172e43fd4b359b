// first_warp_alone: the table is copied into shared memory by 32 threads, as many as the first warp has, whatever the
// block's size, and there is no barrier after it.
#pragma once
#include "../walk.cuh"

namespace ladder::latency::mutants::first_warp_alone {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  __shared__ uint32_t words[kSharedWords];
  if (threadIdx.x < 32)
    for (uint32_t i = threadIdx.x; i <= last; i += 32) words[i] = table[i];
  uint32_t at = start_of_walker(threadIdx.x, apart, last);  // the fault: no barrier before it
  const Clock clock;
  for (int step = 0; step < Walk::kSteps; ++step) at = words[at & last];
  clock.stop(at & last, ticks);
  end[threadIdx.x] = at;
}

inline const Mutant<Walk> mutant{"first_warp_alone",        "no barrier after the table is copied",
                                 launch_block<walk_kernel>, "elements wrong",
                                 Shows::on_cpu_device,      {{1024, 3, 1}}};

}  // namespace ladder::latency::mutants::first_warp_alone
