// 01_f32: the document's rms_norm_f32_kernel. Everything is float32: a block per row, a thread per element.
//
// The original has exactly as many threads as the row has elements, so it ends at 1024 columns. Here a longer row is
// walked through in steps of the block; the first step is the original's, whose element stays in a register.
// It leaves: loads and stores of 4 bytes per lane (counter: global load requests, four times those of 02), and 4 bytes
// for each element where 2 would do.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/operators/rms_norm_precision.h"

namespace ladder::precision::f32 {

// Every thread gets the sum of its block's values: a warp by shuffles, then every warp adds up the sums of all warps.
__device__ inline float block_reduce_sum_f32(float value) {
  __shared__ float warp_sums[32];
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
  if (lane == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = lane < blockDim.x / 32 ? warp_sums[lane] : 0.0f;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
  return sum;
}

__global__ void rms_norm_f32_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                                    float* __restrict__ y, int64_t cols, float eps) {
  const float* row_x = x + blockIdx.x * cols;
  float* row_y = y + blockIdx.x * cols;
  const unsigned tid = threadIdx.x;

  const float held = tid < cols ? row_x[tid] : 0.0f;
  float sum = held * held;
  for (int64_t col = tid + blockDim.x; col < cols; col += blockDim.x) sum += row_x[col] * row_x[col];
  const float rstd = rsqrtf(block_reduce_sum_f32(sum) / static_cast<float>(cols) + eps);

  const auto write = [&](int64_t col, float value) {
    row_y[col] = weight == nullptr ? value * rstd : value * rstd * weight[col];
  };
  if (tid < cols) write(tid, held);
  for (int64_t col = tid + blockDim.x; col < cols; col += blockDim.x) write(col, row_x[col]);
}

inline void launch(const float* x, const float* weight, float* y, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  const auto threads = static_cast<unsigned>(std::min<int64_t>((cols + 31) / 32 * 32, 1024));
  if (rows > 0) rms_norm_f32_kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(x, weight, y, cols, eps);
}

inline const Stage<RmsNormF32> stage{"01_f32", "all float32, a thread per element", launch, {0, RmsNormF32::refuses}};

}  // namespace ladder::precision::f32
