// residual_after_norm: the sum of input and residual is stored after the norm, which lies over the input by then.
#pragma once

#include "parts.cuh"

namespace ladder::serving::mutants::residual_after_norm {

struct Body {
  template <class scalar_t>
  static __device__ void run(scalar_t* input, scalar_t* residual, const scalar_t* weight, float epsilon,
                             int64_t hidden_size) {
    float sum = 0.0f;
    for (int64_t idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
      const float z = to_float(added(input[idx], residual[idx]));
      sum += z * z;
    }
    const float scale = parts::row_scale(sum, hidden_size, epsilon);
    for (int64_t idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
      input[idx] = times_weight(to_float(added(input[idx], residual[idx])) * scale, weight[idx]);
      residual[idx] = added(input[idx], residual[idx]);  // the fault
    }
  }
};

inline const Mutant<FusedAddRmsNorm> mutant{"residual_after_norm",
                                            "the residual is written after the input is overwritten",
                                            parts::launch_fused<Body>, "residual_out: "};

}  // namespace ladder::serving::mutants::residual_after_norm
