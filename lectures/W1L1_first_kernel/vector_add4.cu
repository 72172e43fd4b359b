// vector_add4: four neighbouring elements for each thread, in one load of 128 bits from each input.
//
// It removes three quarters of the requests; the sectors stay the same.
// It leaves: little. Each byte is moved once, and a request uses all of its 16 sectors.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/add.h"

namespace ladder::first_kernel::vector_add4 {

constexpr int kBlockSize = 256;

// A load of 128 bits needs an address that is a multiple of 16; `aligned` says whether all three have one.
__global__ void add_kernel(const float* a, const float* b, float* c, int64_t n, bool aligned) {
  const int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 4;
  if (aligned && first + 4 <= n) {
    const float4 x = *reinterpret_cast<const float4*>(a + first);
    const float4 y = *reinterpret_cast<const float4*>(b + first);
    *reinterpret_cast<float4*>(c + first) = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  } else {
    for (int64_t i = first; i < min(first + 4, n); ++i) c[i] = a[i] + b[i];
  }
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, 4 * kBlockSize));
  const bool aligned = aligned_for<float4>(a, b) && aligned_for<float4>(c, c);
  if (blocks > 0) add_kernel<<<blocks, kBlockSize, 0, stream>>>(a, b, c, n, aligned);
}

inline const Stage<Add> stage{"vector_add4", "four elements for each thread, in loads of 128 bits", launch};

}  // namespace ladder::first_kernel::vector_add4

LADDER_MAIN(ladder::first_kernel::vector_add4::stage)
