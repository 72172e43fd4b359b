// 11_persistent: 10_block_shapes with one row per block at a time, and only as many blocks as fit on the GPU. Each of
// them walks over rows.
// An experiment: it saves something, at a price. No block starts or ends between two rows, the weight is loaded once
// for all rows of a block, and the block asks for the next row before it adds up this one, so memory stays busy. But a
// thread holds the next row as well, and the rows are dealt out before it is known which SMs will be slow, while the
// hardware's scheduler would hand them out as blocks end (counters: registers per thread; active and elapsed cycles;
// DRAM throughput).
// It leaves: a prefetch that costs registers.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/cuda_check.h"
#include "common/kernel_helpers.cuh"
#include "common/operators/rms_norm.h"

namespace ladder::matrix::persistent {

constexpr int kVectors = 2;  // float4 per thread: of this row, of the next and of the weight
constexpr int kMostThreads = 1024;

__global__ void __launch_bounds__(kMostThreads)
    rms_norm_kernel_persistent(const float* __restrict__ input, const float* __restrict__ weight,
                               float* __restrict__ output, int64_t rows, int64_t cols, float inverse_cols, float eps) {
  // Two arrays in turn: a warp that is a row ahead must not write where another still reads. With one barrier per row,
  // no warp can be two rows ahead.
  __shared__ alignas(16) float warp_sums[2][kMostThreads / 32];
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

  load(blockIdx.x, next);
  int turn = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    const float* row_input = input + row * cols;
    float* row_output = output + row * cols;
    const auto* vec_input = reinterpret_cast<const float4*>(row_input);
    auto* vec_output = reinterpret_cast<float4*>(row_output);
    const int64_t vec_cols = vec_cols_of(row);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) kept[v] = next[v];
    if (row + gridDim.x < rows) load(row + gridDim.x, next);

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
  }
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 0) return;
  const int64_t wanted = (cols / 4 + kVectors - 1) / kVectors;
  const int threads = static_cast<int>(std::clamp<int64_t>(wanted + 127, 128, kMostThreads) / 128 * 128);
  int device = 0, multiprocessors = 0, blocks = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, rms_norm_kernel_persistent, threads, 0));
  blocks = static_cast<int>(std::min<int64_t>(rows, int64_t{blocks} * multiprocessors));
  rms_norm_kernel_persistent<<<blocks, threads, 0, stream>>>(input, weight, output, rows, cols,
                                                             1.0f / static_cast<float>(cols), eps);
}

inline const Stage<RmsNorm> stage{"11_persistent", "as many blocks as fit, the next row prefetched", launch};

}  // namespace ladder::matrix::persistent
