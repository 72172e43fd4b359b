// sentinel_that_a_sum_can_be: -0.0 is sent as it is: two of them side by side are the sentinel, and never arrive.
#pragma once

#include "parts.cuh"

namespace ladder::tensor_parallel::mutants::sentinel_that_a_sum_can_be {

struct Body : parts::RightTurn {
  static __device__ uint4 sent(uint4 pack) { return pack; }  // the fault: without_sentinel(pack)
};

inline const Mutant<AllReduceRmsNorm> mutant{"sentinel_that_a_sum_can_be",
                                             "a number that a rank may send is taken for nothing",
                                             parts::launch_turn<Body>, "the kernel"};

}  // namespace ladder::tensor_parallel::mutants::sentinel_that_a_sum_can_be
