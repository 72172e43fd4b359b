// eps_in_float16: eps is added as a float16, where 1e-6 is 17 steps of the smallest number: 1.3 percent too much.
#pragma once

#include "parts.cuh"

namespace ladder::precision::mutants::eps_in_float16 {

__global__ void rms_norm_kernel(const __half* x, const __half* weight, __half* y, int64_t cols, float eps) {
  const __half* row = x + blockIdx.x * cols;
  __half* to = y + blockIdx.x * cols;
  const float rounded = __half2float(__float2half(eps));  // the fault
  parts::write(row, weight, to, 0, cols, parts::rstd(parts::sum_of_squares(row, 0, cols), cols, rounded));
}

inline void launch(const __half* x, const __half* weight, __half* y, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  parts::launch(rms_norm_kernel, x, weight, y, rows, cols, eps, stream);
}

inline const Mutant<RmsNormF16> mutant{"eps_in_float16", "eps is rounded to float16", launch,
                                       "elements wrong, first at"};

}  // namespace ladder::precision::mutants::eps_in_float16
