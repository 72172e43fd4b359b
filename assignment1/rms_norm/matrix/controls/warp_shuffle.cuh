// 05_warp_shuffle with 09's hint for its stores alone: what is written leaves L2 before the input, which is read twice.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/matrix/05_warp_shuffle/kernel.cuh"

namespace ladder::matrix::controls {

template <int kThreads>
__global__ void rms_norm_kernel_streamed_stores(const float* __restrict__ input, const float* __restrict__ weight,
                                                float* __restrict__ output, int64_t cols, float eps) {
  const int tid = threadIdx.x;
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;

  float sum = 0.0f;
#pragma unroll 8
  for (int64_t i = tid; i < cols; i += kThreads) sum += row_input[i] * row_input[i];

  const float rstd = rsqrtf(warp_shuffle::block_reduce_sum<kThreads>(sum) / static_cast<float>(cols) + eps);
#pragma unroll 8
  for (int64_t i = tid; i < cols; i += kThreads) {
    const float normalized = row_input[i] * rstd;
    __stcs(row_output + i, weight == nullptr ? normalized : normalized * weight[i]);
  }
}

inline void launch_streamed_stores(const float* input, const float* weight, float* output, int64_t rows, int64_t cols,
                                   float eps, cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  rms_norm_kernel_streamed_stores<256>
      <<<static_cast<unsigned>(rows), 256, 0, stream>>>(input, weight, output, cols, eps);
}

}  // namespace ladder::matrix::controls
