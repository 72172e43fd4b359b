// one_column_too_many: the sum reads one element past the end of the row: the next row's first one, or what follows
// the matrix in memory.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::one_column_too_many {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const float sum = block_reduce_sum<parts::kBlockSize>(parts::sum_of_squares(row_input, cols + 1));  // the fault
  parts::scale_row(row_input, weight, row_output, cols, rsqrtf(sum / static_cast<float>(cols) + eps));
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"one_column_too_many", "the sum reads past the end of the row", launch,
                                    "elements wrong, first at"};

}  // namespace ladder::matrix::mutants::one_column_too_many
