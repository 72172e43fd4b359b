// The right parts of kernels with float32 sums of 16-bit elements, so that each mutant contains its fault and little
// else.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/precision/shared.cuh"
#include "common/operators/rms_norm_precision.h"

namespace ladder::precision::mutants::parts {

__device__ inline float wide(__half value) { return __half2float(value); }
__device__ inline float wide(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline void set(__half* at, float value) { *at = __float2half(value); }
__device__ inline void set(__nv_bfloat16* at, float value) { *at = __float2bfloat16(value); }

template <class T>
__device__ float sum_of_squares(const T* row, int64_t first, int64_t cols) {
  float sum = 0.0f;
  for (int64_t col = first + threadIdx.x; col < cols; col += blockDim.x) sum += wide(row[col]) * wide(row[col]);
  return sum;
}

__device__ inline float rstd(float sum, int64_t cols, float eps) {
  return rsqrtf(block_sum(sum) / static_cast<float>(cols) + eps);
}

template <class T>
__device__ void write(const T* row, const T* weight, T* to, int64_t first, int64_t cols, float rstd) {
  for (int64_t col = first + threadIdx.x; col < cols; col += blockDim.x)
    set(to + col, wide(row[col]) * rstd * (weight == nullptr ? 1.0f : wide(weight[col])));
}

// A block per row.
template <class T, class Kernel>
void launch(Kernel kernel, const T* x, const T* weight, T* y, int64_t rows, int64_t cols, float eps,
            cudaStream_t stream) {
  if (rows > 0) kernel<<<static_cast<unsigned>(rows), threads_for(cols), 0, stream>>>(x, weight, y, cols, eps);
}

}  // namespace ladder::precision::mutants::parts
