// 08_f16x8_pack_f32: the document's rms_norm_f16x8_pack_f32_kernel, and its advice: 128-bit accesses and float32 sums.
//
// It removes what was left of 07: the range and the roundings of float16 arithmetic. It is 07's accesses with 06's
// arithmetic, so it costs no byte more than 07, and two conversions for each element.
// It leaves: a weight of float16 that every row reads again, and a row that waits for its own sum before its first
// store.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/precision/shared.cuh"
#include "common/operators/rms_norm_precision.h"

namespace ladder::precision::f16x8_pack_f32 {

struct alignas(16) Eight {
  __half2 pairs[4];
};

__device__ inline Eight load(const __half* from) {
  Eight eight;
  *reinterpret_cast<uint4*>(eight.pairs) = *reinterpret_cast<const uint4*>(from);
  return eight;
}

__device__ inline void store(__half* to, const Eight& eight) {
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(eight.pairs);
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

__global__ void rms_norm_f16x8_pack_f32_kernel(const __half* __restrict__ x, const __half* __restrict__ weight,
                                               __half* __restrict__ y, int64_t cols, float eps) {
  const __half* row_x = x + blockIdx.x * cols;
  __half* row_y = y + blockIdx.x * cols;
  const int64_t eights = aligned_for<uint4>(row_x, weight, row_y) ? cols / 8 : 0;
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
    Eight w = {}, result;
    if (weight != nullptr) w = load(weight + 8 * i);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 wide = __half22float2(eight.pairs[k]);
      const float2 factor = weight == nullptr ? make_float2(1.0f, 1.0f) : __half22float2(w.pairs[k]);
      result.pairs[k] = __floats2half2_rn(wide.x * rstd * factor.x, wide.y * rstd * factor.y);
    }
    store(row_y + 8 * i, result);
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
  if (rows > 0)
    rms_norm_f16x8_pack_f32_kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(x, weight, y, cols, eps);
}

inline const Stage<RmsNormF16> stage{
    "08_f16x8_pack_f32", "float16, eight elements per access, sums in float32", launch, {0, RmsNormF16::refuses}};

}  // namespace ladder::precision::f16x8_pack_f32
