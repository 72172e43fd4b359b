// first_256_partial_sums: 02_two_kernels in which each thread of the second kernel reads one partial sum, and so no
// block reads more than 256. Right up to 65536 elements.
#pragma once

#include "parts.cuh"

namespace ladder::vector::mutants::first_256_partial_sums {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, const float* partial_sums,
                                int64_t n, float eps) {
  const float sum = parts::sum_of(partial_sums, min(gridDim.x, 256u));  // the fault
  parts::scale(input, weight, output, parts::share_of_block(n), parts::rstd(sum, n, eps));
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(blocks_for(n, parts::kBlockSize), 4096));
  parts::partial_sums_kernel<<<blocks, parts::kBlockSize, 0, stream>>>(input, scratch, n);
  rms_norm_kernel<<<blocks, parts::kBlockSize, 0, stream>>>(input, weight, output, scratch, n, eps);
}

inline const Mutant<RmsNormVector> mutant{"first_256_partial_sums", "no more than 256 partial sums are added up",
                                          launch, "elements wrong, first at"};

}  // namespace ladder::vector::mutants::first_256_partial_sums
