// 09_before_pure_fp16: the document's row_rmsnorm_pure_fp16 and row_rmsnorm_pure_fp16_dim before they were optimized:
// 01 with elements of float16 and 32-bit accesses. The sum is float32.
//
// It halves the bytes of 01. It leaves: twice as many requests as 01 makes, each of which a thread waits for (counters:
// global load requests, stalled on global memory).
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cub/block/block_reduce.cuh>

#include "assignment1/rms_norm/inference/shared.cuh"
#include "common/operators/rms_norm_inference.h"

namespace ladder::inference::before_pure_fp16 {

constexpr int kBlockDim = 128;

__device__ inline void normalize_row(const __half* in, const __half* wei, __half* out, int size, float eps) {
  const int tid = threadIdx.x;
  const int pack_num = aligned_for<__half2, __half2>(in, wei, out) ? size / 2 : 0, pack_off = 2 * pack_num;
  const auto* in_h2 = reinterpret_cast<const __half2*>(in);
  const auto* wei_h2 = reinterpret_cast<const __half2*>(wei);
  auto* out_h2 = reinterpret_cast<__half2*>(out);

  float sum = 0.0f;
  for (int i = tid; i < pack_num; i += blockDim.x) {
    const float2 x = __half22float2(in_h2[i]);
    sum += x.x * x.x + x.y * x.y;
  }
  for (int i = pack_off + tid; i < size; i += blockDim.x) {
    const float x = __half2float(in[i]);
    sum += x * x;
  }

  using BlockReduce = cub::BlockReduce<float, kBlockDim>;
  __shared__ typename BlockReduce::TempStorage temp;
  __shared__ float shared_val;
  sum = BlockReduce(temp).Sum(sum);
  if (tid == 0) shared_val = sum;
  __syncthreads();
  const float scale = rsqrtf(shared_val / static_cast<float>(size) + eps);

  for (int i = tid; i < pack_num; i += blockDim.x) {
    const float2 x = __half22float2(in_h2[i]), w = __half22float2(wei_h2[i]);
    out_h2[i] = __floats2half2_rn(scale * x.x * w.x, scale * x.y * w.y);
  }
  for (int i = pack_off + tid; i < size; i += blockDim.x)
    out[i] = __float2half(scale * __half2float(in[i]) * __half2float(wei[i]));
}

// One row: a decode step.
__global__ void row_rmsnorm_pure_fp16(const __half* in, const __half* wei, __half* out, int size, float eps) {
  normalize_row(in, wei, out, size, eps);
}

// dim_size rows, a block each: a prefill, or a batch.
__global__ void row_rmsnorm_pure_fp16_dim(const __half* in, const __half* wei, __half* out, int dim_size, int size,
                                          float eps) {
  const int64_t bid = blockIdx.x;
  if (bid < dim_size) normalize_row(in + bid * size, wei, out + bid * size, size, eps);
}

inline void launch_row(const __half* in, const __half* wei, __half* out, int64_t cols, float eps, cudaStream_t stream) {
  row_rmsnorm_pure_fp16<<<1, kBlockDim, 0, stream>>>(in, wei, out, static_cast<int>(cols), eps);
}

inline void launch_dim(const __half* in, const __half* wei, __half* out, int64_t rows, int64_t cols, float eps,
                       cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  row_rmsnorm_pure_fp16_dim<<<static_cast<unsigned>(rows), kBlockDim, 0, stream>>>(in, wei, out, static_cast<int>(rows),
                                                                                   static_cast<int>(cols), eps);
}

inline void launch(const __half* in, const __half* wei, __half* out, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 1) return launch_row(in, wei, out, cols, eps, stream);
  launch_dim(in, wei, out, rows, cols, eps, stream);
}

inline const Stage<RmsNormPureFp16> stage{"09_before_pure_fp16",
                                          "all float16, before: half2 accesses and cub::BlockReduce",
                                          launch,
                                          {0, RmsNormPureFp16::refuses}};

}  // namespace ladder::inference::before_pure_fp16
