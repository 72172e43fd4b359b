// no_bounds_check: the threads of the last block that have no element add all the same.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/add.h"

namespace ladder::first_kernel::mutants::no_bounds_check {

__global__ void add_kernel(const float* a, const float* b, float* c, int64_t) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  c[i] = a[i] + b[i];  // the fault
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, 256));
  if (blocks > 0) add_kernel<<<blocks, 256, 0, stream>>>(a, b, c, n);
}

inline const Mutant<Add> mutant{"no_bounds_check", "no thread asks whether its element exists", launch,
                                "guard element"};

}  // namespace ladder::first_kernel::mutants::no_bounds_check
