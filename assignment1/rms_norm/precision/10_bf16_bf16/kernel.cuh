// 10_bf16_bf16: 03 with bfloat16 in place of float16, in memory and in arithmetic. It has no original in the document.
//
// It removes the overflow of 03: a bfloat16 has float32's exponent, so a sum of squares ends at 3.4e38.
// It costs precision: every addition rounds to 8 bits in place of 11. A sum that is 256 times as large as what is added
// to it does not change any more. What is promised is derived in common/operators/rms_norm_precision.cpp; more than
// 65536 columns are refused.
// It leaves: 03's accesses of 2 bytes per lane.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/precision/shared.cuh"
#include "common/operators/rms_norm_precision.h"

namespace ladder::precision::bf16_bf16 {

__global__ void rms_norm_bf16_bf16_kernel(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight,
                                          __nv_bfloat16* __restrict__ y, int64_t cols, float eps) {
#if __CUDA_ARCH__ >= 800
  const __nv_bfloat16* row_x = x + blockIdx.x * cols;
  __nv_bfloat16* row_y = y + blockIdx.x * cols;
  const unsigned tid = threadIdx.x;

  const __nv_bfloat16 held = tid < cols ? row_x[tid] : __float2bfloat16(0.0f);
  __nv_bfloat16 sum = __hmul(held, held);
  for (int64_t col = tid + blockDim.x; col < cols; col += blockDim.x) {
    const __nv_bfloat16 value = row_x[col];
    sum = __hfma(value, value, sum);
  }
  const __nv_bfloat16 mean = __hdiv(block_sum(sum), __ll2bfloat16_rn(cols));
  const __nv_bfloat16 rstd = hrsqrt(__hadd(mean, __float2bfloat16(eps)));

  const auto write = [&](int64_t col, __nv_bfloat16 value) {
    const __nv_bfloat16 normalized = __hmul(value, rstd);
    row_y[col] = weight == nullptr ? normalized : __hmul(normalized, weight[col]);
  };
  if (tid < cols) write(tid, held);
  for (int64_t col = tid + blockDim.x; col < cols; col += blockDim.x) write(col, row_x[col]);
#endif
}

inline void launch(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int64_t rows, int64_t cols,
                   float eps, cudaStream_t stream) {
  const unsigned threads = threads_for(cols);
  if (rows > 0) rms_norm_bf16_bf16_kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(x, weight, y, cols, eps);
}

inline const Stage<RmsNormBf16Bf16> stage{
    "10_bf16_bf16", "bfloat16 in memory and in arithmetic", launch, {80, RmsNormBf16Bf16::refuses}};

}  // namespace ladder::precision::bf16_bf16
