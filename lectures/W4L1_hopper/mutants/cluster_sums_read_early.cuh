// cluster_sums_read_early: a block adds up the sums before the others have written theirs.
#pragma once
#include "parts.cuh"

namespace ladder::hopper::mutants::cluster_sums_read_early {

__global__ void __launch_bounds__(kGroupThreads) cluster_kernel(const uint32_t* from, uint32_t* to, int64_t n) {
  ShareOf<8> share;
  share.load(from, n);
  uint32_t sum = block_sum(share.sum());
#if __CUDA_ARCH__ >= 900
  __shared__ uint32_t sums[8];
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();
  if (threadIdx.x < 8) *cluster.map_shared_rank(sums + cluster.block_rank(), threadIdx.x) = sum;
  __syncthreads();  // the fault
  sum = 0;
  for (int block = 0; block < 8; ++block) sum += sums[block];
  cluster.sync();
#endif
  share.store(to, n, sum);
}

inline void launch(const uint32_t* from, uint32_t* to, uint32_t*, int64_t n, cudaStream_t stream) {
  launch_clusters<8>(cluster_kernel, from, to, n, stream);
}

inline const Mutant<GroupSum> mutant{"cluster_sums_read_early", "a block's barrier in place of the cluster's", launch,
                                     "elements wrong", Shows::on_cpu_device};

}  // namespace ladder::hopper::mutants::cluster_sums_read_early
