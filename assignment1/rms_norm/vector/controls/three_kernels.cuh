// 02_two_kernels with a kernel of one block in between, which adds up the partial sums once.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/vector/02_two_kernels/kernel.cuh"

namespace ladder::vector::controls {

using two_kernels::kBlockSize;

// The sum takes the place of the first partial sum.
__global__ void add_kernel(float* partial_sums, unsigned count) {
  float sum = 0.0f;
  for (unsigned i = threadIdx.x; i < count; i += kBlockSize) sum += partial_sums[i];
  sum = two_kernels::block_sum(sum);
  if (threadIdx.x == 0) partial_sums[0] = sum;
}

__global__ void scale_by_sum_kernel(const float* __restrict__ input, const float* __restrict__ weight,
                                    float* __restrict__ output, const float* __restrict__ sum, int64_t n, float eps) {
  const float rstd = rsqrtf(*sum / static_cast<float>(n) + eps);
  const int64_t first = int64_t{blockIdx.x} * kBlockSize + threadIdx.x, step = int64_t{gridDim.x} * kBlockSize;
  for (int64_t i = first; i < n; i += step) {
    const float normalized = input[i] * rstd;
    output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

inline void launch_three_kernels(const float* input, const float* weight, float* output, float* scratch, int64_t n,
                                 float eps, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(blocks_for(n, kBlockSize), two_kernels::kMostBlocks));
  two_kernels::partial_sums_kernel<<<blocks, kBlockSize, 0, stream>>>(input, scratch, n);
  add_kernel<<<1, kBlockSize, 0, stream>>>(scratch, blocks);
  scale_by_sum_kernel<<<blocks, kBlockSize, 0, stream>>>(input, weight, output, scratch, n, eps);
}

}  // namespace ladder::vector::controls
