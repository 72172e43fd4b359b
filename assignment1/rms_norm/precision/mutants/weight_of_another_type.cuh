// weight_of_another_type: the weight is bfloat16, and its bits are read as float16. Both have 2 bytes, so no address is
// wrong.
#pragma once

#include "parts.cuh"

namespace ladder::precision::mutants::weight_of_another_type {

__global__ void rms_norm_kernel(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int64_t cols,
                                float eps) {
  const __nv_bfloat16* row = x + blockIdx.x * cols;
  __nv_bfloat16* to = y + blockIdx.x * cols;
  const float rstd = parts::rstd(parts::sum_of_squares(row, 0, cols), cols, eps);
  const auto* factors = reinterpret_cast<const __half*>(weight);  // the fault
  for (int64_t col = threadIdx.x; col < cols; col += blockDim.x)
    parts::set(to + col, parts::wide(row[col]) * rstd * (weight == nullptr ? 1.0f : parts::wide(factors[col])));
}

inline void launch(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int64_t rows, int64_t cols,
                   float eps, cudaStream_t stream) {
  parts::launch(rms_norm_kernel, x, weight, y, rows, cols, eps, stream);
}

inline const Mutant<RmsNormBf16> mutant{"weight_of_another_type", "a bfloat16 weight is read as float16", launch,
                                        "elements wrong, first at"};

}  // namespace ladder::precision::mutants::weight_of_another_type
