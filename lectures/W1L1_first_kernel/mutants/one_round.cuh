// one_round: no loop: a grid of fixed size adds what it has threads for.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/add.h"

namespace ladder::first_kernel::mutants::one_round {

__global__ void add_kernel(const float* a, const float* b, float* c, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];  // the fault
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  if (n > 0) add_kernel<<<16, 256, 0, stream>>>(a, b, c, n);  // the other end of the fault: as many blocks for any n
}

inline const Mutant<Add> mutant{"one_round", "a fixed grid without a loop", launch, "never written"};

}  // namespace ladder::first_kernel::mutants::one_round
