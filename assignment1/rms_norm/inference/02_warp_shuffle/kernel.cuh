// 02_warp_shuffle: shuffles in place of cub::BlockReduce, as the document writes them.
//
// It removes CUB's storage and its include. It removes no barrier: CUB's sum of 128 values takes one, and the
// broadcast after it another, and so it does here (counter: barriers per row).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/inference/shared.cuh"
#include "common/operators/rms_norm_inference.h"

namespace ladder::inference::warp_shuffle {

constexpr int kBlockDim = 128;

// Lane 0 gets the sum of its warp.
__device__ inline float warp_reduce_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}

// Every thread gets the sum of its block. smem: a float for each warp.
template <int BLOCK_DIM>
__device__ float block_reduce_sum(float value, float* smem) {
  constexpr int kWarps = BLOCK_DIM / 32;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = warp_reduce_sum(value);
  if (lane == 0) smem[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = warp_reduce_sum(lane < kWarps ? smem[lane] : 0.0f);
    if (lane == 0) smem[0] = value;
  }
  __syncthreads();
  return smem[0];
}

__device__ inline void normalize_row(const float* in, const float* wei, float* out, int size, float eps) {
  const int tid = threadIdx.x;
  const int pack_num = aligned_for<float4, float4>(in, wei, out) ? size / 4 : 0, pack_off = 4 * pack_num;
  const auto* in_pack = reinterpret_cast<const float4*>(in);
  const auto* wei_pack = reinterpret_cast<const float4*>(wei);
  auto* out_pack = reinterpret_cast<float4*>(out);

  float sum = 0.0f;
  for (int i = tid; i < pack_num; i += blockDim.x) {
    const float4 x = in_pack[i];
    sum += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
  }
  for (int i = pack_off + tid; i < size; i += blockDim.x) sum += in[i] * in[i];

  __shared__ float smem_reduce[kBlockDim / 32];
  const float scale = rsqrtf(block_reduce_sum<kBlockDim>(sum, smem_reduce) / static_cast<float>(size) + eps);

  for (int i = tid; i < pack_num; i += blockDim.x) {
    const float4 x = in_pack[i], w = wei_pack[i];
    out_pack[i] = make_float4(scale * x.x * w.x, scale * x.y * w.y, scale * x.z * w.z, scale * x.w * w.w);
  }
  for (int i = pack_off + tid; i < size; i += blockDim.x) out[i] = scale * in[i] * wei[i];
}

// One row: a decode step.
__global__ void row_rmsnorm_f32(const float* in, const float* wei, float* out, int size, float eps) {
  normalize_row(in, wei, out, size, eps);
}

// dim_size rows, a block each: a prefill, or a batch.
__global__ void row_rmsnorm_f32_dim(const float* in, const float* wei, float* out, int dim_size, int size, float eps) {
  const int64_t bid = blockIdx.x;
  if (bid < dim_size) normalize_row(in + bid * size, wei, out + bid * size, size, eps);
}

inline void launch_row(const float* in, const float* wei, float* out, int64_t cols, float eps, cudaStream_t stream) {
  row_rmsnorm_f32<<<1, kBlockDim, 0, stream>>>(in, wei, out, static_cast<int>(cols), eps);
}

inline void launch_dim(const float* in, const float* wei, float* out, int64_t rows, int64_t cols, float eps,
                       cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  row_rmsnorm_f32_dim<<<static_cast<unsigned>(rows), kBlockDim, 0, stream>>>(in, wei, out, static_cast<int>(rows),
                                                                             static_cast<int>(cols), eps);
}

inline void launch(const float* in, const float* wei, float* out, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 1) return launch_row(in, wei, out, cols, eps, stream);
  launch_dim(in, wei, out, rows, cols, eps, stream);
}

inline const Stage<RmsNormAllF32> stage{
    "02_warp_shuffle", "the sum by shuffles, in place of cub::BlockReduce", launch, {0, RmsNormAllF32::refuses}};

}  // namespace ladder::inference::warp_shuffle
