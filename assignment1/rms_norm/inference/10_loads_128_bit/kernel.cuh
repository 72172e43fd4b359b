// 10_loads_128_bit: the document's row_rmsnorm_pure_fp16 and row_rmsnorm_pure_fp16_dim after their optimization: what
// 02 to 06 changed, and eight float16 in one 128-bit access.
//
// It removes three of four requests (counter: global load requests). It leaves: one block for a row, and its second
// reading.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/inference/shared.cuh"
#include "common/operators/rms_norm_inference.h"

namespace ladder::inference::loads_128_bit {

constexpr int kBlockDim = 128;

// Two float16 in 32 bits.
__device__ inline float2 pair(unsigned bits) { return __half22float2(*reinterpret_cast<const __half2*>(&bits)); }

__device__ inline float sum_of_squares(unsigned bits) {
  const float2 x = pair(bits);
  return x.x * x.x + x.y * x.y;
}

__device__ inline unsigned scaled(unsigned bits, float scale, unsigned weight) {
  const float2 x = pair(bits), w = pair(weight);
  const __half2 y = __floats2half2_rn(scale * x.x * w.x, scale * x.y * w.y);
  return *reinterpret_cast<const unsigned*>(&y);
}

template <int BLOCK_DIM>
__device__ void normalize_row(const __half* in, const __half* wei, __half* out, int size, float eps) {
  const int tid = threadIdx.x;
  const int pack_num = aligned_for<uint4, uint4>(in, wei, out) ? size / 8 : 0, pack_off = 8 * pack_num;
  const auto* in_vec = reinterpret_cast<const uint4*>(in);
  const auto* wei_vec = reinterpret_cast<const uint4*>(wei);
  auto* out_vec = reinterpret_cast<uint4*>(out);

  float sum = 0.0f;
#pragma unroll 4
  for (int i = tid; i < pack_num; i += BLOCK_DIM) {
    const uint4 raw = in_vec[i];
    sum += sum_of_squares(raw.x) + sum_of_squares(raw.y) + sum_of_squares(raw.z) + sum_of_squares(raw.w);
  }
  for (int i = pack_off + tid; i < size; i += BLOCK_DIM) {
    const float x = __half2float(in[i]);
    sum += x * x;
  }

  __shared__ float smem_reduce[BLOCK_DIM / 32];
  const float scale = rsqrtf(block_reduce_sum<BLOCK_DIM>(sum, smem_reduce) / static_cast<float>(size) + eps);

#pragma unroll 2
  for (int i = tid; i < pack_num; i += BLOCK_DIM) {
    const uint4 raw = in_vec[i], w = __ldg(wei_vec + i);
    out_vec[i] = make_uint4(scaled(raw.x, scale, w.x), scaled(raw.y, scale, w.y), scaled(raw.z, scale, w.z),
                            scaled(raw.w, scale, w.w));
  }
  for (int i = pack_off + tid; i < size; i += BLOCK_DIM)
    out[i] = __float2half(scale * __half2float(in[i]) * __half2float(__ldg(wei + i)));
}

// One row: a decode step.
template <int BLOCK_DIM>
__global__ void row_rmsnorm_pure_fp16(const __half* __restrict__ in, const __half* __restrict__ wei,
                                      __half* __restrict__ out, int size, float eps) {
  normalize_row<BLOCK_DIM>(in, wei, out, size, eps);
}

// dim_size rows, a block each: a prefill, or a batch.
template <int BLOCK_DIM>
__global__ void row_rmsnorm_pure_fp16_dim(const __half* __restrict__ in, const __half* __restrict__ wei,
                                          __half* __restrict__ out, int dim_size, int size, float eps) {
  const int64_t bid = blockIdx.x;
  if (bid < dim_size) normalize_row<BLOCK_DIM>(in + bid * size, wei, out + bid * size, size, eps);
}

inline void launch_row(const __half* in, const __half* wei, __half* out, int64_t cols, float eps, cudaStream_t stream) {
  row_rmsnorm_pure_fp16<kBlockDim><<<1, kBlockDim, 0, stream>>>(in, wei, out, static_cast<int>(cols), eps);
}

inline void launch_dim(const __half* in, const __half* wei, __half* out, int64_t rows, int64_t cols, float eps,
                       cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  row_rmsnorm_pure_fp16_dim<kBlockDim><<<static_cast<unsigned>(rows), kBlockDim, 0, stream>>>(
      in, wei, out, static_cast<int>(rows), static_cast<int>(cols), eps);
}

inline void launch(const __half* in, const __half* wei, __half* out, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 1) return launch_row(in, wei, out, cols, eps, stream);
  launch_dim(in, wei, out, rows, cols, eps, stream);
}

inline const Stage<RmsNormPureFp16> stage{
    "10_loads_128_bit", "all float16, after: 128-bit accesses", launch, {0, RmsNormPureFp16::refuses}};

}  // namespace ladder::inference::loads_128_bit
