// 03_reduction5: 32 elements per thread and a tree in shared memory, in both kernels; after the lecture reduction5.
//
// It removes two defects of 02_two_kernels. A block covers 8192 elements instead of 256, so there are 128 partial sums
// for 2^20 elements instead of 4096. And the tree adds 256 numbers in eight steps instead of 255 (counter:
// shared-memory load instructions).
// It leaves: 9 block barriers in each kernel, most of them while most threads have nothing left to add (counter:
// stalled at a barrier), and one load instruction for every 4 bytes that a thread reads.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/launch.h"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::reduction5 {

constexpr int kBlockSize = 256;
constexpr int kElementsPerThread = 32;
constexpr int64_t kChunk = kBlockSize * kElementsPerThread;
constexpr int kMostBlocks = 1024;  // in rows of more than 2^23 elements a block has several chunks

// Every thread gets the sum of its block's values. The lower half adds the upper half, so active threads and the banks
// that they use stay contiguous.
__device__ inline float block_sum(float value) {
  __shared__ float sdata[kBlockSize];
  const int tid = threadIdx.x;
  sdata[tid] = value;
  __syncthreads();
  for (int s = kBlockSize / 2; s > 0; s /= 2) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  return sdata[0];
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

inline const Stage<RmsNormVector> stage{"03_reduction5", "32 elements per thread, a tree in shared memory", launch};

}  // namespace ladder::vector::reduction5
