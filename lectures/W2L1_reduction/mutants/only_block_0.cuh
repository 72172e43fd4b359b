// only_block_0: block 0 adds up the sums of all blocks, and waits for none of them.
#pragma once

#include "parts.cuh"

namespace ladder::reduction::mutants::only_block_0 {

__global__ void reduce_kernel(const float* input, float* output, float* sums, int64_t n) {
  const float sum = parts::block_share(input, n);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  if (blockIdx.x > 0) return;
  __syncthreads();  // the fault: a barrier of this block; the others may not have begun
  const float total = parts::sum_of_blocks(sums);
  if (threadIdx.x == 0) *output = total;
}

constexpr Sum::Launch launch = parts::one_launch<reduce_kernel>;

inline const Mutant<Sum> mutant{"only_block_0", "block 0 adds up sums that may not be there yet", launch,
                                "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::reduction::mutants::only_block_0
