// 02_two_kernels: the row is added up once, in two steps. One kernel computes a partial sum per block. The next kernel
// adds up the partial sums, which are few, and scales. A kernel begins when the kernel before it in the stream has
// ended, so the end of the first kernel is the barrier that blocks of one launch do not have.
//
// It removes the repeated reading of 01_basic: the row is read once for the sum and once for the scaling (counter:
// global load requests). It leaves: one element per thread makes thousands of blocks and as many partial sums, which
// every block of the second kernel reads; and each thread adds up 256 numbers of shared memory one after the other
// (counter: shared-memory load instructions).
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/launch.h"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::two_kernels {

constexpr int kBlockSize = 256;
constexpr int kMostBlocks = RmsNormVector::kScratch;  // a partial sum each; in longer rows threads have more elements

// Every thread gets the sum of its block's values. Every thread adds all of them up.
__device__ inline float block_sum(float value) {
  __shared__ float values[kBlockSize];
  values[threadIdx.x] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < kBlockSize; ++i) sum += values[i];
  return sum;
}

__global__ void partial_sums_kernel(const float* __restrict__ input, float* __restrict__ partial_sums, int64_t n) {
  const int64_t first = int64_t{blockIdx.x} * kBlockSize + threadIdx.x, step = int64_t{gridDim.x} * kBlockSize;
  float sum = 0.0f;
  for (int64_t i = first; i < n; i += step) sum += input[i] * input[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial_sums[blockIdx.x] = sum;
}

__global__ void scale_kernel(const float* __restrict__ input, const float* __restrict__ weight,
                             float* __restrict__ output, const float* __restrict__ partial_sums, int64_t n, float eps) {
  float sum = 0.0f;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kBlockSize) sum += partial_sums[i];
  const float rstd = rsqrtf(block_sum(sum) / static_cast<float>(n) + eps);

  const int64_t first = int64_t{blockIdx.x} * kBlockSize + threadIdx.x, step = int64_t{gridDim.x} * kBlockSize;
  for (int64_t i = first; i < n; i += step) {
    const float normalized = input[i] * rstd;
    output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(blocks_for(n, kBlockSize), kMostBlocks));
  partial_sums_kernel<<<blocks, kBlockSize, 0, stream>>>(input, scratch, n);
  scale_kernel<<<blocks, kBlockSize, 0, stream>>>(input, weight, output, scratch, n, eps);
}

inline const Stage<RmsNormVector> stage{"02_two_kernels", "partial sums in one kernel, scaling in the next", launch};

}  // namespace ladder::vector::two_kernels
