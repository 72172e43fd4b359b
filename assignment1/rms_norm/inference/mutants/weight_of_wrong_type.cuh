// weight_of_wrong_type: the dispatch looks at the types of input and output alone, so that a float32 weight comes to
// the kernel for float16 weights, which reads the first half of its bytes.
#pragma once

#include "parts.cuh"

namespace ladder::inference::mutants::weight_of_wrong_type {

__global__ void row_rmsnorm_kernel(const float* in, const float* wei, float* out, int size, float eps) {
  in += int64_t{blockIdx.x} * size, out += int64_t{blockIdx.x} * size;
  const float scale = parts::scale_of(parts::sum_of_squares(in, 0, size), size, eps);
  parts::write(in, reinterpret_cast<const __half*>(wei), out, 0, size, scale);  // the fault
}

constexpr RmsNormAllF32::Launch launch = parts::launch<float, float, row_rmsnorm_kernel>;

inline const Mutant<RmsNormAllF32> mutant{"weight_of_wrong_type", "a float32 weight is read as float16", launch,
                                          "elements wrong, first at"};

}  // namespace ladder::inference::mutants::weight_of_wrong_type
