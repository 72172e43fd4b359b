// 05_f16x8_f16: the document's rms_norm_f16x8_f16_kernel. A thread has eight neighbouring float16, as four half2.
//
// It removes three of four threads of 04 and their share of the reduction; each thread asks for four half2 before it
// needs the first. (The document expects more hits in L2 from it.)
// It costs sectors: between the lanes of one request lie 16 bytes, so it touches 16 sectors where its 128 bytes would
// fit into 4 (counter: sectors per request). The other three requests of the thread find those sectors in L1.
// It leaves: those, until 07; and 03's range.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/precision/shared.cuh"
#include "common/operators/rms_norm_precision.h"

namespace ladder::precision::f16x8_f16 {

struct Eight {
  __half2 pairs[4];
};

__device__ inline Eight load(const __half* from) {
  const auto* pairs = reinterpret_cast<const __half2*>(from);
  return {{pairs[0], pairs[1], pairs[2], pairs[3]}};
}

// The two halves of sums add up the elements in even and in odd columns.
__device__ inline __half2 add_squares(const Eight& x, __half2 sums) {
#pragma unroll
  for (const __half2& pair : x.pairs) sums = __hfma2(pair, pair, sums);
  return sums;
}

__global__ void rms_norm_f16x8_f16_kernel(const __half* __restrict__ x, const __half* __restrict__ weight,
                                          __half* __restrict__ y, int64_t cols, float eps) {
  const __half* row_x = x + blockIdx.x * cols;
  __half* row_y = y + blockIdx.x * cols;
  const int64_t eights = aligned_for<__half2>(row_x, weight, row_y) ? cols / 8 : 0;
  const unsigned tid = threadIdx.x;

  Eight held = {};
  if (tid < eights) held = load(row_x + 8 * tid);
  __half2 sums = add_squares(held, __float2half2_rn(0.0f));
  for (int64_t i = tid + blockDim.x; i < eights; i += blockDim.x) sums = add_squares(load(row_x + 8 * i), sums);
  __half sum = __hadd(__low2half(sums), __high2half(sums));
  for (int64_t col = 8 * eights + tid; col < cols; col += blockDim.x) {
    const __half value = row_x[col];
    sum = __hfma(value, value, sum);
  }
  const __half mean = __hdiv(block_sum(sum), __ll2half_rn(cols));
  const __half rstd = hrsqrt(__hadd(mean, __float2half(eps)));

  const auto write = [&](int64_t i, const Eight& eight) {
    auto* to = reinterpret_cast<__half2*>(row_y + 8 * i);
    Eight w = {};
    if (weight != nullptr) w = load(weight + 8 * i);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const __half2 normalized = __hmul2(eight.pairs[k], __half2half2(rstd));
      to[k] = weight == nullptr ? normalized : __hmul2(normalized, w.pairs[k]);
    }
  };
  if (tid < eights) write(tid, held);
  for (int64_t i = tid + blockDim.x; i < eights; i += blockDim.x) write(i, load(row_x + 8 * i));
  for (int64_t col = 8 * eights + tid; col < cols; col += blockDim.x) {
    const __half normalized = __hmul(row_x[col], rstd);
    row_y[col] = weight == nullptr ? normalized : __hmul(normalized, weight[col]);
  }
}

inline void launch(const __half* x, const __half* weight, __half* y, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  const unsigned threads = threads_for((cols + 7) / 8);
  if (rows > 0) rms_norm_f16x8_f16_kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(x, weight, y, cols, eps);
}

inline const Stage<RmsNormF16F16> stage{
    "05_f16x8_f16", "float16, four pairs per thread", launch, {0, RmsNormF16F16::refuses}};

}  // namespace ladder::precision::f16x8_f16
