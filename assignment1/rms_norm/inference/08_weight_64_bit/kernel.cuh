// 08_weight_64_bit: the document's row_rmsnorm_f32_fp16w and row_rmsnorm_f32_fp16w_dim after their optimization: what
// 02 to 06 changed, and four elements of the weight in one 64-bit load.
//
// It removes three of four requests for the weight (counter: global load requests). It leaves what 06 leaves.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/inference/shared.cuh"
#include "common/operators/rms_norm_inference.h"

namespace ladder::inference::weight_64_bit {

constexpr int kBlockDim = 128;

template <int BLOCK_DIM>
__device__ void normalize_row(const float* in, const __half* wei, float* out, int size, float eps) {
  const int tid = threadIdx.x;
  const int pack_num = aligned_for<float4, uint2>(in, wei, out) ? size / 4 : 0, pack_off = 4 * pack_num;
  const auto* in_pack = reinterpret_cast<const float4*>(in);
  const auto* wei_u2 = reinterpret_cast<const uint2*>(wei);
  auto* out_pack = reinterpret_cast<float4*>(out);

  float sum = 0.0f;
#pragma unroll 4
  for (int i = tid; i < pack_num; i += BLOCK_DIM) {
    const float4 x = in_pack[i];
    sum += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
  }
  for (int i = pack_off + tid; i < size; i += BLOCK_DIM) sum += in[i] * in[i];

  __shared__ float smem_reduce[BLOCK_DIM / 32];
  const float scale = rsqrtf(block_reduce_sum<BLOCK_DIM>(sum, smem_reduce) / static_cast<float>(size) + eps);

#pragma unroll 4
  for (int i = tid; i < pack_num; i += BLOCK_DIM) {
    const float4 x = in_pack[i];
    const uint2 w_raw = __ldg(wei_u2 + i);
    const float2 fw01 = __half22float2(*reinterpret_cast<const __half2*>(&w_raw.x));
    const float2 fw23 = __half22float2(*reinterpret_cast<const __half2*>(&w_raw.y));
    out_pack[i] = make_float4(scale * x.x * fw01.x, scale * x.y * fw01.y, scale * x.z * fw23.x, scale * x.w * fw23.y);
  }
  for (int i = pack_off + tid; i < size; i += BLOCK_DIM) out[i] = scale * in[i] * __half2float(__ldg(wei + i));
}

// One row: a decode step.
template <int BLOCK_DIM>
__global__ void row_rmsnorm_f32_fp16w(const float* __restrict__ in, const __half* __restrict__ wei,
                                      float* __restrict__ out, int size, float eps) {
  normalize_row<BLOCK_DIM>(in, wei, out, size, eps);
}

// dim_size rows, a block each: a prefill, or a batch.
template <int BLOCK_DIM>
__global__ void row_rmsnorm_f32_fp16w_dim(const float* __restrict__ in, const __half* __restrict__ wei,
                                          float* __restrict__ out, int dim_size, int size, float eps) {
  const int64_t bid = blockIdx.x;
  if (bid < dim_size) normalize_row<BLOCK_DIM>(in + bid * size, wei, out + bid * size, size, eps);
}

inline void launch_row(const float* in, const __half* wei, float* out, int64_t cols, float eps, cudaStream_t stream) {
  row_rmsnorm_f32_fp16w<kBlockDim><<<1, kBlockDim, 0, stream>>>(in, wei, out, static_cast<int>(cols), eps);
}

inline void launch_dim(const float* in, const __half* wei, float* out, int64_t rows, int64_t cols, float eps,
                       cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  row_rmsnorm_f32_fp16w_dim<kBlockDim><<<static_cast<unsigned>(rows), kBlockDim, 0, stream>>>(
      in, wei, out, static_cast<int>(rows), static_cast<int>(cols), eps);
}

inline void launch(const float* in, const __half* wei, float* out, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 1) return launch_row(in, wei, out, cols, eps, stream);
  launch_dim(in, wei, out, rows, cols, eps, stream);
}

inline const Stage<RmsNormF32Fp16w> stage{
    "08_weight_64_bit", "float32 with a float16 weight, after: one 64-bit load", launch, {0, RmsNormF32Fp16w::refuses}};

}  // namespace ladder::inference::weight_64_bit
