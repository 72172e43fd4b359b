// 11_bf16x8_pack_f32: 08 with bfloat16 in memory. It has no original in the document.
//
// It removes a range of 08 that a float32 sum does not help: an element itself ends at 65504 in float16, and at 3.4e38
// in bfloat16.
// It costs three bits of every element and of every result: the last rounding is to 8 bits in place of 11.
// It leaves: what 08 leaves.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/precision/shared.cuh"
#include "common/operators/rms_norm_precision.h"

namespace ladder::precision::bf16x8_pack_f32 {

struct alignas(16) Eight {
  __nv_bfloat162 pairs[4];
};

__device__ inline Eight load(const __nv_bfloat16* from) {
  Eight eight;
  *reinterpret_cast<uint4*>(eight.pairs) = *reinterpret_cast<const uint4*>(from);
  return eight;
}

__device__ inline void store(__nv_bfloat16* to, const Eight& eight) {
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(eight.pairs);
}

__device__ inline float sum_of_squares(const Eight& x) {
  float sum = 0.0f;
#pragma unroll
  for (const __nv_bfloat162& pair : x.pairs) {
    const float2 wide = __bfloat1622float2(pair);
    sum += wide.x * wide.x + wide.y * wide.y;
  }
  return sum;
}

__global__ void rms_norm_bf16x8_pack_f32_kernel(const __nv_bfloat16* __restrict__ x,
                                                const __nv_bfloat16* __restrict__ weight, __nv_bfloat16* __restrict__ y,
                                                int64_t cols, float eps) {
  const __nv_bfloat16* row_x = x + blockIdx.x * cols;
  __nv_bfloat16* row_y = y + blockIdx.x * cols;
  const int64_t eights = aligned_for<uint4>(row_x, weight, row_y) ? cols / 8 : 0;
  const unsigned tid = threadIdx.x;

  Eight held = {};
  if (tid < eights) held = load(row_x + 8 * tid);
  float sum = sum_of_squares(held);
  for (int64_t i = tid + blockDim.x; i < eights; i += blockDim.x) sum += sum_of_squares(load(row_x + 8 * i));
  for (int64_t col = 8 * eights + tid; col < cols; col += blockDim.x) {
    const float wide = __bfloat162float(row_x[col]);
    sum += wide * wide;
  }
  const float rstd = rsqrtf(block_sum(sum) / static_cast<float>(cols) + eps);

  const auto write = [&](int64_t i, const Eight& eight) {
    Eight w = {}, result;
    if (weight != nullptr) w = load(weight + 8 * i);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 wide = __bfloat1622float2(eight.pairs[k]);
      const float2 factor = weight == nullptr ? make_float2(1.0f, 1.0f) : __bfloat1622float2(w.pairs[k]);
      result.pairs[k] = __floats2bfloat162_rn(wide.x * rstd * factor.x, wide.y * rstd * factor.y);
    }
    store(row_y + 8 * i, result);
  };
  if (tid < eights) write(tid, held);
  for (int64_t i = tid + blockDim.x; i < eights; i += blockDim.x) write(i, load(row_x + 8 * i));
  for (int64_t col = 8 * eights + tid; col < cols; col += blockDim.x) {
    const float factor = weight == nullptr ? 1.0f : __bfloat162float(weight[col]);
    row_y[col] = __float2bfloat16(__bfloat162float(row_x[col]) * rstd * factor);
  }
}

inline void launch(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int64_t rows, int64_t cols,
                   float eps, cudaStream_t stream) {
  const unsigned threads = threads_for((cols + 7) / 8);
  if (rows > 0)
    rms_norm_bf16x8_pack_f32_kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(x, weight, y, cols, eps);
}

inline const Stage<RmsNormBf16> stage{
    "11_bf16x8_pack_f32", "bfloat16, eight elements per access, sums in float32", launch, {80, RmsNormBf16::refuses}};

}  // namespace ladder::precision::bf16x8_pack_f32
