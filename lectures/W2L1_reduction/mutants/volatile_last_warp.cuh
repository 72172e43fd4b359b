// volatile_last_warp: reduction4 as it was written before Volta. "volatile" makes every access reach memory; it does
// not make the lanes of a warp wait for each other.
#pragma once

#include "parts.cuh"

namespace ladder::reduction::mutants::volatile_last_warp {

__global__ void reduce_kernel(const float* input, float* sums, int64_t n) {
  __shared__ float sdata[parts::kBlockSize];
  const int tid = threadIdx.x;
  sdata[tid] = parts::two_elements(input, n);
  __syncthreads();
  for (int s = parts::kBlockSize / 2; s > 32; s /= 2) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid < 32) {
    volatile float* vdata = sdata;
    for (int s = 32; s > 0; s /= 2) vdata[tid] = vdata[tid] + vdata[tid + s];  // the fault: no __syncwarp()
  }
  if (tid == 0) sums[blockIdx.x] = sdata[0];
}

constexpr Sum::Launch launch = parts::rounds<reduce_kernel, 2 * parts::kBlockSize>;

inline const Mutant<Sum> mutant{"volatile_last_warp", "a volatile last warp without __syncwarp", launch,
                                "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::reduction::mutants::volatile_last_warp
