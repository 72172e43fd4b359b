// float16_sum: the kernel promises float32 sums, widens the elements, and keeps the sum of the block in a float16.
// Rows whose squares add up to less than 65504 look right.
#pragma once

#include "parts.cuh"

namespace ladder::precision::mutants::float16_sum {

__global__ void rms_norm_kernel(const __half* x, const __half* weight, __half* y, int64_t cols, float eps) {
  const __half* row = x + blockIdx.x * cols;
  __half* to = y + blockIdx.x * cols;
  const __half sum = __float2half(parts::sum_of_squares(row, 0, cols));
  const float all = __half2float(block_sum(sum));  // the fault
  parts::write(row, weight, to, 0, cols, rsqrtf(all / static_cast<float>(cols) + eps));
}

inline void launch(const __half* x, const __half* weight, __half* y, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  parts::launch(rms_norm_kernel, x, weight, y, rows, cols, eps, stream);
}

inline const Mutant<RmsNormF16> mutant{"float16_sum", "the sum of a block is float16 where float32 is promised", launch,
                                       "elements wrong, first at"};

}  // namespace ladder::precision::mutants::float16_sum
