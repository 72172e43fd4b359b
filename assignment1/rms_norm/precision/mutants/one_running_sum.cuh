// one_running_sum: the right sum in the wrong order. One thread adds up the whole row in bfloat16, and the sum stands
// still as soon as it is 256 times as large as what is added.
#pragma once

#include "parts.cuh"

namespace ladder::precision::mutants::one_running_sum {

__global__ void rms_norm_kernel(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int64_t cols,
                                float eps) {
  const __nv_bfloat16* row = x + blockIdx.x * cols;
  __nv_bfloat16* to = y + blockIdx.x * cols;
  __shared__ __nv_bfloat16 sum;
  if (threadIdx.x == 0) {
    sum = __float2bfloat16(0.0f);
    for (int64_t col = 0; col < cols; ++col) {
      const float value = __bfloat162float(row[col]);
      sum = __float2bfloat16(fmaf(value, value, __bfloat162float(sum)));  // the fault
    }
  }
  __syncthreads();
  parts::write(row, weight, to, 0, cols, rsqrtf(__bfloat162float(sum) / static_cast<float>(cols) + eps));
}

inline void launch(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int64_t rows, int64_t cols,
                   float eps, cudaStream_t stream) {
  parts::launch(rms_norm_kernel, x, weight, y, rows, cols, eps, stream);
}

inline const Mutant<RmsNormBf16Bf16> mutant{"one_running_sum", "one thread adds up a bfloat16 sum", launch,
                                            "elements wrong, first at"};

}  // namespace ladder::precision::mutants::one_running_sum
