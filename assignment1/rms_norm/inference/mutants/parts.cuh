// The right parts of the kernels, for any pair of types, so that each mutant contains its fault and little else.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/inference/shared.cuh"
#include "common/operators/rms_norm_inference.h"

namespace ladder::inference::mutants::parts {

constexpr int kBlockDim = 128;

__device__ inline float wide(float value) { return value; }
__device__ inline float wide(__half value) { return __half2float(value); }
__device__ inline void set(float* at, float value) { *at = value; }
__device__ inline void set(__half* at, float value) { *at = __float2half(value); }

template <class T>
__device__ float sum_of_squares(const T* row, int first, int size) {
  float sum = 0.0f;
  for (int i = first + threadIdx.x; i < size; i += kBlockDim) sum += wide(row[i]) * wide(row[i]);
  return sum;
}

__device__ inline float scale_of(float sum, int size, float eps) {
  __shared__ float smem[kBlockDim / 32];
  return rsqrtf(block_reduce_sum<kBlockDim>(sum, smem) / static_cast<float>(size) + eps);
}

template <class T, class W>
__device__ void write(const T* in, const W* wei, T* out, int first, int size, float scale) {
  for (int i = first + threadIdx.x; i < size; i += kBlockDim) set(out + i, scale * wide(in[i]) * wide(wei[i]));
}

// A block for each row.
template <class T, class W, void (*kernel)(const T*, const W*, T*, int, float)>
void launch(const T* in, const W* wei, T* out, int64_t rows, int64_t cols, float eps, cudaStream_t stream) {
  if (rows > 0)
    kernel<<<static_cast<unsigned>(rows), kBlockDim, 0, stream>>>(in, wei, out, static_cast<int>(cols), eps);
}

}  // namespace ladder::inference::mutants::parts
