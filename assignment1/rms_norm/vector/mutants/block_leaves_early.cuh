// block_leaves_early: 08_cooperative in which blocks without elements return before the barrier. All others wait for
// them for ever.
#pragma once

#include "parts.cuh"

namespace ladder::vector::mutants::block_leaves_early {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, float* partial_sums, int64_t n,
                                float eps) {
  const parts::Share share = parts::share_of_block(n);
  if (share.begin == share.end) return;  // the fault
  const float sum = parts::sum_of_squares(input, share);
  if (threadIdx.x == 0) partial_sums[blockIdx.x] = sum;
  cooperative_groups::this_grid().sync();
  parts::scale(input, weight, output, share, parts::rstd(parts::sum_of(partial_sums, gridDim.x), n, eps));
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  parts::launch_together(4, stream, rms_norm_kernel, input, weight, output, scratch, n, eps);
}

inline const Mutant<RmsNormVector> mutant{"block_leaves_early",
                                          "blocks without elements leave before the barrier over the grid", launch,
                                          "unspecified launch failure", Shows::on_cpu_device};

}  // namespace ladder::vector::mutants::block_leaves_early
