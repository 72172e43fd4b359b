// product_before_scaling: the element is multiplied by the weight in float16 first, and then by the factor: a second
// rounding.
#pragma once

#include "parts.cuh"

namespace ladder::precision::mutants::product_before_scaling {

__global__ void rms_norm_kernel(const __half* x, const __half* weight, __half* y, int64_t cols, float eps) {
  const __half* row = x + blockIdx.x * cols;
  __half* to = y + blockIdx.x * cols;
  const float rstd = parts::rstd(parts::sum_of_squares(row, 0, cols), cols, eps);
  for (int64_t col = threadIdx.x; col < cols; col += blockDim.x) {
    const __half product = weight == nullptr ? row[col] : __hmul(row[col], weight[col]);  // the fault
    to[col] = __float2half(__half2float(product) * rstd);
  }
}

inline void launch(const __half* x, const __half* weight, __half* y, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  parts::launch(rms_norm_kernel, x, weight, y, rows, cols, eps, stream);
}

inline const Mutant<RmsNormF16> mutant{"product_before_scaling",
                                       "the product with the weight is rounded before it is scaled", launch,
                                       "elements wrong, first at"};

}  // namespace ladder::precision::mutants::product_before_scaling
