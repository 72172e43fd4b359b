// 09_streaming: 08_critical_path with cache hints for what is used once: __ldcs for the input, __stcs for the output.
//
// An element of the input is read once and one of the output is written once, yet each takes a line of L2 from data
// that will be needed again: the weight, or what the next kernel reads. With the hint evict_first they leave first.
// Columns that do not fit into registers get the hint only at their second read (counter: read from DRAM). A second
// change: row_sum works for any number of warps. It leaves: 512 threads for every row, of 256 columns or of 65536.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/operators/rms_norm.h"

namespace ladder::matrix::streaming {

constexpr int kBlockSize = 512;
constexpr int kMostVectors = 8;  // float4 that a thread keeps

template <int kVectors>
__global__ void __launch_bounds__(kBlockSize)
    rms_norm_kernel_streaming(const float* __restrict__ input, const float* __restrict__ weight,
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
    if (i < vec_cols) kept[v] = __ldcs(vec_input + i);
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

  __shared__ alignas(16) float warp_sums[32];
  const float rstd = rsqrtf(row_sum(sum, warp_sums) * inverse_cols + eps);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int i = v * kBlockSize + tid;
    if (i < vec_cols) __stcs(vec_output + i, scaled(kept[v], rstd, kept_weight[v]));
  }
  for (int64_t i = rest; i < vec_cols; i += kBlockSize) {
    const float4 w = weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
    __stcs(vec_output + i, scaled(__ldcs(vec_input + i), rstd, w));
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
  auto* kernel = rms_norm_kernel_streaming<kMostVectors>;
  if (vectors <= 1)
    kernel = rms_norm_kernel_streaming<1>;
  else if (vectors <= 2)
    kernel = rms_norm_kernel_streaming<2>;
  else if (vectors <= 4)
    kernel = rms_norm_kernel_streaming<4>;
  kernel<<<static_cast<unsigned>(rows), kBlockSize, 0, stream>>>(input, weight, output, cols,
                                                                 1.0f / static_cast<float>(cols), eps);
}

inline const Stage<RmsNorm> stage{
    "09_streaming", "evict-first loads and stores of what is used once", launch, {0, RmsNorm::one_block_per_row}};

}  // namespace ladder::matrix::streaming
