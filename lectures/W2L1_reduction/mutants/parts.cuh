// The right parts of a sum, so that each mutant contains its fault and little else.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/sum.h"
#include "lectures/W2L1_reduction/rounds.h"

namespace ladder::reduction::mutants::parts {

constexpr int kBlockSize = 256;

// Two elements per thread, as in reduction3.
__device__ inline float two_elements(const float* input, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * (2 * kBlockSize) + threadIdx.x;
  return (i < n ? input[i] : 0.0f) + (i + kBlockSize < n ? input[i + kBlockSize] : 0.0f);
}

// Every thread gets the sum of all elements that its block reads, if the grid walks over the input.
__device__ inline float block_share(const float* input, int64_t n) {
  float sum = 0.0f;
  for (int64_t i = int64_t{blockIdx.x} * kBlockSize + threadIdx.x; i < n; i += int64_t{gridDim.x} * kBlockSize)
    sum += input[i];
  return block_reduce_sum<kBlockSize>(sum);
}

// Every thread gets the sum of the blocks' sums.
__device__ inline float sum_of_blocks(const float* sums) {
  float sum = 0.0f;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kBlockSize) sum += sums[i];
  return block_reduce_sum<kBlockSize>(sum);
}

using Round = void (*)(const float*, float*, int64_t);

// The parameter has the same name as the kernels, because errors name the kernel as the launch spells it.
template <Round reduce_kernel, int kElementsPerBlock>
void rounds(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream) {
  in_rounds(input, output, scratch, n, kElementsPerBlock, INT64_MAX,
            [&](unsigned blocks, const float* from, float* to, int64_t count) {
              reduce_kernel<<<blocks, kBlockSize, 0, stream>>>(from, to, count);
            });
}

using OneLaunch = void (*)(const float*, float*, float*, int64_t);

// At most as many blocks as the smallest GPU holds at once.
template <OneLaunch reduce_kernel>
void one_launch(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream) {
  const int64_t blocks = std::clamp<int64_t>(blocks_for(n, kBlockSize), 1, 32);
  reduce_kernel<<<static_cast<unsigned>(blocks), kBlockSize, 0, stream>>>(input, output, scratch, n);
}

}  // namespace ladder::reduction::mutants::parts
