// weight_ignored: normalizes the row and does not multiply by the weight. Without a weight it is right.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::weight_ignored {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  (void)weight;
  parts::scale_row(row_input, nullptr, row_output, cols, parts::row_rstd(row_input, cols, eps));  // the fault
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"weight_ignored", "the weight is never applied", launch, "1 x 1, weight"};

}  // namespace ladder::matrix::mutants::weight_ignored
