// 07_before_fp16w: the document's row_rmsnorm_f32_fp16w and row_rmsnorm_f32_fp16w_dim before they were optimized: 01
// with a weight of float16, read element by element.
//
// It halves the bytes of the weight. It leaves: four loads for four elements of the weight, each of which touches all
// of the sectors that one load could bring (counter: sectors per request).
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cub/block/block_reduce.cuh>

#include "assignment1/rms_norm/inference/shared.cuh"
#include "common/operators/rms_norm_inference.h"

namespace ladder::inference::before_fp16w {

constexpr int kBlockDim = 128;

__device__ inline void normalize_row(const float* in, const __half* wei, float* out, int size, float eps) {
  const int tid = threadIdx.x;
  const int pack_num = aligned_for<float4, __half>(in, wei, out) ? size / 4 : 0, pack_off = 4 * pack_num;
  const auto* in_pack = reinterpret_cast<const float4*>(in);
  auto* out_pack = reinterpret_cast<float4*>(out);

  float sum = 0.0f;
  for (int i = tid; i < pack_num; i += blockDim.x) {
    const float4 x = in_pack[i];
    sum += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
  }
  for (int i = pack_off + tid; i < size; i += blockDim.x) sum += in[i] * in[i];

  using BlockReduce = cub::BlockReduce<float, kBlockDim>;
  __shared__ typename BlockReduce::TempStorage temp;
  __shared__ float shared_val;
  sum = BlockReduce(temp).Sum(sum);
  if (tid == 0) shared_val = sum;
  __syncthreads();
  const float scale = rsqrtf(shared_val / static_cast<float>(size) + eps);

  for (int i = tid; i < pack_num; i += blockDim.x) {
    const float4 x = in_pack[i];
    const int base_idx = 4 * i;
    const float w0 = __half2float(wei[base_idx]);
    const float w1 = __half2float(wei[base_idx + 1]);
    const float w2 = __half2float(wei[base_idx + 2]);
    const float w3 = __half2float(wei[base_idx + 3]);
    out_pack[i] = make_float4(scale * x.x * w0, scale * x.y * w1, scale * x.z * w2, scale * x.w * w3);
  }
  for (int i = pack_off + tid; i < size; i += blockDim.x) out[i] = scale * in[i] * __half2float(wei[i]);
}

// One row: a decode step.
__global__ void row_rmsnorm_f32_fp16w(const float* in, const __half* wei, float* out, int size, float eps) {
  normalize_row(in, wei, out, size, eps);
}

// dim_size rows, a block each: a prefill, or a batch.
__global__ void row_rmsnorm_f32_fp16w_dim(const float* in, const __half* wei, float* out, int dim_size, int size,
                                          float eps) {
  const int64_t bid = blockIdx.x;
  if (bid < dim_size) normalize_row(in + bid * size, wei, out + bid * size, size, eps);
}

inline void launch_row(const float* in, const __half* wei, float* out, int64_t cols, float eps, cudaStream_t stream) {
  row_rmsnorm_f32_fp16w<<<1, kBlockDim, 0, stream>>>(in, wei, out, static_cast<int>(cols), eps);
}

inline void launch_dim(const float* in, const __half* wei, float* out, int64_t rows, int64_t cols, float eps,
                       cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  row_rmsnorm_f32_fp16w_dim<<<static_cast<unsigned>(rows), kBlockDim, 0, stream>>>(in, wei, out, static_cast<int>(rows),
                                                                                   static_cast<int>(cols), eps);
}

inline void launch(const float* in, const __half* wei, float* out, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 1) return launch_row(in, wei, out, cols, eps, stream);
  launch_dim(in, wei, out, rows, cols, eps, stream);
}

inline const Stage<RmsNormF32Fp16w> stage{"07_before_fp16w",
                                          "float32 with a float16 weight, before: four 16-bit loads",
                                          launch,
                                          {0, RmsNormF32Fp16w::refuses}};

}  // namespace ladder::inference::before_fp16w
