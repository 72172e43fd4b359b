// The right parts of a kernel with one block per row, so that each mutant contains its fault and nothing else.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/operators/rms_norm.h"

namespace ladder::matrix::mutants::parts {

constexpr int kBlockSize = 256;

// This thread's share of a row's sum of squares.
__device__ inline float sum_of_squares(const float* row_input, int64_t cols) {
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < cols; i += kBlockSize) sum += row_input[i] * row_input[i];
  return sum;
}

__device__ inline float row_rstd(const float* row_input, int64_t cols, float eps) {
  return rsqrtf(block_reduce_sum<kBlockSize>(sum_of_squares(row_input, cols)) / static_cast<float>(cols) + eps);
}

__device__ inline float scaled(float x, float rstd, const float* weight, int64_t col) {
  return weight == nullptr ? x * rstd : x * rstd * weight[col];
}

__device__ inline void scale_row(const float* row_input, const float* weight, float* row_output, int64_t cols,
                                 float rstd) {
  for (int64_t i = threadIdx.x; i < cols; i += kBlockSize) row_output[i] = scaled(row_input[i], rstd, weight, i);
}

using Kernel = void (*)(const float*, const float*, float*, int64_t, int64_t, float);

// The parameter has the same name as the kernels, because errors name the kernel as the launch spells it.
template <Kernel rms_norm_kernel>
void one_block_per_row(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                       cudaStream_t stream) {
  if (rows <= 0) return;
  rms_norm_kernel<<<static_cast<unsigned>(rows), kBlockSize, 0, stream>>>(input, weight, output, rows, cols, eps);
}

// A launch with an attribute: clusters, dependent launches, blocks that all run at once.
template <class... Parameters, class... Arguments>
void launch_with(const cudaLaunchAttribute& attribute, int64_t blocks, cudaStream_t stream,
                 void (*rms_norm_kernel)(Parameters...), Arguments... arguments) {
  if (blocks == 0) return;
  cudaLaunchAttribute attributes[] = {attribute};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kBlockSize);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, rms_norm_kernel, arguments...);  // cudaGetLastError returns the error, as after <<<>>>
}

}  // namespace ladder::matrix::mutants::parts
