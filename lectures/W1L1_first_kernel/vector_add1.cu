// vector_add1: one block. Its threads take neighbouring elements, then the next 1024, and so on.
//
// It removes the idle lanes: 32 lanes ask for 32 neighbouring floats at once, which are 4 whole sectors.
// It leaves: a block runs on one SM, and the other SMs do nothing (counter: blocks, 1).
#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/add.h"

namespace ladder::first_kernel::vector_add1 {

constexpr int kBlockSize = 1024;

__global__ void add_kernel(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) c[i] = a[i] + b[i];
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  add_kernel<<<1, kBlockSize, 0, stream>>>(a, b, c, n);
}

inline const Stage<Add> stage{"vector_add1", "one block of 1024 threads", launch};

}  // namespace ladder::first_kernel::vector_add1

LADDER_MAIN(ladder::first_kernel::vector_add1::stage)
