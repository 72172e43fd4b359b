// 13_cluster: 10_block_shapes with 2, 4 or 8 blocks per row, which exchange their sums through each other's shared
// memory.
//
// It removes the limit of all stages before: one block, hence one SM, per row. The blocks of a cluster run at the same
// time on neighbouring SMs, and each can write into the shared memory of the others. A matrix of a few long rows gets
// up to eight times as many SMs (counters: blocks in the grid; achieved occupancy). A matrix of many rows, whose blocks
// fill the GPU anyway, gains nothing and pays for the exchange. Needs sm_90.
// It leaves: only eight of 132 SMs work on one row, and a launch waits for the launch before it.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/cuda_check.h"
#include "common/kernel_helpers.cuh"
#include "common/operators/rms_norm.h"

namespace ladder::matrix::cluster {

constexpr int kMostThreads = 1024;
constexpr int kMostParts = 8;  // what every GPU with clusters can do

template <int kVectors>
__global__ void __launch_bounds__(kMostThreads)
    rms_norm_kernel_cluster(const float* __restrict__ input, const float* __restrict__ weight,
                            float* __restrict__ output, int64_t cols, float inverse_cols, float eps, int parts) {
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  auto here = cluster.barrier_arrive();  // the wait is below, where it no longer takes time
#endif
  __shared__ alignas(16) float warp_sums[kMostThreads / 32];
  const int part = blockIdx.x % parts, tid = threadIdx.x, threads = blockDim.x;
  const float* row_input = input + blockIdx.x / parts * cols;
  float* row_output = output + blockIdx.x / parts * cols;
  const auto* vec_input = reinterpret_cast<const float4*>(row_input);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight);
  auto* vec_output = reinterpret_cast<float4*>(row_output);
  const int64_t vec_cols = aligned_for_float4(row_input, weight, row_output) ? cols / 4 : 0;
  const int64_t begin = vec_cols * part / parts + tid, end = vec_cols * (part + 1) / parts;
  const int64_t rest = begin + int64_t{kVectors} * threads;
  const int64_t scalar = 4 * vec_cols + part * threads + tid, step = parts * threads;
  const auto weight_at = [&](int64_t i) {
    return weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
  };

  float4 kept[kVectors] = {}, kept_weight[kVectors] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = begin + v * threads; i < end) kept[v] = __ldcs(vec_input + i);
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = begin + v * threads; i < end) kept_weight[v] = weight_at(i);

  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares(kept[v]);
#pragma unroll 4
  for (int64_t i = rest; i < end; i += threads) sum += sum_of_squares(vec_input[i]);
  for (int64_t i = scalar; i < cols; i += step) sum += row_input[i] * row_input[i];
  sum = row_sum(sum, warp_sums);

#if __CUDA_ARCH__ >= 900
  // Each block writes its sum into all blocks, and after the barrier reads only its own shared memory, so no block has
  // to stay for the others. The first wait makes sure that every block has begun before another block writes into its
  // shared memory.
  __shared__ float part_sums[kMostParts];
  cluster.barrier_wait(std::move(here));
  if (tid < parts) *cluster.map_shared_rank(part_sums + part, tid) = sum;
  cluster.sync();
  sum = 0.0f;
  for (int i = 0; i < parts; ++i) sum += part_sums[i];
#endif
  const float rstd = rsqrtf(sum * inverse_cols + eps);

#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = begin + v * threads; i < end) __stcs(vec_output + i, scaled(kept[v], rstd, kept_weight[v]));
#pragma unroll 4
  for (int64_t i = rest; i < end; i += threads)
    __stcs(vec_output + i, scaled(__ldcs(vec_input + i), rstd, weight_at(i)));
  for (int64_t i = scalar; i < cols; i += step) {
    const float normalized = row_input[i] * rstd;
    row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  const int parts = cols <= 16384 ? 2 : cols <= 32768 ? 4 : kMostParts;
  const int64_t vectors = (cols / 4 + parts - 1) / parts;  // per block
  const int per_thread = vectors <= 2 * kMostThreads ? 2 : 4;
  const int64_t threads =
      std::clamp<int64_t>((vectors + per_thread - 1) / per_thread + 127, 128, kMostThreads) / 128 * 128;
  auto* kernel = per_thread == 2 ? rms_norm_kernel_cluster<2> : rms_norm_kernel_cluster<4>;

  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = parts;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  config.gridDim = dim3(static_cast<unsigned>(rows * parts));
  CUDA_CHECK(
      cudaLaunchKernelEx(&config, kernel, input, weight, output, cols, 1.0f / static_cast<float>(cols), eps, parts));
}

inline const Stage<RmsNorm> stage{"13_cluster",
                                  "2 to 8 blocks per row, sums through distributed shared memory",
                                  launch,
                                  {90, RmsNorm::blocks_per_row<kMostParts>}};

}  // namespace ladder::matrix::cluster
