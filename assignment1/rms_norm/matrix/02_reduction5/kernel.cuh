// 02_reduction5: one block per row, 32 elements per thread, a tree in shared memory; after the lecture reduction5.
//
// It removes both defects of 01_basic: neighbouring lanes now read neighbouring elements (sectors per request: 4), and
// 8192 rows make 2,097,152 threads. Sequential addressing keeps the tree free of bank conflicts.
// It leaves: 9 block barriers per row, most of them while most threads have nothing left to add (counter: stalled at a
// barrier), and one load instruction for every 4 bytes that a thread reads (counter: global load requests).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/rms_norm.h"

namespace ladder::matrix::reduction5 {

constexpr int kBlockSize = 256;
constexpr int kElementsPerThread = 32;
constexpr int64_t kChunk = kBlockSize * kElementsPerThread;  // 8192 columns

__global__ void rms_norm_kernel_w2l3_reduction(const float* __restrict__ input, const float* __restrict__ weight,
                                               float* __restrict__ output, int64_t cols, float eps) {
  __shared__ float sdata[kBlockSize];
  const int tid = threadIdx.x;
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;

  // 1. Each thread sums its elements, a block's width apart. The outer loop allows rows longer than a chunk.
  float sum = 0.0f;
  for (int64_t chunk = 0; chunk < cols; chunk += kChunk) {
#pragma unroll 8
    for (int j = 0; j < kElementsPerThread; ++j) {
      const int64_t i = chunk + j * kBlockSize + tid;
      if (i < cols) sum += row_input[i] * row_input[i];
    }
  }
  sdata[tid] = sum;
  __syncthreads();

  // 2. The tree: the lower half adds the upper half, so active threads and the banks they use stay contiguous.
  for (int s = kBlockSize / 2; s > 0; s /= 2) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }

  // 3. The row is read a second time, from a cache if it is still there, and scaled.
  const float rstd = rsqrtf(sdata[0] / static_cast<float>(cols) + eps);
#pragma unroll 8
  for (int64_t i = tid; i < cols; i += kBlockSize) {
    const float normalized = row_input[i] * rstd;
    row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  rms_norm_kernel_w2l3_reduction<<<static_cast<unsigned>(rows), kBlockSize, 0, stream>>>(input, weight, output, cols,
                                                                                         eps);
}

inline const Stage<RmsNorm> stage{"02_reduction5",
                                  "one block per row, 32 elements per thread, shared-memory tree",
                                  launch,
                                  {0, RmsNorm::one_block_per_row}};

}  // namespace ladder::matrix::reduction5
