// low_bits_alone: shuffle1 without the bits above the lane's number.
#pragma once
#include "../walk.cuh"

namespace ladder::latency::mutants::low_bits_alone {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
  const uint32_t word = table[threadIdx.x % 32];
  uint32_t at = start_of_walker(threadIdx.x, apart, last);
  const Clock clock;
  for (int step = 0; step < Walk::kSteps; ++step)
    at = __shfl_sync(0xffffffffu, word, static_cast<int>(at));  // the fault: right for a table of 32 words
  clock.stop(at, ticks);
  end[threadIdx.x] = at;
}

inline const Mutant<Walk> mutant{"low_bits_alone", "the bits above the lane's number are lost",
                                 launch_block<walk_kernel>, "elements wrong"};

}  // namespace ladder::latency::mutants::low_bits_alone
