// 10_cluster: 09_registers in clusters of 8 blocks. The sums of a cluster meet in the shared memory of its first block,
// so that one partial sum per cluster goes through L2 instead of one per block.
//
// It removes seven of eight partial sums from every block's way after the barrier (counter: global load requests; 16
// sums for 128 blocks). The price is two barriers of the cluster before the barrier of the grid. Needs sm_90.
// It leaves: the barrier of the grid, which still waits for every block.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "assignment1/rms_norm/vector/shared.cuh"
#include "common/cuda_check.h"
#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::cluster {

constexpr int kMostThreads = 1024;
constexpr int kMostBlocks = 128;
constexpr int kVectors = 4;  // float4 that a thread keeps
constexpr int kCluster = 8;  // blocks; what every GPU with clusters can do

__global__ void __launch_bounds__(kMostThreads)
    rms_norm_kernel_cluster(const float* __restrict__ input, const float* __restrict__ weight,
                            float* __restrict__ output, float* partial_sums, VectorPart part, float inverse_n,
                            float eps) {
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  auto here = cluster.barrier_arrive();  // the wait is below, where it no longer takes time
#endif
  __shared__ alignas(16) float warp_sums[2][kMostThreads / 32];
  const auto* vec_input = reinterpret_cast<const float4*>(input + part.head);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight + part.head);
  auto* vec_output = reinterpret_cast<float4*>(output + part.head);
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, step = int64_t{gridDim.x} * blockDim.x;
  const auto weight_at = [&](int64_t i) {
    return weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
  };

  float4 kept[kVectors] = {}, kept_weight[kVectors] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) kept[v] = vec_input[i];
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) kept_weight[v] = weight_at(i);

  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares(kept[v]);
#pragma unroll 2
  for (int64_t i = first + kVectors * step; i < part.count; i += step) sum += sum_of_squares(vec_input[i]);
  for (int64_t i = first; i < part.rest; i += step) sum += input[part.outside(i)] * input[part.outside(i)];
  sum = row_sum(sum, warp_sums[0]);

#if __CUDA_ARCH__ >= 900
  // The first wait makes sure that the cluster's first block has begun before others write into its shared memory.
  __shared__ float block_sums[kCluster];
  cluster.barrier_wait(std::move(here));
  if (threadIdx.x == 0) *cluster.map_shared_rank(block_sums + blockIdx.x % kCluster, 0) = sum;
  cluster.sync();
  if (threadIdx.x == 0 && blockIdx.x % kCluster == 0) {
    sum = 0.0f;
    for (int i = 0; i < kCluster; ++i) sum += block_sums[i];
    partial_sums[blockIdx.x / kCluster] = sum;
  }
#endif

  cooperative_groups::this_grid().sync();
  sum = row_sum(threadIdx.x < gridDim.x / kCluster ? partial_sums[threadIdx.x] : 0.0f, warp_sums[1]);
  const float rstd = rsqrtf(sum * inverse_n + eps);

#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) vec_output[i] = scaled(kept[v], rstd, kept_weight[v]);
#pragma unroll 2
  for (int64_t i = first + kVectors * step; i < part.count; i += step)
    vec_output[i] = scaled(vec_input[i], rstd, weight_at(i));
  for (int64_t i = first; i < part.rest; i += step) {
    const float normalized = input[part.outside(i)] * rstd;
    output[part.outside(i)] = weight == nullptr ? normalized : normalized * weight[part.outside(i)];
  }
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  const VectorPart part = vector_part(input, weight, output, n);
  const int blocks = std::max(std::min(multiprocessors(), kMostBlocks) / kCluster, 1) * kCluster;
  // As many threads as keep the row, in whole groups of 4 warps, so that row_sum reads no gap; at least one for each
  // partial sum.
  const int64_t threads = std::clamp<int64_t>(blocks_for(part.count, kVectors * blocks) + 127, 128, kMostThreads);
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeCooperative;
  attributes[0].val.cooperative = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = kCluster;
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads / 128 * 128));
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  // All blocks must be on the GPU at once. Of large blocks an SM holds one, and a cluster's must be on neighbouring
  // SMs.
  int clusters = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, rms_norm_kernel_cluster, &config));
  config.gridDim.x = std::min<unsigned>(config.gridDim.x, std::max(clusters, 1) * kCluster);
  CUDA_CHECK(cudaLaunchKernelEx(&config, rms_norm_kernel_cluster, input, weight, output, scratch, part,
                                1.0f / static_cast<float>(n), eps));
}

inline const Stage<RmsNormVector> stage{"10_cluster", "clusters of 8 blocks add up before the barrier", launch, {90}};

}  // namespace ladder::vector::cluster
