// 05_warp_shuffle: a block's sum goes through registers, with one float per warp in shared memory.
//
// It removes the tree of 03_reduction5 and 04_hybrid from both kernels: a shuffle hands a register to another lane, so
// a warp adds its 32 values in five steps without memory and without a barrier. One barrier is left in each kernel (9
// in 03, 4 in 04). Loads and stores are 03's again, 4 bytes per lane: against 03 one thing changes.
// It leaves: four times the load and store instructions that the same bytes need (counter: global load requests).
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/launch.h"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::warp_shuffle {

constexpr int kBlockSize = 256;
constexpr int kWarps = kBlockSize / 32;
constexpr int kElementsPerThread = 32;
constexpr int64_t kChunk = kBlockSize * kElementsPerThread;
constexpr int kMostBlocks = 1024;  // in rows of more than 2^23 elements a block has several chunks

__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
  return value;
}

// Every thread gets the sum of its block's values. Each warp adds the 8 sums for itself.
__device__ inline float block_sum(float value) {
  __shared__ float warp_sums[kWarps];
  const int lane = threadIdx.x % 32;
  value = warp_sum(value);
  if (lane == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  return warp_sum(lane < kWarps ? warp_sums[lane] : 0.0f);
}

__global__ void partial_sums_kernel(const float* __restrict__ input, float* __restrict__ partial_sums, int64_t n) {
  float sum = 0.0f;
  for (int64_t chunk = blockIdx.x * kChunk; chunk < n; chunk += gridDim.x * kChunk) {
#pragma unroll 8
    for (int j = 0; j < kElementsPerThread; ++j) {
      const int64_t i = chunk + j * kBlockSize + threadIdx.x;
      if (i < n) sum += input[i] * input[i];
    }
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial_sums[blockIdx.x] = sum;
}

__global__ void scale_kernel(const float* __restrict__ input, const float* __restrict__ weight,
                             float* __restrict__ output, const float* __restrict__ partial_sums, int64_t n, float eps) {
  float sum = 0.0f;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kBlockSize) sum += partial_sums[i];
  const float rstd = rsqrtf(block_sum(sum) / static_cast<float>(n) + eps);

  for (int64_t chunk = blockIdx.x * kChunk; chunk < n; chunk += gridDim.x * kChunk) {
#pragma unroll 8
    for (int j = 0; j < kElementsPerThread; ++j) {
      const int64_t i = chunk + j * kBlockSize + threadIdx.x;
      if (i >= n) break;
      const float normalized = input[i] * rstd;
      output[i] = weight == nullptr ? normalized : normalized * weight[i];
    }
  }
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(blocks_for(n, kChunk), kMostBlocks));
  partial_sums_kernel<<<blocks, kBlockSize, 0, stream>>>(input, scratch, n);
  scale_kernel<<<blocks, kBlockSize, 0, stream>>>(input, weight, output, scratch, n, eps);
}

inline const Stage<RmsNormVector> stage{"05_warp_shuffle", "warp shuffles, one barrier per kernel", launch};

}  // namespace ladder::vector::warp_shuffle
