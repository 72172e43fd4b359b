// dropped_tail: whole float4 vectors only. The last cols % 4 columns are neither added nor written.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::dropped_tail {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const int64_t whole = cols / 4 * 4;  // the fault
  const float sum = block_reduce_sum<parts::kBlockSize>(parts::sum_of_squares(row_input, whole));
  parts::scale_row(row_input, weight, row_output, whole, rsqrtf(sum / static_cast<float>(cols) + eps));
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"dropped_tail", "the last cols % 4 columns are dropped", launch,
                                    "never written), first at"};

}  // namespace ladder::matrix::mutants::dropped_tail
