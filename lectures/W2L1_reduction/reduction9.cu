// reduction9: eight blocks are a cluster, and one of them collects the sums of all eight. Needs sm_90.
//
// It removes seven of eight sums in global memory, fences and atomic operations of reduction8, and the barriers of the
// block: the warps of all eight blocks write into the shared memory of the first one, and each block's barrier is
// contained in those of the cluster (counters: barriers per block; global stores; atomic requests).
// Cooperative groups name who takes part: a warp, a block, a cluster.
// It leaves: places on SMs that no cluster fits into, and SMs that end long before others (counter: active cycles).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/cuda_check.h"
#include "common/launch.h"
#include "common/operators/sum.h"
#include "lectures/W2L1_reduction/thread_sum.cuh"

namespace ladder::reduction::reduction9 {

namespace cg = cooperative_groups;

constexpr unsigned kClusterSize = 8;  // blocks; what every GPU with clusters can do

__device__ unsigned clusters_done;  // as blocks_done of reduction8

template <int kThreads, int kVectors, bool kStreaming>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(const float* __restrict__ input, float* output, float* sums, int64_t n) {
#if __CUDA_ARCH__ >= 900
  const auto cluster = cg::this_cluster();
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto begun = cluster.barrier_arrive();
  constexpr unsigned kWarps = kThreads / 32, kSums = kWarps * kClusterSize;
  __shared__ float warp_sums[kSums];

  float sum = cg::reduce(warp, thread_sum<kThreads, kVectors, kStreaming>(input, n), cg::plus<float>());
  cluster.barrier_wait(std::move(begun));  // the first block has begun: its shared memory is there
  if (warp.thread_rank() == 0)
    *cluster.map_shared_rank(warp_sums + cluster.block_rank() * kWarps + warp.meta_group_rank(), 0) = sum;
  cluster.sync();
  if (cluster.block_rank() > 0 || warp.meta_group_rank() > 0) return;

  // One warp of each cluster is left.
  sum = 0.0f;
  for (unsigned i = warp.thread_rank(); i < kSums; i += 32) sum += warp_sums[i];
  sum = cg::reduce(warp, sum, cg::plus<float>());
  const unsigned clusters = gridDim.x / kClusterSize, last = clusters - 1;
  bool is_last = false;
  if (warp.thread_rank() == 0) {
    sums[blockIdx.x / kClusterSize] = sum;
    __threadfence();
    is_last = atomicInc(&clusters_done, last) == last;
  }
  warp.sync();  // a shuffle hands over a register, and orders nothing in memory
  if (!warp.shfl(is_last, 0)) return;

  __threadfence();
  sum = 0.0f;
  for (unsigned i = warp.thread_rank(); i < clusters; i += 32) sum += sums[i];
  sum = cg::reduce(warp, sum, cg::plus<float>());
  if (warp.thread_rank() == 0) *output = sum;
#endif
}

template <int kThreads = 256, int kVectors = 4, int kWaves = 1, bool kStreaming = false>
void launch(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream) {
  const auto kernel = reduce_kernel<kThreads, kVectors, kStreaming>;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = kClusterSize;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kClusterSize);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;

  static const int resident = [&] {
    int clusters = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
    return std::max(clusters, 1);  // 0 where no eight SMs are neighbours: the launch says so
  }();
  const int64_t tiles = blocks_for(n, int64_t{4} * kVectors * kThreads * kClusterSize);
  const int64_t clusters = std::clamp<int64_t>(tiles, 1, kWaves > 0 ? kWaves * resident : INT64_MAX);
  config.gridDim = dim3(static_cast<unsigned>(clusters * kClusterSize));
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, input, output, scratch, n));
}

inline const Stage<Sum> stage{"reduction9", "clusters of eight blocks, cooperative groups", launch<>, {90}};

}  // namespace ladder::reduction::reduction9

LADDER_MAIN(ladder::reduction::reduction9::stage)
