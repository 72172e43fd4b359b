// missing_barrier: reduction2 without the barrier between two steps of its tree. A thread adds a partner's sum that the
// partner has not finished yet.
#pragma once

#include "parts.cuh"

namespace ladder::reduction::mutants::missing_barrier {

__global__ void reduce_kernel(const float* input, float* sums, int64_t n) {
  __shared__ float sdata[parts::kBlockSize];
  const int tid = threadIdx.x;
  sdata[tid] = parts::two_elements(input, n);
  __syncthreads();
  for (int s = parts::kBlockSize / 2; s > 0; s /= 2) {
    if (tid < s) sdata[tid] += sdata[tid + s];  // the fault: no __syncthreads() after it
  }
  if (tid == 0) sums[blockIdx.x] = sdata[0];
}

constexpr Sum::Launch launch = parts::rounds<reduce_kernel, 2 * parts::kBlockSize>;

inline const Mutant<Sum> mutant{"missing_barrier", "no barrier between the steps of the tree", launch,
                                "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::reduction::mutants::missing_barrier
