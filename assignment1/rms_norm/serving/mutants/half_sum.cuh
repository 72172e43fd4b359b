// half_sum: squares are added up in half where float is promised: rows whose squares add up to more than 65504 become
// 0.
#pragma once

#include "parts.cuh"

namespace ladder::serving::mutants::half_sum {

struct Body {
  template <class scalar_t>
  static __device__ void run(scalar_t* out, const scalar_t* input, int64_t input_stride, const scalar_t* weight,
                             float epsilon, int64_t hidden_size) {
    const scalar_t* row = input + blockIdx.x * input_stride;
    float sum = 0.0f;
    for (int64_t idx = threadIdx.x; idx < hidden_size; idx += blockDim.x)
      sum = to_float(from_float<__half>(sum + to_float(row[idx]) * to_float(row[idx])));  // the fault
    parts::normalize(row, weight, out + blockIdx.x * hidden_size, hidden_size,
                     parts::row_scale(sum, hidden_size, epsilon));
  }
};

inline const Mutant<RmsNormServing> mutant{"half_sum", "sums are half where float is promised", parts::launch<Body>,
                                           "elements wrong, first at"};

}  // namespace ladder::serving::mutants::half_sum
