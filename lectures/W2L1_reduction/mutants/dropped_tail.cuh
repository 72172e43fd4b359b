// dropped_tail: the last elements, which do not fill a float4, are forgotten.
#pragma once

#include "parts.cuh"

namespace ladder::reduction::mutants::dropped_tail {

__global__ void reduce_kernel(const float* input, float* sums, int64_t n) {
  const bool aligned = reinterpret_cast<uintptr_t>(input) % sizeof(float4) == 0;
  const int64_t i = int64_t{blockIdx.x} * parts::kBlockSize + threadIdx.x;
  float sum = 0.0f;
  if (aligned && i < n / 4) {  // the fault: n % 4 elements have no thread
    const float4 x = reinterpret_cast<const float4*>(input)[i];
    sum = (x.x + x.y) + (x.z + x.w);
  }
  for (int64_t k = 4 * i; !aligned && k < min(4 * i + 4, n); ++k) sum += input[k];
  sum = block_reduce_sum<parts::kBlockSize>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

constexpr Sum::Launch launch = parts::rounds<reduce_kernel, 4 * parts::kBlockSize>;

inline const Mutant<Sum> mutant{"dropped_tail", "the elements after the last float4 are forgotten", launch,
                                "elements wrong, first at"};

}  // namespace ladder::reduction::mutants::dropped_tail
