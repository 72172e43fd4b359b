// 03_f16_f16: the document's rms_norm_f16_f16_kernel. 01 with float16 in place of float32, in memory and in arithmetic.
//
// It removes half of the bytes of 01 (counter: bytes that the loads ask for, per element).
// It costs range: a float16 ends at 65504. A row whose squares add up to more has the sum inf, the factor 1 / sqrt(inf)
// = 0 and the result 0. And it costs precision: every addition rounds to 11 bits. What is promised for smaller rows is
// derived in common/operators/rms_norm_precision.cpp; more than 65504 columns are refused.
// It leaves: the range, until 06; and requests of 2 bytes per lane, 64 bytes in all.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/precision/shared.cuh"
#include "common/operators/rms_norm_precision.h"

namespace ladder::precision::f16_f16 {

// Ten roundings to float16, five among the lanes of a warp and five among the warps.
__device__ inline __half block_reduce_sum_f16(__half value) {
  __shared__ __half warp_sums[32];
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value = __hadd(value, __shfl_xor_sync(0xffffffffu, value, mask));
  if (lane == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  __half sum = lane < blockDim.x / 32 ? warp_sums[lane] : __float2half(0.0f);
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) sum = __hadd(sum, __shfl_xor_sync(0xffffffffu, sum, mask));
  return sum;
}

__global__ void rms_norm_f16_f16_kernel(const __half* __restrict__ x, const __half* __restrict__ weight,
                                        __half* __restrict__ y, int64_t cols, float eps) {
  const __half* row_x = x + blockIdx.x * cols;
  __half* row_y = y + blockIdx.x * cols;
  const unsigned tid = threadIdx.x;

  const __half held = tid < cols ? row_x[tid] : __float2half(0.0f);
  __half sum = __hmul(held, held);
  for (int64_t col = tid + blockDim.x; col < cols; col += blockDim.x) {
    const __half value = row_x[col];
    sum = __hfma(value, value, sum);
  }
  const __half mean = __hdiv(block_reduce_sum_f16(sum), __ll2half_rn(cols));
  const __half rstd = hrsqrt(__hadd(mean, __float2half(eps)));

  const auto write = [&](int64_t col, __half value) {
    const __half normalized = __hmul(value, rstd);
    row_y[col] = weight == nullptr ? normalized : __hmul(normalized, weight[col]);
  };
  if (tid < cols) write(tid, held);
  for (int64_t col = tid + blockDim.x; col < cols; col += blockDim.x) write(col, row_x[col]);
}

inline void launch(const __half* x, const __half* weight, __half* y, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  const unsigned threads = threads_for(cols);
  if (rows > 0) rms_norm_f16_f16_kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(x, weight, y, cols, eps);
}

inline const Stage<RmsNormF16F16> stage{
    "03_f16_f16", "float16 in memory and in arithmetic", launch, {0, RmsNormF16F16::refuses}};

}  // namespace ladder::precision::f16_f16
