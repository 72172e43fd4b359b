// weight_of_another_type: a weight of half or bfloat16 is read as the other of the two. Both have 2 bytes, so no
// address is wrong.
#pragma once

#include "parts.cuh"

namespace ladder::serving::mutants::weight_of_another_type {

struct Body {
  template <class scalar_t>
  static __device__ void run(scalar_t* out, const scalar_t* input, int64_t input_stride, const scalar_t* weight,
                             float epsilon, int64_t hidden_size) {
    using Other = std::conditional_t<std::is_same_v<scalar_t, __half>, __nv_bfloat16, __half>;
    const scalar_t* row = input + blockIdx.x * input_stride;
    const float scale = parts::row_scale(sum_of_squares(row, hidden_size), hidden_size, epsilon);
    for (int64_t idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
      const float factor = to_float(reinterpret_cast<const Other*>(weight)[idx]);  // the fault
      out[blockIdx.x * hidden_size + idx] = times_weight(to_float(row[idx]) * scale, from_float<scalar_t>(factor));
    }
  }
};

inline const Mutant<RmsNormServing> mutant{"weight_of_another_type", "a weight of half is read as bfloat16",
                                           parts::launch<Body>, "elements wrong, first at"};

}  // namespace ladder::serving::mutants::weight_of_another_type
