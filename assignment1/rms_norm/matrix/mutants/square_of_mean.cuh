// square_of_mean: the mean squared instead of the mean of the squares.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::square_of_mean {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < cols; i += parts::kBlockSize) sum += row_input[i];  // where the fault begins
  const float mean = block_reduce_sum<parts::kBlockSize>(sum) / static_cast<float>(cols);
  parts::scale_row(row_input, weight, row_output, cols, rsqrtf(mean * mean + eps));  // the fault
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"square_of_mean", "the mean squared, not the mean of the squares", launch,
                                    "elements wrong, first at"};

}  // namespace ladder::matrix::mutants::square_of_mean
