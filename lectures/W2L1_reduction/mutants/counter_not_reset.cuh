// counter_not_reset: reduction8 with a counter that only grows. The first launch is right; in every launch after it, no
// block is the last one.
#pragma once

#include "parts.cuh"

namespace ladder::reduction::mutants::counter_not_reset {

__device__ unsigned blocks_done;

__global__ void reduce_kernel(const float* input, float* output, float* sums, int64_t n) {
  __shared__ bool is_last;
  const float sum = parts::block_share(input, n);
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = sum;
    __threadfence();
    is_last = atomicAdd(&blocks_done, 1) == gridDim.x - 1;  // the fault: no block sets it back to 0
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  const float total = parts::sum_of_blocks(sums);
  if (threadIdx.x == 0) *output = total;
}

constexpr Sum::Launch launch = parts::one_launch<reduce_kernel>;

inline const Mutant<Sum> mutant{"counter_not_reset", "the counter of finished blocks is not set back", launch,
                                "never written"};

}  // namespace ladder::reduction::mutants::counter_not_reset
