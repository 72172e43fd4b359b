// cluster8: the table lies in the shared memory of the other block of a cluster, on another SM: distributed shared
// memory. Needs sm_90.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency::cluster8 {

__global__ void walk_kernel(const uint32_t* table, uint32_t* end, uint32_t* ticks, uint32_t last, uint32_t apart) {
#if __CUDA_ARCH__ >= 900
  __shared__ uint32_t words[kSharedWords];
  for (uint32_t i = threadIdx.x; i <= last; i += blockDim.x) words[i] = table[i];
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();  // both tables are written
  if (cluster.block_rank() == 0) {
    const uint32_t* remote = cluster.map_shared_rank(words, 1);
    uint32_t at = start_of_walker(threadIdx.x, apart, last);
    const Clock clock;
#pragma unroll 18
    for (int step = 0; step < Walk::kSteps; ++step) at = remote[at];
    clock.stop(at, ticks);
    end[threadIdx.x] = at;
  }
  cluster.sync();  // a block that has ended has no shared memory
#endif
}

inline void launch(const uint32_t* table, uint32_t* end, uint32_t*, uint32_t* ticks, int64_t n, int64_t warps,
                   int64_t apart, cudaStream_t stream) {
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = 2;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  launch_blocks<walk_kernel>(2, cluster, table, end, ticks, n, warps, apart, stream);
}

inline const Stage<Walk> stage{"cluster8", "a load from another SM's shared memory", launch, {90, in_shared}};

}  // namespace ladder::latency::cluster8

LADDER_MAIN(ladder::latency::cluster8::stage)
