// blocks_rounded_down: n / 256 blocks, so that the last n % 256 elements have none.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/add.h"

namespace ladder::first_kernel::mutants::blocks_rounded_down {

__global__ void add_kernel(const float* a, const float* b, float* c, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(n / 256);  // the fault
  if (blocks > 0) add_kernel<<<blocks, 256, 0, stream>>>(a, b, c, n);
}

inline const Mutant<Add> mutant{"blocks_rounded_down", "the number of blocks is rounded down", launch, "never written"};

}  // namespace ladder::first_kernel::mutants::blocks_rounded_down
