// largest_with_its_sign: the largest number is looked for without fabsf(), so that a row whose largest number is
// negative saturates.
#pragma once

#include "parts.cuh"

namespace ladder::quantized::mutants::largest_with_its_sign {

struct Body : parts::Right {
  static __device__ float magnitude(float y, float) { return y; }  // the fault: fabsf(y)
};

inline const Mutant<RmsNormQuantized> mutant{"largest_with_its_sign", "the largest y, and not the largest |y|",
                                             parts::launch<Body>, "q: "};

}  // namespace ladder::quantized::mutants::largest_with_its_sign
