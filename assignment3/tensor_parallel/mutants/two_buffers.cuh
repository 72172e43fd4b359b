// two_buffers: two buffers in turn: a peer that is a launch ahead writes where this rank still puts sentinels back.
#pragma once

#include "parts.cuh"

namespace ladder::tensor_parallel::mutants::two_buffers {

struct Body : parts::RightTurn {
  static __device__ uint64_t buffers() { return 2; }  // the fault: 3
  static __device__ void pause(const Work& w) { parts::be_late(w); }
};

inline const Mutant<AllReduceRmsNorm> mutant{"two_buffers",
                                             "sentinels are put back over what a peer has sent for its next launch",
                                             parts::launch_turn<Body>, "in a row"};

}  // namespace ladder::tensor_parallel::mutants::two_buffers
