// truncated: a number becomes the code nearer to zero, as a cast does.
#pragma once

#include "parts.cuh"

namespace ladder::quantized::mutants::truncated {

struct Body : parts::Right {
  template <Format format>
  static __device__ uint8_t code(float number) {
    if constexpr (format == Format::int8) return static_cast<uint8_t>(static_cast<int>(number));  // the fault
    // The last bit that e4m3 keeps of a normal number is bit 20 of a float.
    return code_of<format>(__uint_as_float(__float_as_uint(number) & 0xfff00000u));
  }
};

inline const Mutant<RmsNormQuantized> mutant{"truncated", "digits are cut off, not rounded", parts::launch<Body>,
                                             "q: "};

}  // namespace ladder::quantized::mutants::truncated
