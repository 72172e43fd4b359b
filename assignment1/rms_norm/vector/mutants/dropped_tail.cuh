// dropped_tail: whole float4 only. The last n % 4 elements are neither added nor written.
#pragma once

#include "parts.cuh"

namespace ladder::vector::mutants::dropped_tail {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, const float* partial_sums,
                                int64_t n, float eps) {
  const float sum = parts::sum_of(partial_sums, gridDim.x);
  parts::scale(input, weight, output, parts::share_of_block(n), parts::rstd(sum, n, eps));
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  const int64_t whole = n / 4 * 4;  // the fault
  const unsigned blocks = parts::blocks_of(n);
  parts::partial_sums_kernel<<<blocks, parts::kBlockSize, 0, stream>>>(input, scratch, whole);
  rms_norm_kernel<<<blocks, parts::kBlockSize, 0, stream>>>(input, weight, output, scratch, whole, eps);
}

inline const Mutant<RmsNormVector> mutant{"dropped_tail", "the last n % 4 elements are dropped", launch,
                                          "never written), first at"};

}  // namespace ladder::vector::mutants::dropped_tail
