// 14_dependent_launch: 10_block_shapes, started while the kernel before it in the stream ends.
//
// A short kernel spends little time on memory. Its blocks have to be brought to the SMs, load their arguments and
// compute addresses, and normally this begins only after the last block of the kernel before has ended. With
// programmatic dependent launch all of it, and the loads of the weight, happen while that kernel still runs; only the
// input has to wait. In exchange, that kernel must not write the weight. Needs sm_90. It leaves: only one block works
// on a row.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/cuda_check.h"
#include "common/kernel_helpers.cuh"
#include "common/operators/rms_norm.h"

namespace ladder::matrix::dependent_launch {

constexpr int kMostThreads = 1024;
constexpr int kMostVectors = 8;  // float4 that a thread keeps

// Before this call the kernel must not touch what the kernel before it in the stream writes, nor write what that kernel
// still reads. The call returns when that kernel has ended and its writes are visible.
__device__ inline void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// Once every block has called this, the next kernel's blocks may start where there is room.
__device__ inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// blockDim = (threads per row, rows per block)
template <int kVectors>
__global__ void __launch_bounds__(kMostThreads)
    rms_norm_kernel_dependent_launch(const float* __restrict__ input, const float* __restrict__ weight,
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
    if (const int i = v * threads + tid; kWeightFirst && i < kept_cols) kept_weight[v] = weight_at(i);
  wait_for_previous_kernel();
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int i = v * threads + tid; i < kept_cols) kept[v] = __ldcs(vec_input + i);

  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares(kept[v]);
  for (int64_t i = rest; i < vec_cols; i += threads) sum += sum_of_squares(vec_input[i]);
#pragma unroll 1
  for (int64_t i = 4 * vec_cols + tid; i < cols; i += threads) sum += row_input[i] * row_input[i];
  __shared__ alignas(16) float warp_sums[kMostThreads / 32];
  sum = row_sum(sum, warp_sums);
  let_next_kernel_start();
  const float rstd = rsqrtf(sum * inverse_cols + eps);

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
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.blockDim = dim3(threads, rows_per_block);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  config.gridDim = dim3(static_cast<unsigned>((rows + rows_per_block - 1) / rows_per_block));
  CUDA_CHECK(cudaLaunchKernelEx(&config, rms_norm_kernel_dependent_launch<kVectors>, input, weight, output, rows, cols,
                                1.0f / static_cast<float>(cols), eps));
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  const int64_t vectors = cols / 4;
  const auto run = [&](auto launch_shape, int64_t threads, int rows_per_block) {
    launch_shape(static_cast<int>(threads), rows_per_block, input, weight, output, rows, cols, eps, stream);
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
    "14_dependent_launch", "starts while the kernel before it ends", launch, {90, RmsNorm::one_block_per_row}};

}  // namespace ladder::matrix::dependent_launch
