// assumed_alignment: float4 accesses that check the number of columns and not the addresses. A matrix whose first
// element is not at a multiple of 16 bytes takes the vector path all the same.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::assumed_alignment {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const float rstd = parts::row_rstd(row_input, cols, eps);
  if (cols % 4 != 0) return parts::scale_row(row_input, weight, row_output, cols, rstd);
  const auto* vec_input = reinterpret_cast<const float4*>(row_input);  // the fault
  auto* vec_output = reinterpret_cast<float4*>(row_output);
  for (int64_t i = threadIdx.x; i < cols / 4; i += parts::kBlockSize) {
    const float4 x = vec_input[i];
    vec_output[i] =
        make_float4(parts::scaled(x.x, rstd, weight, 4 * i), parts::scaled(x.y, rstd, weight, 4 * i + 1),
                    parts::scaled(x.z, rstd, weight, 4 * i + 2), parts::scaled(x.w, rstd, weight, 4 * i + 3));
  }
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{"assumed_alignment", "float4 accesses to unaligned addresses", launch,
                                    "cudaErrorMisalignedAddress"};

}  // namespace ladder::matrix::mutants::assumed_alignment
