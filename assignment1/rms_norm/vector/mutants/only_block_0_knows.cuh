// only_block_0_knows: 08_cooperative in which the first block adds up the partial sums after the barrier, and keeps the
// sum in its shared memory. Every other block reads its own shared memory, where its own partial sum stands.
#pragma once

#include "parts.cuh"

namespace ladder::vector::mutants::only_block_0_knows {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, float* partial_sums, int64_t n,
                                float eps) {
  __shared__ float total;
  const parts::Share share = parts::share_of_block(n);
  const float sum = parts::sum_of_squares(input, share);
  if (threadIdx.x == 0) total = partial_sums[blockIdx.x] = sum;
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == 0) {  // the fault: shared memory is that of one block
    const float all = parts::sum_of(partial_sums, gridDim.x);
    if (threadIdx.x == 0) total = all;
  }
  __syncthreads();
  parts::scale(input, weight, output, share, parts::rstd(total, n, eps));
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  parts::launch_together(std::min(parts::blocks_of(n), 4u), stream, rms_norm_kernel, input, weight, output, scratch, n,
                         eps);
}

inline const Mutant<RmsNormVector> mutant{"only_block_0_knows", "only the first block has the sum of all", launch,
                                          "elements wrong, first at"};

}  // namespace ladder::vector::mutants::only_block_0_knows
