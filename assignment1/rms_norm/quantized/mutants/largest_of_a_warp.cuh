// largest_of_a_warp: the warps do not exchange their largest numbers.
#pragma once

#include "parts.cuh"

namespace ladder::quantized::mutants::largest_of_a_warp {

struct Body : parts::Right {
  static __device__ float largest(float value, float*) { return warp_reduce_max(value); }  // the fault: of the block
};

inline const Mutant<RmsNormQuantized> mutant{"largest_of_a_warp", "each warp has a largest number of its own",
                                             parts::launch<Body>, "q: "};

}  // namespace ladder::quantized::mutants::largest_of_a_warp
