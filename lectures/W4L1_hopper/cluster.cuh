// The blocks of a cluster read and write one another's shared memory. 01 to 03 are the same work: each word of a group
// gets the sum of the group's 32768 words added to it.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "common/cuda_check.h"
#include "common/launch.h"
#include "common/operators/group_sum.h"

namespace ladder::hopper {

constexpr int kGroupThreads = 1024;

__device__ inline uint32_t warp_sum(uint32_t value) {
  for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
  return value;
}

// Every thread gets the sum of its block's values.
__device__ inline uint32_t block_sum(uint32_t value) {
  __shared__ uint32_t warp_sums[kGroupThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = warp_sum(value);
  if (lane == 0) warp_sums[warp] = value;
  __syncthreads();
  return warp_sum(warp_sums[lane]);
}

// One block's share of a group stays in registers: kHeld words for each thread.
template <int kHeld>
struct Share {
  int64_t begin;
  uint32_t words[kHeld];

  __device__ void load(const uint32_t* from, int64_t n) {
    begin = int64_t{blockIdx.x} * kHeld * kGroupThreads + threadIdx.x;
#pragma unroll
    for (int k = 0; k < kHeld; ++k) words[k] = begin + k * kGroupThreads < n ? from[begin + k * kGroupThreads] : 0;
  }
  __device__ uint32_t sum() const {
    uint32_t sum = 0;
#pragma unroll
    for (int k = 0; k < kHeld; ++k) sum += words[k];
    return sum;
  }
  __device__ void store(uint32_t* to, int64_t n, uint32_t added) const {
#pragma unroll
    for (int k = 0; k < kHeld; ++k)
      if (begin + k * kGroupThreads < n) to[begin + k * kGroupThreads] = words[k] + added;
  }
};

template <int kBlocks>
using ShareOf = Share<static_cast<int>(GroupSum::kGroup) / kBlocks / kGroupThreads>;

// 01: one block holds the whole group. It leaves: a group has one SM, however few groups there are.
__global__ void __launch_bounds__(kGroupThreads) whole_group_kernel(const uint32_t* from, uint32_t* to, int64_t n) {
  ShareOf<1> share;
  share.load(from, n);
  share.store(to, n, block_sum(share.sum()));
}

// 02: eight blocks share a group. Blocks cannot wait for each other, so their sums meet in global memory, and a second
// launch reads everything again (counter: bytes that loads ask for an element, twice those of 01).
__global__ void __launch_bounds__(kGroupThreads) partial_kernel(const uint32_t* from, uint32_t* sums, int64_t n) {
  ShareOf<8> share;
  share.load(from, n);
  const uint32_t sum = block_sum(share.sum());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
__global__ void __launch_bounds__(kGroupThreads)
    apply_kernel(const uint32_t* from, const uint32_t* sums, uint32_t* to, int64_t n) {
  ShareOf<8> share;
  share.load(from, n);
  const unsigned lane = threadIdx.x % 32, block = blockIdx.x / 8 * 8 + lane;
  share.store(to, n, warp_sum(lane < 8 && block < gridDim.x ? sums[block] : 0));
}

// 03: the same eight blocks are a cluster, and each writes its sum into the shared memory of all: everything is read
// once. It costs two barriers that eight SMs wait at (where there is a group for each SM, it is slower than 02).
template <int kBlocks>
__global__ void __launch_bounds__(kGroupThreads) cluster_kernel(const uint32_t* from, uint32_t* to, int64_t n) {
  ShareOf<kBlocks> share;
  share.load(from, n);
  uint32_t sum = block_sum(share.sum());
#if __CUDA_ARCH__ >= 900
  // No block writes into another before both have begun, and none reads before all have written. After the second
  // barrier each reads its own memory only, so no block has to stay for the others.
  __shared__ uint32_t sums[kBlocks];
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();
  if (threadIdx.x < kBlocks) *cluster.map_shared_rank(sums + cluster.block_rank(), threadIdx.x) = sum;
  cluster.sync();
  sum = 0;
  for (int block = 0; block < kBlocks; ++block) sum += sums[block];
#endif
  share.store(to, n, sum);
}

inline void launch_whole_group(const uint32_t* from, uint32_t* to, uint32_t*, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, GroupSum::kGroup));
  if (blocks > 0) whole_group_kernel<<<blocks, kGroupThreads, 0, stream>>>(from, to, n);
}

inline void launch_two_kernels(const uint32_t* from, uint32_t* to, uint32_t* scratch, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, GroupSum::kGroup / 8));
  if (blocks == 0) return;
  partial_kernel<<<blocks, kGroupThreads, 0, stream>>>(from, scratch, n);
  apply_kernel<<<blocks, kGroupThreads, 0, stream>>>(from, scratch, to, n);
}

// A cluster of kBlocks blocks for each group.
template <int kBlocks, class Kernel>
void launch_clusters(Kernel cluster_kernel, const uint32_t* from, uint32_t* to, int64_t n, cudaStream_t stream) {
  const auto groups = static_cast<unsigned>(blocks_for(n, GroupSum::kGroup));
  if (groups == 0) return;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = kBlocks;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(groups * kBlocks);
  config.blockDim = dim3(kGroupThreads);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, cluster_kernel, from, to, n));
}

template <int kBlocks>
void launch_cluster(const uint32_t* from, uint32_t* to, uint32_t*, int64_t n, cudaStream_t stream) {
  launch_clusters<kBlocks>(cluster_kernel<kBlocks>, from, to, n, stream);
}

}  // namespace ladder::hopper
