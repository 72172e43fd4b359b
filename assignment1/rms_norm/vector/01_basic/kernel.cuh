// 01_basic: many blocks share the row, and each of them adds up the whole row for itself.
//
// Blocks of one launch cannot wait for each other, so the simplest way to let every block know the sum is to let every
// block compute it. It leaves: with b blocks the row is read b times for the sum (counters: global load requests; moved
// from L2 to L1).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::basic {

constexpr int kBlockSize = 256;
constexpr int64_t kPerBlock = 8192;  // elements that a block scales: 128 blocks for 2^20

// Every thread gets the sum of its block's values. Every thread adds all of them up.
__device__ inline float block_sum(float value) {
  __shared__ float values[kBlockSize];
  values[threadIdx.x] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < kBlockSize; ++i) sum += values[i];
  return sum;
}

__global__ void rms_norm_kernel_basic(const float* __restrict__ input, const float* __restrict__ weight,
                                      float* __restrict__ output, int64_t n, float eps) {
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < n; i += kBlockSize) sum += input[i] * input[i];
  const float rstd = rsqrtf(block_sum(sum) / static_cast<float>(n) + eps);

  const int64_t begin = blockIdx.x * kPerBlock, end = begin + kPerBlock < n ? begin + kPerBlock : n;
  for (int64_t i = begin + threadIdx.x; i < end; i += kBlockSize) {
    const float normalized = input[i] * rstd;
    output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

inline void launch(const float* input, const float* weight, float* output, float*, int64_t n, float eps,
                   cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, kPerBlock));
  rms_norm_kernel_basic<<<blocks, kBlockSize, 0, stream>>>(input, weight, output, n, eps);
}

// Each block reads n elements, so the time grows with the square of n.
inline const char* too_long(const Shape& shape) {
  return shape[0] > int64_t{1} << 24 ? "every block would read the whole row; give at most 2^24 elements" : nullptr;
}

inline const Stage<RmsNormVector> stage{"01_basic", "every block adds up the whole row", launch, {0, too_long}};

}  // namespace ladder::vector::basic
