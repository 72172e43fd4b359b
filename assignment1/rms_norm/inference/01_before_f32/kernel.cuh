// 01_before_f32: the document's row_rmsnorm_f32 and row_rmsnorm_f32_dim before they were optimized. A block of 128
// threads has a row, float4 accesses, and cub::BlockReduce for the sum.
//
// It leaves: the block's wait for its sum, 128 threads for a row that could keep more of the GPU busy, and a second
// reading of the row (counters: barrier, L1 hit rate of global loads).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cub/block/block_reduce.cuh>

#include "common/operators/rms_norm_inference.h"

namespace ladder::inference::before_f32 {

constexpr int kBlockDim = 128;

// The document's kernels assume aligned rows; these look, and read a row that is not element by element.
template <class X, class W>
__device__ bool aligned_for(const void* x, const void* weight, const void* y) {
  const auto rows = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y);
  return rows % sizeof(X) == 0 && reinterpret_cast<uintptr_t>(weight) % sizeof(W) == 0;
}

// The document counts 512 bytes.
static_assert(sizeof(cub::BlockReduce<float, kBlockDim>::TempStorage) <= 64, "the sums of four warps, and little else");

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

  using BlockReduce = cub::BlockReduce<float, kBlockDim>;
  __shared__ typename BlockReduce::TempStorage temp;
  __shared__ float shared_val;
  sum = BlockReduce(temp).Sum(sum);
  if (tid == 0) shared_val = sum;
  __syncthreads();
  const float scale = rsqrtf(shared_val / static_cast<float>(size) + eps);

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
    "01_before_f32", "all float32, before: float4 and cub::BlockReduce", launch, {0, RmsNormAllF32::refuses}};

}  // namespace ladder::inference::before_f32
