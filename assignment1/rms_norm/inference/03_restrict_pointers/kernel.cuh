// 03_restrict_pointers: the kernels promise that their pointers do not overlap.
//
// It lets the compiler load the next element before it has stored the last one, and read input and weight by the
// read-only path (instruction: LDG.E.128.CONSTANT). It costs calls in place, which break the promise.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/inference/shared.cuh"
#include "common/operators/rms_norm_inference.h"

namespace ladder::inference::restrict_pointers {

constexpr int kBlockDim = 128;

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
__global__ void row_rmsnorm_f32(const float* __restrict__ in, const float* __restrict__ wei, float* __restrict__ out,
                                int size, float eps) {
  normalize_row(in, wei, out, size, eps);
}

// dim_size rows, a block each: a prefill, or a batch.
__global__ void row_rmsnorm_f32_dim(const float* __restrict__ in, const float* __restrict__ wei,
                                    float* __restrict__ out, int dim_size, int size, float eps) {
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
    "03_restrict_pointers", "__restrict__ on every pointer", launch, {0, RmsNormAllF32::refuses}};

}  // namespace ladder::inference::restrict_pointers
