// rows_in_grid_y: rows counted by blockIdx.y. That dimension ends at 65535. A larger grid does not launch at all, and a
// program that does not check the error continues with whatever was in the output before.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::rows_in_grid_y {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.y * cols;
  float* row_output = output + blockIdx.y * cols;
  parts::scale_row(row_input, weight, row_output, cols, parts::row_rstd(row_input, cols, eps));
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  const dim3 grid(1, static_cast<unsigned>(rows));  // the fault
  rms_norm_kernel<<<grid, parts::kBlockSize, 0, stream>>>(input, weight, output, rows, cols, eps);
}

inline const Mutant<RmsNorm> mutant{
    "rows_in_grid_y", "more rows than gridDim.y can count", launch, "cudaErrorInvalid", Shows::anywhere, {{65536, 1}}};

}  // namespace ladder::matrix::mutants::rows_in_grid_y
