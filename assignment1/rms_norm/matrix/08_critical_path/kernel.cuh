// 08_critical_path: 07_registers with less to wait for between a row's last element and its first output.
//
// 07 does many things one after the other in that time, and three of them can be avoided. The weight does not depend
// on the sum, so its loads are issued before the reduction. The last step of 07's reduction is five shuffles, each
// waiting for the one before; four reads of shared memory as float4, the same address for all lanes, wait only for the
// barrier. And a division by cols is a dozen instructions, where a multiplication by 1/cols is one. The price is
// registers again: four for each float4 of the weight (counters: registers per thread; occupancy). It leaves: caches
// that keep data that no thread will ask for again.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/operators/rms_norm.h"

namespace ladder::matrix::critical_path {

constexpr int kBlockSize = 512;
constexpr int kMostVectors = 8;  // float4 that a thread keeps
constexpr int kWarps = kBlockSize / 32;

// Every thread gets the sum of its block's values. All lanes read the same address, which one access serves: a
// broadcast.
__device__ inline float block_sum(float value) {
  __shared__ alignas(16) float warp_sums[kWarps];
  value = warp_reduce_sum(value);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kWarps; warp += 4) {
    const float4 four = *reinterpret_cast<const float4*>(warp_sums + warp);
    sum += (four.x + four.y) + (four.z + four.w);
  }
  return sum;
}

template <int kVectors>
__global__ void __launch_bounds__(kBlockSize)
    rms_norm_kernel_critical_path(const float* __restrict__ input, const float* __restrict__ weight,
                                  float* __restrict__ output, int64_t cols, float inverse_cols, float eps) {
  const int tid = threadIdx.x;
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const auto* vec_input = reinterpret_cast<const float4*>(row_input);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight);
  auto* vec_output = reinterpret_cast<float4*>(row_output);
  const int64_t vec_cols = aligned_for_float4(row_input, weight, row_output) ? cols / 4 : 0;
  // Only the largest kernel is used for rows longer than what it keeps. It reads the rest twice.
  const int64_t rest = kVectors == kMostVectors ? kMostVectors * kBlockSize + tid : vec_cols;

  float4 kept[kVectors] = {}, kept_weight[kVectors] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int i = v * kBlockSize + tid;
    if (i < vec_cols) kept[v] = vec_input[i];
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int i = v * kBlockSize + tid;
    kept_weight[v] = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    if (weight != nullptr && i < vec_cols) kept_weight[v] = vec_weight[i];
  }
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares(kept[v]);
  for (int64_t i = rest; i < vec_cols; i += kBlockSize) sum += sum_of_squares(vec_input[i]);
  for (int64_t i = 4 * vec_cols + tid; i < cols; i += kBlockSize) sum += row_input[i] * row_input[i];

  const float rstd = rsqrtf(block_sum(sum) * inverse_cols + eps);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int i = v * kBlockSize + tid;
    if (i < vec_cols) vec_output[i] = scaled(kept[v], rstd, kept_weight[v]);
  }
  for (int64_t i = rest; i < vec_cols; i += kBlockSize) {
    const float4 w = weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
    vec_output[i] = scaled(vec_input[i], rstd, w);
  }
  for (int64_t i = 4 * vec_cols + tid; i < cols; i += kBlockSize) {
    const float normalized = row_input[i] * rstd;
    row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  const int64_t vectors = (cols / 4 + kBlockSize - 1) / kBlockSize;
  auto* kernel = rms_norm_kernel_critical_path<kMostVectors>;
  if (vectors <= 1)
    kernel = rms_norm_kernel_critical_path<1>;
  else if (vectors <= 2)
    kernel = rms_norm_kernel_critical_path<2>;
  else if (vectors <= 4)
    kernel = rms_norm_kernel_critical_path<4>;
  kernel<<<static_cast<unsigned>(rows), kBlockSize, 0, stream>>>(input, weight, output, cols,
                                                                 1.0f / static_cast<float>(cols), eps);
}

inline const Stage<RmsNorm> stage{
    "08_critical_path", "the weight first, a shorter reduction, no division", launch, {0, RmsNorm::one_block_per_row}};

}  // namespace ladder::matrix::critical_path
