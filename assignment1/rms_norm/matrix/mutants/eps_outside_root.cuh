// eps_outside_root: 1 / (sqrt(mean) + eps). With inputs of ordinary size the error does not show; with small inputs the
// output is many times too large.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::eps_outside_root {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const float sum = block_reduce_sum<parts::kBlockSize>(parts::sum_of_squares(row_input, cols));
  const float rstd = 1.0f / (sqrtf(sum / static_cast<float>(cols)) + eps);  // the fault
  parts::scale_row(row_input, weight, row_output, cols, rstd);
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"eps_outside_root", "eps is added outside the root", launch,
                                    "elements wrong, first at"};

}  // namespace ladder::matrix::mutants::eps_outside_root
