// scale_of_zeros: without a least scale a row of zeros is divided by 0, and becomes NaN.
#pragma once

#include "parts.cuh"

namespace ladder::quantized::mutants::scale_of_zeros {

struct Body : parts::Right {
  template <Format format>
  static __device__ float scale(const QuantizedCall& c, float most) {
    return c.scale != nullptr ? *c.scale : most / kLargest<format>;  // the fault: fmaxf(…, kLeastScale<format>)
  }
};

inline const Mutant<RmsNormQuantized> mutant{"scale_of_zeros", "a row of zeros has scale 0", parts::launch<Body>,
                                             "q: "};

}  // namespace ladder::quantized::mutants::scale_of_zeros
