// vector_load_on_odd_address: 128-bit accesses wherever the number of columns is a multiple of 8. A row may begin at an
// address that is no multiple of 16 all the same.
#pragma once

#include "parts.cuh"

namespace ladder::inference::mutants::vector_load_on_odd_address {

__global__ void row_rmsnorm_kernel(const __half* in, const __half* wei, __half* out, int size, float eps) {
  in += int64_t{blockIdx.x} * size, out += int64_t{blockIdx.x} * size;
  const float scale = parts::scale_of(parts::sum_of_squares(in, 0, size), size, eps);
  const int pack_num = size % 8 == 0 ? size / 8 : 0;
  const auto* in_vec = reinterpret_cast<const uint4*>(in);  // the fault
  auto* out_vec = reinterpret_cast<uint4*>(out);
  for (int i = threadIdx.x; i < pack_num; i += parts::kBlockDim) {
    uint4 raw = in_vec[i];
    auto* eight = reinterpret_cast<__half*>(&raw);
    for (int k = 0; k < 8; ++k) eight[k] = __float2half(scale * __half2float(eight[k]) * __half2float(wei[8 * i + k]));
    out_vec[i] = raw;
  }
  parts::write(in, wei, out, 8 * pack_num, size, scale);
}

constexpr RmsNormPureFp16::Launch launch = parts::launch<__half, __half, row_rmsnorm_kernel>;

inline const Mutant<RmsNormPureFp16> mutant{"vector_load_on_odd_address", "128-bit accesses at odd addresses", launch,
                                            "cudaErrorMisalignedAddress"};

}  // namespace ladder::inference::mutants::vector_load_on_odd_address
