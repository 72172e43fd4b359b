// overflow_wraps: int8 without saturation: a given scale that is too small for a number turns its sign.
#pragma once

#include "parts.cuh"

namespace ladder::quantized::mutants::overflow_wraps {

struct Body : parts::Right {
  template <Format format>
  static __device__ uint8_t code(float number) {
    if constexpr (format == Format::int8) return static_cast<uint8_t>(__float2int_rn(number));  // the fault
    return code_of<format>(number);
  }
};

inline const Mutant<RmsNormQuantized> mutant{"overflow_wraps", "a number beyond 127 wraps around", parts::launch<Body>,
                                             "q: "};

}  // namespace ladder::quantized::mutants::overflow_wraps
