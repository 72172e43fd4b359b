// dim_taken_for_row: a matrix comes to the kernel for a single row, since only the types decide and not the rank.
#pragma once

#include "parts.cuh"

namespace ladder::inference::mutants::dim_taken_for_row {

__global__ void row_rmsnorm_kernel(const float* in, const float* wei, float* out, int size, float eps) {
  parts::write(in, wei, out, 0, size, parts::scale_of(parts::sum_of_squares(in, 0, size), size, eps));
}

inline void launch(const float* in, const float* wei, float* out, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows > 0)  // the fault: one block
    row_rmsnorm_kernel<<<1, parts::kBlockDim, 0, stream>>>(in, wei, out, static_cast<int>(cols), eps);
}

inline const Mutant<RmsNormAllF32> mutant{"dim_taken_for_row", "the kernel for one row gets all rows", launch,
                                          "never written"};

}  // namespace ladder::inference::mutants::dim_taken_for_row
