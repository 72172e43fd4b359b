// The group of all threads of a block.
#pragma once
#include "thread_group.h"

namespace cooperative_groups {

class thread_block : public thread_group {
 public:
  struct arrival_token {};

  static unsigned size() { return details::block_size(); }
  static unsigned num_threads() { return details::block_size(); }
  static unsigned thread_rank() { return details::rank_in_block(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
  static void sync(simt::Site site = simt::Site::here()) { simt::block_barrier(simt::Vote::none, 0, site); }

  // Every thread arrives and waits once per phase, so the whole barrier can be at the wait.
  arrival_token barrier_arrive() const { return {}; }
  void barrier_wait(arrival_token&&, simt::Site site = simt::Site::here()) const { sync(site); }

 private:
  friend thread_block this_thread_block();
  thread_block() : thread_group(details::Kind::block, 0, details::block_size()) {}
};

inline thread_block this_thread_block() { return {}; }

// Memory that older GPUs need for tiles of more than 32 threads; here each block has its own.
template <unsigned MaxBlockSize = 1024>
struct block_tile_memory {
  static_assert(MaxBlockSize >= 1 && MaxBlockSize <= 1024, "a block has 1 to 1024 threads");
  unsigned char unused[16];
};

template <unsigned MaxBlockSize>
thread_block this_thread_block(block_tile_memory<MaxBlockSize>&, simt::Site site = simt::Site::here()) {
  if (thread_block::size() > MaxBlockSize)
    simt::device_fault(cudaErrorLaunchFailure, "the block has more threads than its block_tile_memory was made for",
                       site);
  return this_thread_block();
}

}  // namespace cooperative_groups
