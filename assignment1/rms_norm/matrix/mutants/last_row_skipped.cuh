// last_row_skipped: a grid one block too small.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::last_row_skipped {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  parts::scale_row(row_input, weight, row_output, cols, parts::row_rstd(row_input, cols, eps));
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  parts::one_block_per_row<rms_norm_kernel>(input, weight, output, rows - 1, cols, eps, stream);  // the fault
}

inline const Mutant<RmsNorm> mutant{"last_row_skipped", "the last row is never computed", launch,
                                    "never written), first at"};

}  // namespace ladder::matrix::mutants::last_row_skipped
