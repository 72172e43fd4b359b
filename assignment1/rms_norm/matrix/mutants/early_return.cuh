// early_return: threads without a column leave before the reduction, in whose shuffles the other lanes of their warp
// wait for them.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::early_return {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  if (threadIdx.x >= cols) return;  // the fault: block_reduce_sum needs every thread of the block
  parts::scale_row(row_input, weight, row_output, cols, parts::row_rstd(row_input, cols, eps));
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"early_return", "threads without a column return before the reduction", launch,
                                    "cudaErrorLaunchFailure", Shows::on_cpu_device};

}  // namespace ladder::matrix::mutants::early_return
