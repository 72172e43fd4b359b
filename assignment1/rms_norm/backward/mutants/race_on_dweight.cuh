// race_on_dweight: eight warps add their rows to the same 32 sums in shared memory, and none waits for another.
#pragma once

#include "parts.cuh"

namespace ladder::backward::mutants::race_on_dweight {

struct Body {
  template <class T>
  static __device__ void run(const Tensors<T>& t) {
    __shared__ float sums[32];
    const int64_t col = int64_t{blockIdx.x} * 32 + threadIdx.x;
    if (threadIdx.y == 0) sums[threadIdx.x] = 0.0f;
    __syncthreads();
    for (int64_t row = threadIdx.y; row < t.rows && col < t.cols; row += 8)
      sums[threadIdx.x] += parts::Right::term(t, row, col);  // the fault: the other warps do so, too
    __syncthreads();
    if (threadIdx.y == 0 && col < t.cols) t.dweight[col] = static_cast<T>(sums[threadIdx.x]);
  }
};

inline const Mutant<RmsNormBackward> mutant{
    "race_on_dweight", "threads of different warps add to the same sum without an atomic operation",
    parts::launch_tiles<Body>, "not deterministic", Shows::on_cpu_device};

}  // namespace ladder::backward::mutants::race_on_dweight
