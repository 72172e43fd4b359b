// too_many_threads: a block has at most 1024 threads. The launch fails, and nothing runs.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/add.h"

namespace ladder::first_kernel::mutants::too_many_threads {

__global__ void add_kernel(const float* a, const float* b, float* c, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, 2048));
  if (blocks > 0) add_kernel<<<blocks, 2048, 0, stream>>>(a, b, c, n);  // the fault
}

inline const Mutant<Add> mutant{"too_many_threads", "2048 threads in a block", launch, "cudaErrorInvalid"};

}  // namespace ladder::first_kernel::mutants::too_many_threads
