// The groups above a block: its cluster, and the grid of a cooperative launch.
#pragma once
#include "thread_group.h"

namespace cooperative_groups {
namespace details {

inline dim3 scaled(uint3 block, dim3 size, uint3 inside) {
  return dim3(block.x * size.x + inside.x, block.y * size.y + inside.y, block.z * size.z + inside.z);
}

}  // namespace details

class cluster_group : public thread_group {
 public:
  struct arrival_token {};

  static void sync(simt::Site site = simt::Site::here()) {
    simt::cluster_arrive(site);
    simt::cluster_wait(site);
  }
  static arrival_token barrier_arrive(simt::Site site = simt::Site::here()) {
    simt::cluster_arrive(site);
    return {};
  }
  static void barrier_wait(simt::Site site = simt::Site::here()) { simt::cluster_wait(site); }
  static void barrier_wait(arrival_token&&, simt::Site site = simt::Site::here()) { simt::cluster_wait(site); }

  // The same variable in the shared memory of the cluster's block `rank`.
  template <class T>
  static T* map_shared_rank(T* address, int rank) {
    return static_cast<T*>(simt::map_shared_rank(address, static_cast<unsigned>(rank)));
  }
  static unsigned query_shared_rank(const void* address) {
    return static_cast<unsigned>(simt::query_shared_rank(address));
  }

  static dim3 block_index() { return __clusterRelativeBlockIdx(); }
  static unsigned block_rank() { return __clusterRelativeBlockRank(); }
  static dim3 thread_index() { return details::scaled(__clusterRelativeBlockIdx(), blockDim, threadIdx); }
  static unsigned thread_rank() { return block_rank() * details::block_size() + details::rank_in_block(); }
  static dim3 dim_blocks() { return __clusterDim(); }
  static unsigned num_blocks() { return __clusterSizeInBlocks(); }
  static dim3 dim_threads() { return details::scaled(__clusterDim(), blockDim, {0, 0, 0}); }
  static unsigned num_threads() { return num_blocks() * details::block_size(); }
  static unsigned size() { return num_threads(); }

 private:
  friend cluster_group this_cluster();
  cluster_group() : thread_group(details::Kind::cluster, 0, 0) {}
};

inline cluster_group this_cluster() { return {}; }

class grid_group : public thread_group {
 public:
  struct arrival_token {};

  bool is_valid() const { return simt::is_cooperative(); }
  void sync(simt::Site site = simt::Site::here()) const { simt::grid_barrier(site); }
  // Every thread arrives and waits once per phase, so the whole barrier can be at the wait.
  arrival_token barrier_arrive() const { return {}; }
  void barrier_wait(arrival_token&&, simt::Site site = simt::Site::here()) const { sync(site); }

  static unsigned long long size() { return num_threads(); }
  static unsigned long long num_threads() { return num_blocks() * details::block_size(); }
  static unsigned long long thread_rank() { return block_rank() * details::block_size() + details::rank_in_block(); }
  static dim3 thread_index() { return details::scaled(blockIdx, blockDim, threadIdx); }
  static dim3 dim_threads() { return details::scaled(gridDim, blockDim, {0, 0, 0}); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static unsigned long long num_blocks() { return details::grid_blocks(); }
  static dim3 block_index() { return blockIdx; }
  static unsigned long long block_rank() { return details::rank_of_block(); }
  static dim3 dim_clusters() { return __clusterGridDimInClusters(); }
  static unsigned long long num_clusters() { return num_blocks() / __clusterSizeInBlocks(); }
  static dim3 cluster_index() { return __clusterIdx(); }
  static unsigned long long cluster_rank() {
    const dim3 index = cluster_index(), size = dim_clusters();
    return index.x + static_cast<uint64_t>(size.x) * (index.y + static_cast<uint64_t>(size.y) * index.z);
  }

 private:
  friend grid_group this_grid();
  grid_group() : thread_group(details::Kind::grid, 0, 0) {}
};

inline grid_group this_grid() { return {}; }

}  // namespace cooperative_groups
