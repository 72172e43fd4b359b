// eps_outside_root: 1 / (sqrt(mean) + eps). With inputs of ordinary size the error does not show; with small inputs the
// output is many times too large.
#pragma once

#include "parts.cuh"

namespace ladder::vector::mutants::eps_outside_root {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, const float* partial_sums,
                                int64_t n, float eps) {
  const float sum = parts::sum_of(partial_sums, gridDim.x);
  const float rstd = 1.0f / (sqrtf(sum / static_cast<float>(n)) + eps);  // the fault
  parts::scale(input, weight, output, parts::share_of_block(n), rstd);
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  const unsigned blocks = parts::blocks_of(n);
  parts::partial_sums_kernel<<<blocks, parts::kBlockSize, 0, stream>>>(input, scratch, n);
  rms_norm_kernel<<<blocks, parts::kBlockSize, 0, stream>>>(input, weight, output, scratch, n, eps);
}

inline const Mutant<RmsNormVector> mutant{"eps_outside_root", "eps is added outside the root", launch,
                                          "elements wrong, first at"};

}  // namespace ladder::vector::mutants::eps_outside_root
