// 10_block_shapes: 09_streaming with as many threads per row as its length needs, chosen by the launcher.
//
// A row of 256 columns is 64 float4: with 512 threads, 14 of 16 warps have nothing to load and wait at the barrier all
// the same. Now one warp takes a short row, which needs no barrier, and 8 such rows share a block. A long row gets up
// to 1024 threads, each with fewer float4. That is too many if registers leave room for only one such block (counters:
// registers per thread; block limit). It leaves: between one block's end and the next one's start, neither loads.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/operators/rms_norm.h"

namespace ladder::matrix::block_shapes {

constexpr int kMostThreads = 1024;
constexpr int kMostVectors = 8;  // float4 that a thread keeps

// Every thread gets the sum over its row's threads, which have the same threadIdx.y. A row has one warp, or a block of
// its own with a multiple of 4 warps.
__device__ inline float row_sum(float value) {
  value = warp_reduce_sum(value);
  if (blockDim.x == 32) return value;
  __shared__ alignas(16) float warp_sums[kMostThreads / 32];
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (unsigned warp = 0; warp < blockDim.x / 32; warp += 4) {
    const float4 four = *reinterpret_cast<const float4*>(warp_sums + warp);
    sum += (four.x + four.y) + (four.z + four.w);
  }
  return sum;
}

// blockDim = (threads per row, rows per block)
template <int kVectors>
__global__ void __launch_bounds__(kMostThreads)
    rms_norm_kernel_block_shapes(const float* __restrict__ input, const float* __restrict__ weight,
                                 float* __restrict__ output, int64_t rows, int64_t cols, float inverse_cols,
                                 float eps) {
  const int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= rows) return;  // only whole warps of blocks with several rows return, and these have no barrier
  const int tid = threadIdx.x, threads = blockDim.x;
  const float* row_input = input + row * cols;
  float* row_output = output + row * cols;
  const auto* vec_input = reinterpret_cast<const float4*>(row_input);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight);
  auto* vec_output = reinterpret_cast<float4*>(row_output);
  const int64_t vec_cols = aligned_for_float4(row_input, weight, row_output) ? cols / 4 : 0;
  const int kept_cols = static_cast<int>(vec_cols < kVectors * threads ? vec_cols : kVectors * threads);
  const int64_t rest = kVectors == kMostVectors ? kMostVectors * threads + tid : vec_cols;  // is read twice
  // 1024 threads have 64 registers each: 8 float4 of the row and 8 of the weight do not fit.
  constexpr bool kWeightFirst = kVectors <= 4;
  const auto weight_at = [&](int64_t i) {
    return weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
  };

  float4 kept[kVectors] = {}, kept_weight[kVectors] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int i = v * threads + tid; i < kept_cols) kept[v] = __ldcs(vec_input + i);
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int i = v * threads + tid; kWeightFirst && i < kept_cols) kept_weight[v] = weight_at(i);

  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares(kept[v]);
  for (int64_t i = rest; i < vec_cols; i += threads) sum += sum_of_squares(vec_input[i]);
#pragma unroll 1
  for (int64_t i = 4 * vec_cols + tid; i < cols; i += threads) sum += row_input[i] * row_input[i];
  const float rstd = rsqrtf(row_sum(sum) * inverse_cols + eps);

#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int i = v * threads + tid; i < kept_cols)
      __stcs(vec_output + i, scaled(kept[v], rstd, kWeightFirst ? kept_weight[v] : weight_at(i)));
  for (int64_t i = rest; i < vec_cols; i += threads)
    __stcs(vec_output + i, scaled(__ldcs(vec_input + i), rstd, weight_at(i)));
#pragma unroll 1
  for (int64_t i = 4 * vec_cols + tid; i < cols; i += threads) {
    const float normalized = row_input[i] * rstd;
    row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

template <int kVectors>
void launch_shape(int threads, int rows_per_block, const float* input, const float* weight, float* output, int64_t rows,
                  int64_t cols, float eps, cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  const auto blocks = static_cast<unsigned>((rows + rows_per_block - 1) / rows_per_block);
  rms_norm_kernel_block_shapes<kVectors><<<blocks, dim3(threads, rows_per_block), 0, stream>>>(
      input, weight, output, rows, cols, 1.0f / static_cast<float>(cols), eps);
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  const int64_t vectors = cols / 4;
  const auto run = [&](auto launch_kept, int64_t threads, int rows_per_block) {
    launch_kept(static_cast<int>(threads), rows_per_block, input, weight, output, rows, cols, eps, stream);
  };
  const auto threads = [&](int64_t per_thread) {  // whole groups of 4 warps, so that row_sum reads no gap
    return std::clamp<int64_t>((vectors + per_thread - 1) / per_thread + 127, 128, kMostThreads) / 128 * 128;
  };
  if (vectors <= 32)
    run(launch_shape<1>, 32, 8);
  else if (vectors <= 64)
    run(launch_shape<2>, 32, 8);
  else if (vectors <= 128)
    run(launch_shape<4>, 32, 8);
  else if (vectors <= 2 * kMostThreads)
    run(launch_shape<2>, threads(2), 1);
  else if (vectors <= 4 * kMostThreads)
    run(launch_shape<4>, threads(4), 1);
  else
    run(launch_shape<kMostVectors>, threads(kMostVectors), 1);
}

inline const Stage<RmsNorm> stage{
    "10_block_shapes", "one warp per row or up to 32, by the row's length", launch, {0, RmsNorm::one_block_per_row}};

}  // namespace ladder::matrix::block_shapes
