// no_barrier_between: exchange5 without its barrier: a thread reads a place that its neighbour may not have written.
#pragma once
#include "../walk.cuh"

namespace ladder::latency::mutants::no_barrier_between {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  __shared__ uint32_t places[2][1024];
  const Law law(table);
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  const uint32_t neighbour = (threadIdx.x + 1) % blockDim.x;
  const Clock clock;
  for (int step = 0; step < Walk::kSteps; ++step) {
    places[step % 2][threadIdx.x] = law.next(at);
    at = places[step % 2][neighbour];  // the fault: no barrier before it
  }
  clock.stop(at & last, ticks);
  end[(threadIdx.x + Walk::kSteps) % blockDim.x] = at & last;
}

inline const Mutant<Walk> mutant{"no_barrier_between", "no barrier between the store and the load",
                                 launch_block<walk_kernel>, "elements wrong", Shows::on_cpu_device};

}  // namespace ladder::latency::mutants::no_barrier_between
