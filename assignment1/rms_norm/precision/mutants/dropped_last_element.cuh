// dropped_last_element: pairs only. The last element of a row with an odd number of columns is neither added nor
// written.
#pragma once

#include "parts.cuh"

namespace ladder::precision::mutants::dropped_last_element {

__global__ void rms_norm_kernel(const __half* x, const __half* weight, __half* y, int64_t cols, float eps) {
  const __half* row = x + blockIdx.x * cols;
  __half* to = y + blockIdx.x * cols;
  const int64_t whole = cols / 2 * 2;  // the fault
  parts::write(row, weight, to, 0, whole, parts::rstd(parts::sum_of_squares(row, 0, whole), cols, eps));
}

inline void launch(const __half* x, const __half* weight, __half* y, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  parts::launch(rms_norm_kernel, x, weight, y, rows, cols, eps, stream);
}

inline const Mutant<RmsNormF16> mutant{"dropped_last_element", "the element without a partner is dropped", launch,
                                       "never written), first at"};

}  // namespace ladder::precision::mutants::dropped_last_element
