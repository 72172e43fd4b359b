// byte_offset_overflow: the row's offset is an int that counts bytes. It wraps at 2^31, so a row that starts 2 GiB into
// the input is read from 2 GiB before it.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::byte_offset_overflow {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t, int64_t cols,
                                float eps) {
  const int byte_offset = static_cast<int>(blockIdx.x * cols * sizeof(float));  // the fault
  const auto* row_input = reinterpret_cast<const float*>(reinterpret_cast<const char*>(input) + byte_offset);
  float* row_output = output + blockIdx.x * cols;
  parts::scale_row(row_input, weight, row_output, cols, parts::row_rstd(row_input, cols, eps));
}

constexpr RmsNorm::Launch launch = parts::one_block_per_row<rms_norm_kernel>;

inline const Mutant<RmsNorm> mutant{
    "byte_offset_overflow", "a 32-bit byte offset wraps at 2 GiB", launch, "65537 x 8192, weight", Shows::anywhere,
    {{65537, 8192}}};

}  // namespace ladder::matrix::mutants::byte_offset_overflow
