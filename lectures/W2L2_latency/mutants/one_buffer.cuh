// one_buffer: exchange5 with one buffer in place of two: a fast thread overwrites what a slow one still has to read.
#pragma once
#include "../walk.cuh"

namespace ladder::latency::mutants::one_buffer {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  __shared__ uint32_t places[1024];
  const Law law(table);
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  const uint32_t neighbour = (threadIdx.x + 1) % blockDim.x;
  const Clock clock;
  for (int step = 0; step < Walk::kSteps; ++step) {
    places[threadIdx.x] = law.next(at);  // the fault: no barrier before it
    __syncthreads();
    at = places[neighbour];
  }
  clock.stop(at & last, ticks);
  end[(threadIdx.x + Walk::kSteps) % blockDim.x] = at & last;
}

inline const Mutant<Walk> mutant{"one_buffer", "one buffer, and one barrier a step", launch_block<walk_kernel>,
                                 "elements wrong", Shows::on_cpu_device};

}  // namespace ladder::latency::mutants::one_buffer
