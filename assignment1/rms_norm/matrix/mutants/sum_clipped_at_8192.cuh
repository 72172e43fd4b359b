// sum_clipped_at_8192: like columns_beyond_8192, but every column is written. Only the sum stops early, so the output
// looks complete and is too large: by a factor of sqrt(2) at 16384 columns.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::sum_clipped_at_8192 {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const int64_t reach = 32 * parts::kBlockSize;
  const int64_t seen = cols < reach ? cols : reach;  // the fault
  const float sum = block_reduce_sum<parts::kBlockSize>(parts::sum_of_squares(row_input, seen));
  parts::scale_row(row_input, weight, row_output, cols, rsqrtf(sum / static_cast<float>(cols) + eps));
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"sum_clipped_at_8192", "the sum stops after 32 × 256 columns", launch,
                                    "elements wrong, first at"};

}  // namespace ladder::matrix::mutants::sum_clipped_at_8192
