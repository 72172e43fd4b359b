// block_barrier_for_grid: 08_cooperative with __syncthreads() where the barrier over the grid should be. A block waits
// for its own threads, and reads the partial sums of blocks that have not written them.
#pragma once

#include "parts.cuh"

namespace ladder::vector::mutants::block_barrier_for_grid {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, float* partial_sums, int64_t n,
                                float eps) {
  const parts::Share share = parts::share_of_block(n);
  const float sum = parts::sum_of_squares(input, share);
  if (threadIdx.x == 0) partial_sums[blockIdx.x] = sum;
  __syncthreads();  // the fault
  parts::scale(input, weight, output, share, parts::rstd(parts::sum_of(partial_sums, gridDim.x), n, eps));
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  rms_norm_kernel<<<parts::blocks_of(n), parts::kBlockSize, 0, stream>>>(input, weight, output, scratch, n, eps);
}

inline const Mutant<RmsNormVector> mutant{"block_barrier_for_grid",
                                          "blocks do not wait for each other before they read the partial sums", launch,
                                          "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::vector::mutants::block_barrier_for_grid
