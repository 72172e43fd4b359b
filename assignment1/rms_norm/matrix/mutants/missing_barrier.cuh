// missing_barrier: 02_reduction5 without the barrier between two steps of its tree. A thread adds a partner's sum that
// the partner has not finished yet.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::missing_barrier {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  __shared__ float sdata[parts::kBlockSize];
  const int tid = threadIdx.x;
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;

  sdata[tid] = parts::sum_of_squares(row_input, cols);
  __syncthreads();
  for (int s = parts::kBlockSize / 2; s > 0; s /= 2) {
    if (tid < s) sdata[tid] += sdata[tid + s];  // the fault: no __syncthreads() after it
  }
  __syncthreads();
  parts::scale_row(row_input, weight, row_output, cols, rsqrtf(sdata[0] / static_cast<float>(cols) + eps));
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"missing_barrier", "no barrier between the steps of the tree", launch,
                                    "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::matrix::mutants::missing_barrier
