// squares_in_float16: squares are computed in float16 and added up in float32. An element of 256 or more has an
// infinite square.
#pragma once

#include "parts.cuh"

namespace ladder::precision::mutants::squares_in_float16 {

__global__ void rms_norm_kernel(const __half* x, const __half* weight, __half* y, int64_t cols, float eps) {
  const __half* row = x + blockIdx.x * cols;
  __half* to = y + blockIdx.x * cols;
  float sum = 0.0f;
  for (int64_t col = threadIdx.x; col < cols; col += blockDim.x)
    sum += __half2float(__hmul(row[col], row[col]));  // the fault
  parts::write(row, weight, to, 0, cols, parts::rstd(sum, cols, eps));
}

inline void launch(const __half* x, const __half* weight, __half* y, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  parts::launch(rms_norm_kernel, x, weight, y, rows, cols, eps, stream);
}

inline const Mutant<RmsNormF16> mutant{"squares_in_float16", "squares are rounded to float16 before they are widened",
                                       launch, "elements wrong, first at"};

}  // namespace ladder::precision::mutants::squares_in_float16
