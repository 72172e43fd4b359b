// 11_persistent without its prefetch, or with rows that the blocks draw from a counter.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/matrix/11_persistent/kernel.cuh"
#include "common/kernel_helpers.cuh"
#include "common/launch.h"

namespace ladder::matrix::controls {

// Rows drawn, and blocks that have ended, of the launch that runs: the last block sets both back to 0. So no two
// launches may run at the same time.
__device__ unsigned long long drawn_rows, ended_blocks;

template <bool kPrefetch, bool kDrawn>
__global__ void __launch_bounds__(persistent::kMostThreads)
    rms_norm_kernel_walking(const float* __restrict__ input, const float* __restrict__ weight,
                            float* __restrict__ output, int64_t rows, int64_t cols, float inverse_cols, float eps) {
  constexpr int kVectors = persistent::kVectors;
  __shared__ alignas(16) float warp_sums[2][persistent::kMostThreads / 32];
  __shared__ int64_t drawn[2];  // used in turn, as warp_sums is
  const int tid = threadIdx.x, threads = blockDim.x;
  const int64_t rest = int64_t{kVectors} * threads + tid;
  const auto* vec_weight = reinterpret_cast<const float4*>(weight);
  const auto vec_cols_of = [&](int64_t row) {
    return aligned_for_float4(input + row * cols, weight, output + row * cols) ? cols / 4 : 0;
  };
  const auto weight_at = [&](int64_t i) {
    return weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
  };
  const auto load = [&](int64_t row, float4* vectors) {
    const auto* vec_input = reinterpret_cast<const float4*>(input + row * cols);
    const int64_t vec_cols = vec_cols_of(row);
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (const int i = v * threads + tid; i < vec_cols) vectors[v] = __ldcs(vec_input + i);
  };

  float4 kept[kVectors] = {}, next[kVectors] = {}, kept_weight[kVectors] = {};
  if (aligned_for_float4(weight, nullptr, nullptr))
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (const int i = v * threads + tid; i < cols / 4) kept_weight[v] = weight_at(i);

  if (kPrefetch) load(blockIdx.x, next);
  int turn = 0;
  int64_t row = blockIdx.x, next_row = row + gridDim.x;
  while (row < rows) {
    const float* row_input = input + row * cols;
    float* row_output = output + row * cols;
    const auto* vec_input = reinterpret_cast<const float4*>(row_input);
    auto* vec_output = reinterpret_cast<float4*>(row_output);
    const int64_t vec_cols = vec_cols_of(row);
    if (kPrefetch) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) kept[v] = next[v];
      if (next_row < rows) load(next_row, next);
    } else {
      load(row, kept);
    }
    // The first two rows of each block are dealt out. The row after the next is drawn while the next one is on its way.
    if (kDrawn && tid == 0) drawn[turn] = static_cast<int64_t>(atomicAdd(&drawn_rows, 1ull)) + 2 * gridDim.x;

    float sum = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (v * threads + tid < vec_cols) sum += sum_of_squares(kept[v]);
    for (int64_t i = rest; i < vec_cols; i += threads) sum += sum_of_squares(vec_input[i]);
    for (int64_t i = 4 * vec_cols + tid; i < cols; i += threads) sum += row_input[i] * row_input[i];
    const float rstd = rsqrtf(row_sum(sum, warp_sums[turn]) * inverse_cols + eps);

#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (const int i = v * threads + tid; i < vec_cols) __stcs(vec_output + i, scaled(kept[v], rstd, kept_weight[v]));
    for (int64_t i = rest; i < vec_cols; i += threads)
      __stcs(vec_output + i, scaled(__ldcs(vec_input + i), rstd, weight_at(i)));
    for (int64_t i = 4 * vec_cols + tid; i < cols; i += threads) {
      const float normalized = row_input[i] * rstd;
      row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
    }
    row = next_row;
    next_row = kDrawn ? drawn[turn] : next_row + gridDim.x;
    turn ^= 1;
  }
  if (kDrawn && tid == 0) {
    __threadfence();  // what this block has drawn comes before the end that it reports
    if (atomicAdd(&ended_blocks, 1ull) == gridDim.x - 1) drawn_rows = ended_blocks = 0;
  }
}

template <bool kPrefetch, bool kDrawn>
void launch_walking(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                    cudaStream_t stream) {
  if (rows == 0) return;
  const auto kernel = rms_norm_kernel_walking<kPrefetch, kDrawn>;
  const int64_t wanted = blocks_for(cols / 4, persistent::kVectors);
  const int threads = static_cast<int>(std::clamp<int64_t>(wanted + 127, 128, persistent::kMostThreads) / 128 * 128);
  const auto blocks = static_cast<unsigned>(std::min(rows, resident_blocks(kernel, threads)));
  kernel<<<blocks, static_cast<unsigned>(threads), 0, stream>>>(input, weight, output, rows, cols,
                                                                1.0f / static_cast<float>(cols), eps);
}

}  // namespace ladder::matrix::controls
