// vector_add2: one thread for each element, in as many blocks as that takes.
//
// It removes the idle SMs: the hardware hands the blocks out to all of them.
// It leaves: as many threads to start as there are elements, and each moves 12 bytes (counter: requests, one load of
// each input for 32 elements).
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/add.h"

namespace ladder::first_kernel::vector_add2 {

constexpr int kBlockSize = 256;

__global__ void add_kernel(const float* a, const float* b, float* c, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, kBlockSize));
  if (blocks > 0) add_kernel<<<blocks, kBlockSize, 0, stream>>>(a, b, c, n);  // a grid of no blocks is an error
}

inline const Stage<Add> stage{"vector_add2", "one thread for each element", launch};

}  // namespace ladder::first_kernel::vector_add2

LADDER_MAIN(ladder::first_kernel::vector_add2::stage)
