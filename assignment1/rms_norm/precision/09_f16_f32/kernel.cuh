// 09_f16_f32: the document's rms_norm_f16_f32_kernel, the last of its list. 03's accesses with 06's arithmetic.
//
// It removes the range and the roundings of 03 and changes nothing else: the pair 03 and 09 shows what float32 sums
// cost when the accesses are the same, as 05 and 06 do, and 07 and 08. It leaves: requests of 64 bytes, the smallest of
// the ladder. 08 has the same arithmetic in accesses of 128 bits.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/precision/shared.cuh"
#include "common/operators/rms_norm_precision.h"

namespace ladder::precision::f16_f32 {

__global__ void rms_norm_f16_f32_kernel(const __half* __restrict__ x, const __half* __restrict__ weight,
                                        __half* __restrict__ y, int64_t cols, float eps) {
  const __half* row_x = x + blockIdx.x * cols;
  __half* row_y = y + blockIdx.x * cols;
  const unsigned tid = threadIdx.x;

  const float held = tid < cols ? __half2float(row_x[tid]) : 0.0f;
  float sum = held * held;
  for (int64_t col = tid + blockDim.x; col < cols; col += blockDim.x) {
    const float wide = __half2float(row_x[col]);
    sum += wide * wide;
  }
  const float rstd = rsqrtf(block_sum(sum) / static_cast<float>(cols) + eps);

  const auto write = [&](int64_t col, float value) {
    row_y[col] = __float2half(weight == nullptr ? value * rstd : value * rstd * __half2float(weight[col]));
  };
  if (tid < cols) write(tid, held);
  for (int64_t col = tid + blockDim.x; col < cols; col += blockDim.x) write(col, __half2float(row_x[col]));
}

inline void launch(const __half* x, const __half* weight, __half* y, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  const unsigned threads = threads_for(cols);
  if (rows > 0) rms_norm_f16_f32_kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(x, weight, y, cols, eps);
}

inline const Stage<RmsNormF16> stage{"09_f16_f32", "float16, sums in float32", launch, {0, RmsNormF16::refuses}};

}  // namespace ladder::precision::f16_f32
