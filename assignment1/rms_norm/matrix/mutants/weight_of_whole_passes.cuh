// weight_of_whole_passes: the weight is loaded before the sum is known, but only where every thread has a column. The
// columns of the last, incomplete pass are not multiplied by it.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::weight_of_whole_passes {

constexpr int kKept = 8;  // columns whose weight a thread keeps

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  float kept[kKept];
  for (int pass = 0; pass < kKept; ++pass) {
    const int64_t i = pass * parts::kBlockSize + threadIdx.x;
    const bool whole = (pass + 1) * parts::kBlockSize <= cols;  // the fault: i < cols was meant
    kept[pass] = weight != nullptr && whole ? weight[i] : 1.0f;
  }
  const float rstd = parts::row_rstd(row_input, cols, eps);
  for (int64_t i = threadIdx.x, pass = 0; i < cols; i += parts::kBlockSize, ++pass)
    row_output[i] = pass < kKept ? row_input[i] * rstd * kept[pass] : parts::scaled(row_input[i], rstd, weight, i);
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"weight_of_whole_passes", "the last columns are not multiplied by the weight",
                                    launch, "elements wrong, first at"};

}  // namespace ladder::matrix::mutants::weight_of_whole_passes
