// float16_sum: the kernel promises a float32 sum, and each thread adds up its squares in float16, as the name pure_fp16
// may suggest.
#pragma once

#include "parts.cuh"

namespace ladder::inference::mutants::float16_sum {

__global__ void row_rmsnorm_kernel(const __half* in, const __half* wei, __half* out, int size, float eps) {
  in += int64_t{blockIdx.x} * size, out += int64_t{blockIdx.x} * size;
  __half sum = __float2half(0.0f);
  for (int i = threadIdx.x; i < size; i += parts::kBlockDim) sum = __hfma(in[i], in[i], sum);  // the fault
  parts::write(in, wei, out, 0, size, parts::scale_of(__half2float(sum), size, eps));
}

constexpr RmsNormPureFp16::Launch launch = parts::launch<__half, __half, row_rmsnorm_kernel>;

inline const Mutant<RmsNormPureFp16> mutant{"float16_sum", "a thread's sum is float16 where float32 is promised",
                                            launch, "elements wrong, first at"};

}  // namespace ladder::inference::mutants::float16_sum
