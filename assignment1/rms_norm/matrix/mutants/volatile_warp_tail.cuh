// volatile_warp_tail: the last six steps of the tree as they were written before Volta. "volatile" makes every access
// reach memory; it does not make the lanes of a warp wait for each other. 04_hybrid has the right form.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::volatile_warp_tail {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  __shared__ float sdata[parts::kBlockSize];
  const int tid = threadIdx.x;
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;

  sdata[tid] = parts::sum_of_squares(row_input, cols);
  __syncthreads();
  if (tid < 128) sdata[tid] += sdata[tid + 128];
  __syncthreads();
  if (tid < 64) sdata[tid] += sdata[tid + 64];
  __syncthreads();
  if (tid < 32) {
    volatile float* vsdata = sdata;
    for (int s = 32; s > 0; s /= 2) vsdata[tid] = vsdata[tid] + vsdata[tid + s];  // the fault: no __syncwarp()
  }
  __syncthreads();
  parts::scale_row(row_input, weight, row_output, cols, rsqrtf(sdata[0] / static_cast<float>(cols) + eps));
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"volatile_warp_tail", "a volatile warp tail without __syncwarp", launch,
                                    "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::matrix::mutants::volatile_warp_tail
