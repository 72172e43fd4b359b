// vector_add0: one thread adds everything, as a loop on a CPU would.
//
// It leaves: one lane of one warp of one SM works, and all the others of the GPU do nothing (counter: lanes per
// request, 1 of 32). Each request brings a sector of 32 bytes, and one float of it is used.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/add.h"

namespace ladder::first_kernel::vector_add0 {

__global__ void add_kernel(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  add_kernel<<<1, 1, 0, stream>>>(a, b, c, n);
}

inline const char* too_long(const Shape& shape) {
  return shape[0] <= 32768 ? nullptr : "one thread would take too long to be timed; try --n 32768 or less";
}

inline const Stage<Add> stage{"vector_add0", "one thread", launch, {0, too_long}};

}  // namespace ladder::first_kernel::vector_add0

LADDER_MAIN(ladder::first_kernel::vector_add0::stage)
