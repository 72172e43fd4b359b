// 11_dependent_launch: 09_registers, started while the kernel before it in the stream ends.
//
// It removes the beginning of the kernel from the time between two launches: blocks are brought to the SMs, addresses
// are computed and the weight is loaded while the kernel before still runs. The input has to wait, and so has the
// scratch memory, which that kernel may use too. In exchange, that kernel must not write the weight. Needs sm_90.
// It leaves: after the wait come a trip to memory for the row, the barrier over the grid, and a trip for the sums.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/vector/shared.cuh"
#include "common/cuda_check.h"
#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::dependent_launch {

constexpr int kMostThreads = 1024;
constexpr int kMostBlocks = 128;
constexpr int kVectors = 4;  // float4 that a thread keeps

// Before this call the kernel must not touch what the kernel before it in the stream writes, nor write what that kernel
// still uses. The call returns when that kernel has ended and its writes are visible.
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

// `input` is not __restrict__: otherwise the compiler may take it for memory never written, and load it before the
// wait.
__global__ void __launch_bounds__(kMostThreads)
    rms_norm_kernel_dependent_launch(const float* input, const float* __restrict__ weight, float* __restrict__ output,
                                     float* partial_sums, VectorPart part, float inverse_n, float eps) {
  __shared__ alignas(16) float warp_sums[2][kMostThreads / 32];
  const auto* vec_input = reinterpret_cast<const float4*>(input + part.head);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight + part.head);
  auto* vec_output = reinterpret_cast<float4*>(output + part.head);
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, step = int64_t{gridDim.x} * blockDim.x;
  const auto weight_at = [&](int64_t i) {
    return weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
  };

  float4 kept[kVectors] = {}, kept_weight[kVectors] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) kept_weight[v] = weight_at(i);
  wait_for_previous_kernel();
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) kept[v] = vec_input[i];

  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares(kept[v]);
#pragma unroll 2
  for (int64_t i = first + kVectors * step; i < part.count; i += step) sum += sum_of_squares(vec_input[i]);
  for (int64_t i = first; i < part.rest; i += step) sum += input[part.outside(i)] * input[part.outside(i)];
  sum = row_sum(sum, warp_sums[0]);
  if (threadIdx.x == 0) partial_sums[blockIdx.x] = sum;

  cooperative_groups::this_grid().sync();
  sum = row_sum(threadIdx.x < gridDim.x ? partial_sums[threadIdx.x] : 0.0f, warp_sums[1]);
  let_next_kernel_start();
  const float rstd = rsqrtf(sum * inverse_n + eps);

#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) vec_output[i] = scaled(kept[v], rstd, kept_weight[v]);
#pragma unroll 2
  for (int64_t i = first + kVectors * step; i < part.count; i += step)
    vec_output[i] = scaled(vec_input[i], rstd, weight_at(i));
  for (int64_t i = first; i < part.rest; i += step) {
    const float normalized = input[part.outside(i)] * rstd;
    output[part.outside(i)] = weight == nullptr ? normalized : normalized * weight[part.outside(i)];
  }
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  const VectorPart part = vector_part(input, weight, output, n);
  const int blocks = std::min(multiprocessors(), kMostBlocks);
  // As many threads as keep the row, in whole groups of 4 warps, so that row_sum reads no gap; at least one for each
  // partial sum.
  const int64_t threads = std::clamp<int64_t>(blocks_for(part.count, kVectors * blocks) + 127, 128, kMostThreads);
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeCooperative;
  attributes[0].val.cooperative = 1;
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads / 128 * 128));
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  CUDA_CHECK(cudaLaunchKernelEx(&config, rms_norm_kernel_dependent_launch, input, weight, output, scratch, part,
                                1.0f / static_cast<float>(n), eps));
}

inline const Stage<RmsNormVector> stage{"11_dependent_launch", "starts while the kernel before it ends", launch, {90}};

}  // namespace ladder::vector::dependent_launch
