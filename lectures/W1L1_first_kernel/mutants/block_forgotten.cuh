// block_forgotten: every block takes the elements of the first one.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/add.h"

namespace ladder::first_kernel::mutants::block_forgotten {

__global__ void add_kernel(const float* a, const float* b, float* c, int64_t n) {
  const int64_t i = threadIdx.x;  // the fault
  if (i < n) c[i] = a[i] + b[i];
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, 256));
  if (blocks > 0) add_kernel<<<blocks, 256, 0, stream>>>(a, b, c, n);
}

inline const Mutant<Add> mutant{"block_forgotten", "the index does not say which block it is", launch, "never written"};

}  // namespace ladder::first_kernel::mutants::block_forgotten
