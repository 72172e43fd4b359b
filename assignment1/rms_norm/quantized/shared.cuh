// What more than one stage of the quantized ladder uses. The stage that introduces something says so.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/rms_norm_quantized.h"

namespace ladder::quantized {

using bf16 = __nv_bfloat16;

// body(format), with the format as a constant.
template <class Body>
void with_format(Format format, Body body) {
  if (format == Format::e4m3)
    body(std::integral_constant<Format, Format::e4m3>());
  else
    body(std::integral_constant<Format, Format::int8>());
}

// The nearest code of a number: ties to even; what is too large becomes the largest number of its sign. 01_two_kernels.
template <Format format>
__device__ uint8_t code_of(float number) {
  if constexpr (format == Format::e4m3) return __nv_cvt_float_to_fp8(number, __NV_SATFINITE, __NV_E4M3);
  return static_cast<uint8_t>(max(-128, min(127, __float2int_rn(number))));
}

// What is normalized: x, or x + residual, rounded.
__device__ inline bf16 kept_at(const QuantizedCall& c, int64_t i) {
  return c.residual == nullptr ? c.x[i] : __float2bfloat16(__bfloat162float(c.x[i]) + __bfloat162float(c.residual[i]));
}
// kept · weight, which times rstd is the norm.
__device__ inline float product_of(const QuantizedCall& c, bf16 kept, int64_t col) {
  return c.weight == nullptr ? __bfloat162float(kept) : __bfloat162float(kept) * __bfloat162float(c.weight[col]);
}
__device__ inline bf16 norm_of(float product, float rstd) { return __float2bfloat16(product * rstd); }
__device__ inline float rstd_of(const QuantizedCall& c, float sum) {
  return rsqrtf(sum / static_cast<float>(c.cols) + c.eps);
}
// The scale of a row or block whose largest |y| is `most`.
template <Format format>
__device__ float scale_of(const QuantizedCall& c, float most) {
  return c.scale != nullptr ? *c.scale : fmaxf(most / kLargest<format>, kLeastScale<format>);
}

__device__ inline float warp_reduce_max(float value) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, mask));
  return value;
}
// Every thread gets the largest of its block's values: whole warps, at most 32; in_warps: 32 floats. One barrier.
__device__ inline float block_max(float value, float* in_warps) {
  value = warp_reduce_max(value);
  if (threadIdx.x % 32 == 0) in_warps[threadIdx.x / 32] = value;
  __syncthreads();
  return warp_reduce_max(threadIdx.x % 32 < blockDim.x / 32 ? in_warps[threadIdx.x % 32] : 0.0f);
}
__device__ inline float block_sum(float value, float* in_warps) {
  value = warp_reduce_sum(value);
  if (threadIdx.x % 32 == 0) in_warps[threadIdx.x / 32] = value;
  __syncthreads();
  return warp_reduce_sum(threadIdx.x % 32 < blockDim.x / 32 ? in_warps[threadIdx.x % 32] : 0.0f);
}
// Both, with one barrier. 03_one_reduction.
struct SumAndMost {
  float sum, most;
};
__device__ inline SumAndMost block_sum_and_most(SumAndMost value, SumAndMost* in_warps) {
  value = {warp_reduce_sum(value.sum), warp_reduce_max(value.most)};
  if (threadIdx.x % 32 == 0) in_warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < blockDim.x / 32 ? in_warps[threadIdx.x % 32] : SumAndMost{0.0f, 0.0f};
  return {warp_reduce_sum(value.sum), warp_reduce_max(value.most)};
}

constexpr int kThreads = 256;  // of the blocks that walk over a row

// Columns that a thread keeps, and the threads of a block that keeps a row of at most 8192. 04_registers.
constexpr int kColumns = 8, kMostThreads = 1024;
inline unsigned threads_for(int64_t cols) { return static_cast<unsigned>(blocks_for(cols, kColumns * 32) * 32); }

// Eight neighbours: 16 bytes, and their codes 8. 05_packed.
struct alignas(16) Pack {
  bf16 values[kColumns];
};
struct alignas(8) CodePack {
  uint8_t codes[kColumns];
};
// From `columns` elements on nothing is read or written. vector: the address is a multiple of 16 bytes (of codes: of
// 8), and all eight are there.
__device__ inline Pack load_pack(const bf16* from, bool vector, int64_t columns) {
  Pack pack = {};
  if (vector) {
    *reinterpret_cast<uint4*>(pack.values) = *reinterpret_cast<const uint4*>(from);
  } else {
#pragma unroll
    for (int k = 0; k < kColumns; ++k)
      if (k < columns) pack.values[k] = from[k];
  }
  return pack;
}
__device__ inline void store_pack(bf16* to, const Pack& pack, bool vector, int64_t columns) {
  if (vector) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(pack.values);
  } else {
#pragma unroll
    for (int k = 0; k < kColumns; ++k)
      if (k < columns) to[k] = pack.values[k];
  }
}
__device__ inline void store_codes(uint8_t* to, const CodePack& pack, bool vector, int64_t columns) {
  if (vector) {
    *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(pack.codes);
  } else {
#pragma unroll
    for (int k = 0; k < kColumns; ++k)
      if (k < columns) to[k] = pack.codes[k];
  }
}
// Two conversions are one instruction: cvt.rn.satfinite.e4m3x2.
template <Format format>
__device__ CodePack codes_of(const Pack& y, float inverse) {
  CodePack pack;
#pragma unroll
  for (int k = 0; k < kColumns; k += 2) {
    const float2 two = {__bfloat162float(y.values[k]) * inverse, __bfloat162float(y.values[k + 1]) * inverse};
    if constexpr (format == Format::e4m3) {
      reinterpret_cast<__nv_fp8x2_storage_t*>(pack.codes)[k / 2] =
          __nv_cvt_float2_to_fp8x2(two, __NV_SATFINITE, __NV_E4M3);
    } else {
      pack.codes[k] = code_of<format>(two.x);
      pack.codes[k + 1] = code_of<format>(two.y);
    }
  }
  return pack;
}
// Whether every row's packs are whole and aligned. A null pointer counts as aligned.
inline bool takes_vectors(const QuantizedCall& c) {
  const auto bits = reinterpret_cast<uintptr_t>(c.x) | reinterpret_cast<uintptr_t>(c.weight) |
                    reinterpret_cast<uintptr_t>(c.residual) | reinterpret_cast<uintptr_t>(c.residual_out) |
                    reinterpret_cast<uintptr_t>(c.y);
  return bits % 16 == 0 && reinterpret_cast<uintptr_t>(c.q) % 8 == 0 && c.cols % kColumns == 0;
}

// A thread's eight columns of a row: what is normalized, and its products with the weight. 05_packed.
struct Eight {
  Pack kept;
  float product[kColumns];
};
__device__ inline Eight load_eight(const QuantizedCall& c, int64_t begin, int64_t first, bool vector, int64_t columns) {
  Eight eight;
  eight.kept = load_pack(c.x + begin, vector, columns);
  if (c.residual != nullptr) {
    const Pack added = load_pack(c.residual + begin, vector, columns);
#pragma unroll
    for (int k = 0; k < kColumns; ++k)
      eight.kept.values[k] =
          __float2bfloat16(__bfloat162float(eight.kept.values[k]) + __bfloat162float(added.values[k]));
  }
  if (c.residual_out != nullptr) store_pack(c.residual_out + begin, eight.kept, vector, columns);
  const Pack weight = c.weight == nullptr ? Pack{} : load_pack(c.weight + first, vector, columns);
#pragma unroll
  for (int k = 0; k < kColumns; ++k)
    eight.product[k] =
        __bfloat162float(eight.kept.values[k]) * (c.weight == nullptr ? 1.0f : __bfloat162float(weight.values[k]));
  return eight;
}
__device__ inline SumAndMost sum_and_most(const Eight& eight) {
  SumAndMost result = {};
#pragma unroll
  for (int k = 0; k < kColumns; ++k) {
    const float value = __bfloat162float(eight.kept.values[k]);
    result.sum += value * value;
    result.most = fmaxf(result.most, fabsf(eight.product[k]));
  }
  return result;
}
template <Format format>
__device__ void store_eight(const QuantizedCall& c, int64_t begin, const Eight& eight, float rstd, float scale,
                            bool vector, int64_t columns) {
  Pack y;
#pragma unroll
  for (int k = 0; k < kColumns; ++k) y.values[k] = norm_of(eight.product[k], rstd);
  store_codes(static_cast<uint8_t*>(c.q) + begin, codes_of<format>(y, 1.0f / scale), vector, columns);
  if (c.y != nullptr) store_pack(c.y + begin, y, vector, columns);
}

}  // namespace ladder::quantized
