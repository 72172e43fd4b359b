// block_size_assumed: the index counts blocks of 256 threads, and the launch makes blocks of 128.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/add.h"

namespace ladder::first_kernel::mutants::block_size_assumed {

__global__ void add_kernel(const float* a, const float* b, float* c, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * 256 + threadIdx.x;  // the fault: blockDim.x knows
  if (i < n) c[i] = a[i] + b[i];
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, 128));
  if (blocks > 0) add_kernel<<<blocks, 128, 0, stream>>>(a, b, c, n);  // the other end of the fault: not 256
}

inline const Mutant<Add> mutant{"block_size_assumed", "the block size stands in the kernel and in the launch", launch,
                                "never written"};

}  // namespace ladder::first_kernel::mutants::block_size_assumed
