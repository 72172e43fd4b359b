// missing_fence: a block raises its flag without a release: nothing orders the flag after the rows that it announces.
#pragma once

#include "parts.cuh"

namespace ladder::tensor_parallel::mutants::missing_fence {

struct Body : parts::RightFlags {
  static __device__ void raise(const Work& w, uint64_t number) {
    const int peer = static_cast<int>(threadIdx.x);  // the fault: __syncthreads() before, and memory_order_release
    if (peer < w.ranks && peer != w.rank)
      Flag(*flag_in(w.buffer[peer], kParts, w.rank, static_cast<int>(blockIdx.x)))
          .store(number, cuda::memory_order_relaxed);
  }
};

inline const Mutant<AllReduceRmsNorm> mutant{"missing_fence",
                                             "a flag is raised without a release, and may come before the rows",
                                             parts::launch_flags<Body>, "y of rank", Shows::on_cpu_device};

}  // namespace ladder::tensor_parallel::mutants::missing_fence
