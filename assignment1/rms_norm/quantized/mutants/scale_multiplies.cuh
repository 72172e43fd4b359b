// scale_multiplies: y · scale where the convention is y / scale.
#pragma once

#include "parts.cuh"

namespace ladder::quantized::mutants::scale_multiplies {

struct Body : parts::Right {
  static __device__ float divided(float y, float scale) { return y * scale; }  // the fault: y / scale
};

inline const Mutant<RmsNormQuantized> mutant{"scale_multiplies", "a given scale multiplies", parts::launch<Body>,
                                             "q: "};

}  // namespace ladder::quantized::mutants::scale_multiplies
