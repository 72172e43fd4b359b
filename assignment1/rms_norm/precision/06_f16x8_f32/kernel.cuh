// 06_f16x8_f32: the document's rms_norm_f16x8_f32_kernel. 05 with its arithmetic in float32: elements are widened as
// they come, squared, added up and scaled as floats, and rounded to float16 once, at the end.
//
// It removes the overflow of 03 to 05, since the squares of float16 numbers stay below 2^32 and float32 ends at 2^128,
// and all roundings but the last (the program's column "error").
// It costs conversions, two for each element, and no byte: the accesses are 05's.
// It leaves: 05's accesses.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/precision/shared.cuh"
#include "common/operators/rms_norm_precision.h"

namespace ladder::precision::f16x8_f32 {

struct Eight {
  __half2 pairs[4];
};

__device__ inline Eight load(const __half* from) {
  const auto* pairs = reinterpret_cast<const __half2*>(from);
  return {{pairs[0], pairs[1], pairs[2], pairs[3]}};
}

__device__ inline float sum_of_squares(const Eight& x) {
  float sum = 0.0f;
#pragma unroll
  for (const __half2& pair : x.pairs) {
    const float2 wide = __half22float2(pair);
    sum += wide.x * wide.x + wide.y * wide.y;
  }
  return sum;
}

__global__ void rms_norm_f16x8_f32_kernel(const __half* __restrict__ x, const __half* __restrict__ weight,
                                          __half* __restrict__ y, int64_t cols, float eps) {
  const __half* row_x = x + blockIdx.x * cols;
  __half* row_y = y + blockIdx.x * cols;
  const int64_t eights = aligned_for<__half2>(row_x, weight, row_y) ? cols / 8 : 0;
  const unsigned tid = threadIdx.x;

  Eight held = {};
  if (tid < eights) held = load(row_x + 8 * tid);
  float sum = sum_of_squares(held);
  for (int64_t i = tid + blockDim.x; i < eights; i += blockDim.x) sum += sum_of_squares(load(row_x + 8 * i));
  for (int64_t col = 8 * eights + tid; col < cols; col += blockDim.x) {
    const float wide = __half2float(row_x[col]);
    sum += wide * wide;
  }
  const float rstd = rsqrtf(block_sum(sum) / static_cast<float>(cols) + eps);

  const auto write = [&](int64_t i, const Eight& eight) {
    auto* to = reinterpret_cast<__half2*>(row_y + 8 * i);
    Eight w = {};
    if (weight != nullptr) w = load(weight + 8 * i);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 wide = __half22float2(eight.pairs[k]);
      const float2 factor = weight == nullptr ? make_float2(1.0f, 1.0f) : __half22float2(w.pairs[k]);
      to[k] = __floats2half2_rn(wide.x * rstd * factor.x, wide.y * rstd * factor.y);
    }
  };
  if (tid < eights) write(tid, held);
  for (int64_t i = tid + blockDim.x; i < eights; i += blockDim.x) write(i, load(row_x + 8 * i));
  for (int64_t col = 8 * eights + tid; col < cols; col += blockDim.x) {
    const float factor = weight == nullptr ? 1.0f : __half2float(weight[col]);
    row_y[col] = __float2half(__half2float(row_x[col]) * rstd * factor);
  }
}

inline void launch(const __half* x, const __half* weight, __half* y, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  const unsigned threads = threads_for((cols + 7) / 8);
  if (rows > 0) rms_norm_f16x8_f32_kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(x, weight, y, cols, eps);
}

inline const Stage<RmsNormF16> stage{
    "06_f16x8_f32", "float16, four pairs per thread, sums in float32", launch, {0, RmsNormF16::refuses}};

}  // namespace ladder::precision::f16x8_f32
