// wrong_count: the sum is divided by the number of columns rounded up to whole blocks. It is right at 8192 columns.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::wrong_count {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const float sum = block_reduce_sum<parts::kBlockSize>(parts::sum_of_squares(row_input, cols));
  const int64_t count = (cols + parts::kBlockSize - 1) / parts::kBlockSize * parts::kBlockSize;  // the fault
  parts::scale_row(row_input, weight, row_output, cols, rsqrtf(sum / static_cast<float>(count) + eps));
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"wrong_count", "divided by the columns rounded up to the block", launch,
                                    "elements wrong, first at"};

}  // namespace ladder::matrix::mutants::wrong_count
