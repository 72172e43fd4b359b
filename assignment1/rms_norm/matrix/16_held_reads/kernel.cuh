// 16_held_reads: 09_streaming with the opposite hint on what is read: L2 is asked to keep it longest.
//
// 09 marks what it reads and what it writes alike, so nothing tells L2 which of the two to evict first. Here reads are
// marked evict_last and writes evict_first: as long as L2 holds a line that was written, that line leaves before any
// line of the input (counters: DRAM throughput; written to DRAM; L2 hit rate). The price is paid by other kernels: what
// they left in L2 is evicted before this kernel's input, which may be unneeded. It leaves: a hint for matrices that are
// larger than L2, and 512 threads for every row.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cuda/annotated_ptr>

#include "common/kernel_helpers.cuh"
#include "common/operators/rms_norm.h"

namespace ladder::matrix::held_reads {

constexpr int kBlockSize = 512;
constexpr int kMostVectors = 8;  // float4 that a thread keeps

// A load that asks L2 to evict the line last: in PTX, ld.global.L2::cache_hint with an evict_last policy.
__device__ inline float4 load_held(const float4* from) {
  return *cuda::associate_access_property(from, cuda::access_property::persisting());
}

template <int kVectors>
__global__ void __launch_bounds__(kBlockSize)
    rms_norm_kernel_held_reads(const float* __restrict__ input, const float* __restrict__ weight,
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
    if (i < vec_cols) kept[v] = load_held(vec_input + i);
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
  for (int64_t i = rest; i < vec_cols; i += kBlockSize) sum += sum_of_squares(load_held(vec_input + i));
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
    __stcs(vec_output + i, scaled(load_held(vec_input + i), rstd, w));
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
  auto* kernel = rms_norm_kernel_held_reads<kMostVectors>;
  if (vectors <= 1)
    kernel = rms_norm_kernel_held_reads<1>;
  else if (vectors <= 2)
    kernel = rms_norm_kernel_held_reads<2>;
  else if (vectors <= 4)
    kernel = rms_norm_kernel_held_reads<4>;
  kernel<<<static_cast<unsigned>(rows), kBlockSize, 0, stream>>>(input, weight, output, cols,
                                                                 1.0f / static_cast<float>(cols), eps);
}

inline const Stage<RmsNorm> stage{
    "16_held_reads", "evict-last loads, evict-first stores", launch, {0, RmsNorm::one_block_per_row}};

}  // namespace ladder::matrix::held_reads
