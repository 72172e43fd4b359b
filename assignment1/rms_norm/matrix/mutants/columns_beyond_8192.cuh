// columns_beyond_8192: 32 elements for each of 256 threads and no loop around them, so a longer row loses its end. This
// limit is easy to write and easy to forget: at 8192 columns the result is right.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::columns_beyond_8192 {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const int64_t reach = 32 * parts::kBlockSize;      // where the fault begins
  const int64_t seen = cols < reach ? cols : reach;  // the fault
  const float sum = block_reduce_sum<parts::kBlockSize>(parts::sum_of_squares(row_input, seen));  // the fault's use
  parts::scale_row(row_input, weight, row_output, seen, rsqrtf(sum / static_cast<float>(cols) + eps));  // the fault
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"columns_beyond_8192", "columns beyond 32 × 256 are dropped", launch,
                                    "never written), first at"};

}  // namespace ladder::matrix::mutants::columns_beyond_8192
