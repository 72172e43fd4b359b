// order_of_arrival: every sum is complete, and its bits are those of the order in which the warps have come.
#pragma once

#include "parts.cuh"

namespace ladder::backward::mutants::order_of_arrival {

struct Body {
  template <class T>
  static __device__ void run(const Tensors<T>& t) {
    __shared__ float sums[32];
    const int64_t col = int64_t{blockIdx.x} * 32 + threadIdx.x;
    if (threadIdx.y == 0) sums[threadIdx.x] = 0.0f;
    __syncthreads();
    for (int64_t row = threadIdx.y; row < t.rows && col < t.cols; row += 8)
      atomicAdd(sums + threadIdx.x, parts::Right::term(t, row, col));  // the fault: whichever warp comes first
    __syncthreads();
    if (threadIdx.y == 0 && col < t.cols) t.dweight[col] = static_cast<T>(sums[threadIdx.x]);
  }
};

inline const Mutant<RmsNormBackward> mutant{"order_of_arrival",
                                            "the terms are added in the order in which warps arrive",
                                            parts::launch_tiles<Body>, "not deterministic", Shows::on_cpu_device};

}  // namespace ladder::backward::mutants::order_of_arrival
