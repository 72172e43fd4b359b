// stride_too_long: the loop steps over one block of elements in each round.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/add.h"

namespace ladder::first_kernel::mutants::stride_too_long {

__global__ void add_kernel(const float* a, const float* b, float* c, int64_t n) {
  const int64_t threads = (int64_t{gridDim.x} + 1) * blockDim.x;  // the fault
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += threads) c[i] = a[i] + b[i];
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  if (n > 0) add_kernel<<<4, 256, 0, stream>>>(a, b, c, n);
}

inline const Mutant<Add> mutant{"stride_too_long", "the stride is longer than the grid", launch, "never written"};

}  // namespace ladder::first_kernel::mutants::stride_too_long
