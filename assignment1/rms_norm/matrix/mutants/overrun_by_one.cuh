// overrun_by_one: "<=" where "<" is meant. Every row writes one element past its end. The next row overwrites that
// element, for all rows but the last.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::overrun_by_one {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const float rstd = parts::row_rstd(row_input, cols, eps);
  for (int64_t i = threadIdx.x; i <= cols; i += parts::kBlockSize) {  // the fault
    row_output[i] = i < cols ? parts::scaled(row_input[i], rstd, weight, i) : 0.0f;
  }
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"overrun_by_one", "one element is written past the end of the output", launch,
                                    "wrote outside its output"};

}  // namespace ladder::matrix::mutants::overrun_by_one
