// stride_for_width: rows are taken to begin hidden_size elements apart, although the call says how far apart they are.
// Every test whose rows are contiguous passes.
#pragma once

#include "parts.cuh"

namespace ladder::serving::mutants::stride_for_width {

struct Body {
  template <class scalar_t>
  static __device__ void run(scalar_t* out, const scalar_t* input, int64_t input_stride, const scalar_t* weight,
                             float epsilon, int64_t hidden_size) {
    (void)input_stride;
    const scalar_t* row = input + blockIdx.x * hidden_size;  // the fault
    const float scale = parts::row_scale(sum_of_squares(row, hidden_size), hidden_size, epsilon);
    parts::normalize(row, weight, out + blockIdx.x * hidden_size, hidden_size, scale);
  }
};

inline const Mutant<RmsNormServing> mutant{"stride_for_width", "the width is taken for the stride", parts::launch<Body>,
                                           "elements wrong, first at"};

}  // namespace ladder::serving::mutants::stride_for_width
