// read_past_the_end: reduction3, whose threads check the first of their two elements only.
#pragma once

#include "parts.cuh"

namespace ladder::reduction::mutants::read_past_the_end {

__global__ void reduce_kernel(const float* input, float* sums, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * (2 * parts::kBlockSize) + threadIdx.x;
  float sum = 0.0f;
  if (i < n) sum = input[i] + input[i + parts::kBlockSize];  // the fault: the second one may lie past the end
  sum = block_reduce_sum<parts::kBlockSize>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

constexpr Sum::Launch launch = parts::rounds<reduce_kernel, 2 * parts::kBlockSize>;

inline const Mutant<Sum> mutant{"read_past_the_end", "the second element is read without a check", launch,
                                "elements wrong, first at"};

}  // namespace ladder::reduction::mutants::read_past_the_end
