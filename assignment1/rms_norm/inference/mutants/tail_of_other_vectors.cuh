// tail_of_other_vectors: 128-bit accesses take eight elements, and the remainder begins where vectors of four would
// end. If size is a multiple of 8, it does not show.
#pragma once

#include "parts.cuh"

namespace ladder::inference::mutants::tail_of_other_vectors {

__global__ void row_rmsnorm_kernel(const __half* in, const __half* wei, __half* out, int size, float eps) {
  in += int64_t{blockIdx.x} * size, out += int64_t{blockIdx.x} * size;
  const int pack_num = aligned_for<uint4, uint4>(in, wei, out) ? size / 8 : 0;
  const int pack_off = pack_num > 0 ? size / 4 * 4 : 0;  // the fault
  float sum = parts::sum_of_squares(in + 8 * pack_num, 0, size - 8 * pack_num);
  for (int i = threadIdx.x; i < 8 * pack_num; i += parts::kBlockDim) sum += __half2float(in[i]) * __half2float(in[i]);
  const float scale = parts::scale_of(sum, size, eps);
  for (int i = threadIdx.x; i < 8 * pack_num; i += parts::kBlockDim)
    out[i] = __float2half(scale * __half2float(in[i]) * __half2float(wei[i]));
  parts::write(in, wei, out, pack_off, size, scale);
}

constexpr RmsNormPureFp16::Launch launch = parts::launch<__half, __half, row_rmsnorm_kernel>;

inline const Mutant<RmsNormPureFp16> mutant{
    "tail_of_other_vectors", "the remainder begins where vectors of four elements end", launch, "never written"};

}  // namespace ladder::inference::mutants::tail_of_other_vectors
