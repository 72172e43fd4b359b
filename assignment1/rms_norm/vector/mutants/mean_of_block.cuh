// mean_of_block: the sum is divided by the number of elements of a block, as if each block had a row of its own.
#pragma once

#include "parts.cuh"

namespace ladder::vector::mutants::mean_of_block {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, const float* partial_sums,
                                int64_t n, float eps) {
  const parts::Share share = parts::share_of_block(n);
  const float sum = parts::sum_of(partial_sums, gridDim.x);
  const float rstd = parts::rstd(sum, share.end - share.begin, eps);  // the fault
  parts::scale(input, weight, output, share, rstd);
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  const unsigned blocks = parts::blocks_of(n);
  parts::partial_sums_kernel<<<blocks, parts::kBlockSize, 0, stream>>>(input, scratch, n);
  rms_norm_kernel<<<blocks, parts::kBlockSize, 0, stream>>>(input, weight, output, scratch, n, eps);
}

inline const Mutant<RmsNormVector> mutant{"mean_of_block", "the sum is divided by a block's number of elements", launch,
                                          "elements wrong, first at"};

}  // namespace ladder::vector::mutants::mean_of_block
