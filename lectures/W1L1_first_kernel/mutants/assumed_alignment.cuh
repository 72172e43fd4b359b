// assumed_alignment: loads of 128 bits, whatever the addresses are.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/add.h"

namespace ladder::first_kernel::mutants::assumed_alignment {

__global__ void add_kernel(const float* a, const float* b, float* c, int64_t n) {
  const int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 4;
  if (first + 4 <= n) {  // the other end of the fault: nothing asks for the alignment
    const float4 x = *reinterpret_cast<const float4*>(a + first);  // the fault
    const float4 y = *reinterpret_cast<const float4*>(b + first);
    *reinterpret_cast<float4*>(c + first) = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  } else {
    for (int64_t i = first; i < n; ++i) c[i] = a[i] + b[i];
  }
}

inline void launch(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, 4 * 256));
  if (blocks > 0) add_kernel<<<blocks, 256, 0, stream>>>(a, b, c, n);
}

inline const Mutant<Add> mutant{"assumed_alignment", "128-bit accesses to addresses that are no multiple of 16", launch,
                                "cudaErrorMisalignedAddress"};

}  // namespace ladder::first_kernel::mutants::assumed_alignment
