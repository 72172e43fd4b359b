// vector_add3: a grid-stride loop. The grid is as large as the GPU holds at once, whatever n is.
//
// It removes the tie between grid and input: any grid computes any n.
// It leaves: the requests of vector_add2, 4 bytes for each lane.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/launch.h"
#include "common/operators/add.h"

namespace ladder::first_kernel::vector_add3 {

constexpr int kBlockSize = 256;

__global__ void add_kernel(const float* a, const float* b, float* c, int64_t n) {
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;  // of the whole grid
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += threads) c[i] = a[i] + b[i];
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  static const int64_t most = resident_blocks(add_kernel, kBlockSize);
  const auto blocks = static_cast<unsigned>(std::min(blocks_for(n, kBlockSize), most));
  if (blocks > 0) add_kernel<<<blocks, kBlockSize, 0, stream>>>(a, b, c, n);
}

inline const Stage<Add> stage{"vector_add3", "grid-stride loop in a grid that just fills the GPU", launch};

}  // namespace ladder::first_kernel::vector_add3

LADDER_MAIN(ladder::first_kernel::vector_add3::stage)
