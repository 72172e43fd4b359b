// sum_not_rounded: the norm is that of the exact sum of input and residual, and not of the rounded one that is stored.
#pragma once

#include "parts.cuh"

namespace ladder::serving::mutants::sum_not_rounded {

struct Body {
  template <class scalar_t>
  static __device__ void run(scalar_t* input, scalar_t* residual, const scalar_t* weight, float epsilon,
                             int64_t hidden_size) {
    float sum = 0.0f;
    for (int64_t idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
      const float z = to_float(input[idx]) + to_float(residual[idx]);  // the fault
      sum += z * z;
    }
    const float scale = parts::row_scale(sum, hidden_size, epsilon);
    for (int64_t idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
      const float z = to_float(input[idx]) + to_float(residual[idx]);
      input[idx] = times_weight(z * scale, weight[idx]);
      residual[idx] = from_float<scalar_t>(z);
    }
  }
};

inline const Mutant<FusedAddRmsNorm> mutant{
    "sum_not_rounded", "the norm of a sum that is not rounded as the stored one is", parts::launch_fused<Body>, "y: "};

}  // namespace ladder::serving::mutants::sum_not_rounded
