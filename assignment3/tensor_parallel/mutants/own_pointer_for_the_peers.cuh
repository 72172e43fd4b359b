// own_pointer_for_the_peers: a rank reads its own partial result where it means each peer's.
#pragma once

#include "parts.cuh"

namespace ladder::tensor_parallel::mutants::own_pointer_for_the_peers {

struct Body : parts::RightFlags {
  static __device__ int read_from(const Work& w, int) { return w.rank; }  // the fault: rank
};

inline const Mutant<AllReduceRmsNorm> mutant{"own_pointer_for_the_peers",
                                             "the own partial result takes the place of each peer's",
                                             parts::launch_flags<Body>, "of rank 0"};

}  // namespace ladder::tensor_parallel::mutants::own_pointer_for_the_peers
