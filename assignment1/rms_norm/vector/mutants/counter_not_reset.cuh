// counter_not_reset: 07_last_block with an atomicAdd, and no block sets the counter back to 0. The first launch is
// right. In the next one no block is the last, so no block writes the result.
#pragma once

#include "parts.cuh"

namespace ladder::vector::mutants::counter_not_reset {

__device__ unsigned published;

__global__ void rms_norm_kernel(const float* input, float* scratch, int64_t n, float eps) {
  __shared__ bool is_last;
  const float sum = parts::sum_of_squares(input, parts::share_of_block(n));
  if (threadIdx.x == 0) {
    scratch[1 + blockIdx.x] = sum;
    __threadfence();
    is_last = atomicAdd(&published, 1) == gridDim.x - 1;  // the fault: right once
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  const float all = parts::sum_of(scratch + 1, gridDim.x);
  if (threadIdx.x == 0) scratch[0] = parts::rstd(all, n, eps);
}

__global__ void scale_kernel(const float* input, const float* weight, float* output, const float* scratch, int64_t n) {
  parts::scale(input, weight, output, parts::share_of_block(n), scratch[0]);
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  const unsigned blocks = parts::blocks_of(n);
  rms_norm_kernel<<<blocks, parts::kBlockSize, 0, stream>>>(input, scratch, n, eps);
  scale_kernel<<<blocks, parts::kBlockSize, 0, stream>>>(input, weight, output, scratch, n);
}

inline const Mutant<RmsNormVector> mutant{
    "counter_not_reset", "the counter of blocks keeps what an earlier launch left", launch, "elements wrong, first at"};

}  // namespace ladder::vector::mutants::counter_not_reset
