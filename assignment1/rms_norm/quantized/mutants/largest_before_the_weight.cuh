// largest_before_the_weight: the scale is that of x · rstd, which the weight changes.
#pragma once

#include "parts.cuh"

namespace ladder::quantized::mutants::largest_before_the_weight {

struct Body : parts::Right {
  static __device__ float magnitude(float, float kept) { return fabsf(kept); }  // the fault: fabsf(y)
};

inline const Mutant<RmsNormQuantized> mutant{
    "largest_before_the_weight", "the largest number is that before the weight", parts::launch<Body>, "q: "};

}  // namespace ladder::quantized::mutants::largest_before_the_weight
