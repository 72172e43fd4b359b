// 07_registers: 06_vectorized with the row kept in registers between the sum and the scaling. Each element is read
// once.
//
// It removes the second read of 06 (counters: global load requests, half as many for the input; moved from L2 to L1,
// one matrix instead of up to two; L1 hit rate no longer matters). The price is registers: four for each float4 kept.
// It leaves: after the last element has arrived a block does nothing but wait, first for the sum and then for the
// weight (counters: warp cycles per issued instruction; of these, stalled at a barrier).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/operators/rms_norm.h"

namespace ladder::matrix::registers {

constexpr int kBlockSize = 512;
constexpr int kMostVectors = 8;  // float4 that a thread keeps

__device__ inline float sum_of_squares(float4 x) { return x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w; }

__device__ inline float4 scaled(float4 x, float rstd, float4 weight) {
  return make_float4(x.x * rstd * weight.x, x.y * rstd * weight.y, x.z * rstd * weight.z, x.w * rstd * weight.w);
}

// kVectors is known to the compiler, so that `kept` is an array of registers and every loop over it is unrolled.
template <int kVectors>
__global__ void __launch_bounds__(kBlockSize)
    rms_norm_kernel_registers(const float* __restrict__ input, const float* __restrict__ weight,
                              float* __restrict__ output, int64_t cols, float eps) {
  const int tid = threadIdx.x;
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const auto* vec_input = reinterpret_cast<const float4*>(row_input);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight);
  auto* vec_output = reinterpret_cast<float4*>(row_output);
  const int64_t vec_cols = aligned_for_float4(row_input, weight, row_output) ? cols / 4 : 0;
  // Only the largest kernel is used for rows longer than what it keeps. It reads the rest twice.
  const int64_t rest = kVectors == kMostVectors ? kMostVectors * kBlockSize + tid : vec_cols;

  float4 kept[kVectors] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int i = v * kBlockSize + tid;
    if (i < vec_cols) kept[v] = vec_input[i];
  }
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares(kept[v]);
  for (int64_t i = rest; i < vec_cols; i += kBlockSize) sum += sum_of_squares(vec_input[i]);
  for (int64_t i = 4 * vec_cols + tid; i < cols; i += kBlockSize) sum += row_input[i] * row_input[i];

  const float rstd = rsqrtf(block_reduce_sum<kBlockSize>(sum) / static_cast<float>(cols) + eps);
  const float4 ones = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int i = v * kBlockSize + tid;
    if (i < vec_cols) vec_output[i] = scaled(kept[v], rstd, weight == nullptr ? ones : vec_weight[i]);
  }
  for (int64_t i = rest; i < vec_cols; i += kBlockSize)
    vec_output[i] = scaled(vec_input[i], rstd, weight == nullptr ? ones : vec_weight[i]);
  for (int64_t i = 4 * vec_cols + tid; i < cols; i += kBlockSize) {
    const float normalized = row_input[i] * rstd;
    row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 0) return;                                             // a grid of no blocks is a launch error
  const int64_t vectors = (cols / 4 + kBlockSize - 1) / kBlockSize;  // a thread's share of the row
  auto* kernel = rms_norm_kernel_registers<kMostVectors>;
  if (vectors <= 1)
    kernel = rms_norm_kernel_registers<1>;
  else if (vectors <= 2)
    kernel = rms_norm_kernel_registers<2>;
  else if (vectors <= 4)
    kernel = rms_norm_kernel_registers<4>;
  kernel<<<static_cast<unsigned>(rows), kBlockSize, 0, stream>>>(input, weight, output, cols, eps);
}

inline const Stage<RmsNorm> stage{
    "07_registers", "the row stays in registers, read once", launch, {0, RmsNorm::one_block_per_row}};

}  // namespace ladder::matrix::registers
