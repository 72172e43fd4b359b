// weight_of_row_number: the weight is indexed like the rows, with a row's offset, though all rows share it.
#pragma once

#include "parts.cuh"

namespace ladder::inference::mutants::weight_of_row_number {

__global__ void row_rmsnorm_kernel(const float* in, const float* wei, float* out, int size, float eps) {
  const int64_t offset = int64_t{blockIdx.x} * size;
  in += offset, out += offset;
  const float scale = parts::scale_of(parts::sum_of_squares(in, 0, size), size, eps);
  for (int i = threadIdx.x; i < size; i += parts::kBlockDim)
    out[i] = scale * in[i] * wei[(i + blockIdx.x) % size];  // the fault
}

constexpr RmsNormAllF32::Launch launch = parts::launch<float, float, row_rmsnorm_kernel>;

inline const Mutant<RmsNormAllF32> mutant{"weight_of_row_number", "each row shifts the weight that all rows share",
                                          launch, "elements wrong, first at"};

}  // namespace ladder::inference::mutants::weight_of_row_number
