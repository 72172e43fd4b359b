// one_rounding: the arithmetic of 07 where that of 06 is promised: one rounding for two. It is nearer to the exact
// result, and it is not the same result, which a model notices that was trained with the other.
#pragma once

#include "parts.cuh"

namespace ladder::serving::mutants::one_rounding {

struct Body {
  template <class scalar_t>
  static __device__ void run(scalar_t* out, const scalar_t* input, int64_t input_stride, const scalar_t* weight,
                             float epsilon, int64_t hidden_size) {
    const scalar_t* row = input + blockIdx.x * input_stride;
    const float scale = parts::row_scale(sum_of_squares(row, hidden_size), hidden_size, epsilon);
    for (int64_t idx = threadIdx.x; idx < hidden_size; idx += blockDim.x)
      out[blockIdx.x * hidden_size + idx] =
          from_float<scalar_t>(to_float(row[idx]) * scale * to_float(weight[idx]));  // the fault
  }
};

inline const Mutant<RmsNormServing> mutant{"one_rounding", "one rounding where two are promised", parts::launch<Body>,
                                           "elements wrong, first at"};

}  // namespace ladder::serving::mutants::one_rounding
