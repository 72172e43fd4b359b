// nan_for_zeros: eps is added only to rows that do not need it. For a row of zeros, 0 · 1 / sqrt(0) is NaN. Padding
// makes such rows. A checker that asks "error > tolerance?" accepts NaN.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::nan_for_zeros {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const float sum = block_reduce_sum<parts::kBlockSize>(parts::sum_of_squares(row_input, cols));
  const float mean = sum / static_cast<float>(cols);
  const float rstd = rsqrtf(mean > 0.0f ? mean + eps : mean);  // the fault
  parts::scale_row(row_input, weight, row_output, cols, rstd);
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"nan_for_zeros", "a row of zeros becomes NaN", launch, "got NaN"};

}  // namespace ladder::matrix::mutants::nan_for_zeros
