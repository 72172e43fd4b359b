// weight_checked_once: one block walks over all rows with the weight in registers, and loads it only if its first row
// is aligned for float4. Other rows may be aligned if the first is not.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::weight_checked_once {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t rows, int64_t cols,
                                float eps) {
  const int tid = threadIdx.x;
  const auto is_aligned = [&](int64_t row) {
    return aligned_for_float4(input + row * cols, weight, output + row * cols);
  };
  float4 kept = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
  if (weight != nullptr && tid < cols / 4 && is_aligned(0))  // the fault: the weight's own address counts
    kept = reinterpret_cast<const float4*>(weight)[tid];

  for (int64_t row = 0; row < rows; ++row) {
    const float* row_input = input + row * cols;
    float* row_output = output + row * cols;
    const float rstd = parts::row_rstd(row_input, cols, eps);
    const int64_t vec_cols = is_aligned(row) ? min(cols / 4, int64_t{parts::kBlockSize}) : 0;
    if (tid < vec_cols)
      reinterpret_cast<float4*>(row_output)[tid] = scaled(reinterpret_cast<const float4*>(row_input)[tid], rstd, kept);
    for (int64_t i = 4 * vec_cols + tid; i < cols; i += parts::kBlockSize)
      row_output[i] = parts::scaled(row_input[i], rstd, weight, i);
    __syncthreads();
  }
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  rms_norm_kernel<<<1, parts::kBlockSize, 0, stream>>>(input, weight, output, rows, cols, eps);
}

inline const Mutant<RmsNorm> mutant{"weight_checked_once", "the weight is loaded only if the first row is aligned",
                                    launch, "elements wrong, first at"};

}  // namespace ladder::matrix::mutants::weight_checked_once
