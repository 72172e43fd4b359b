// square_of_mean: the mean squared instead of the mean of the squares.
#pragma once

#include "parts.cuh"

namespace square_of_mean {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < cols; i += parts::kBlockSize) sum += row_input[i];
  const float mean = ladder::block_reduce_sum<parts::kBlockSize>(sum) / static_cast<float>(cols);
  parts::scale_row(row_input, weight, row_output, cols, rsqrtf(mean * mean + eps));  // the fault
}

constexpr ladder::Launch launch = parts::one_block_a_row<rms_norm_kernel>;

}  // namespace square_of_mean
