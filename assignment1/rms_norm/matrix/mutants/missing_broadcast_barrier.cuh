// missing_broadcast_barrier: thread 0 puts the result into shared memory, and the other threads do not wait for it. The
// result is right if thread 0 happens to come first.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::missing_broadcast_barrier {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  __shared__ float rstd;
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;

  const float value = parts::row_rstd(row_input, cols, eps);
  if (threadIdx.x == 0) rstd = value;  // the fault: no __syncthreads() after it
  parts::scale_row(row_input, weight, row_output, cols, rstd);
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"missing_broadcast_barrier", "no thread waits for the shared result", launch,
                                    "thread order reversed", Shows::on_cpu_device};

}  // namespace ladder::matrix::mutants::missing_broadcast_barrier
