// How many blocks are resident together, by threads, blocks and shared memory of the imaginary multiprocessor.
#include <algorithm>

#include "device_limits.h"
#include "environment.h"
#include "simt/launch.h"

namespace simt {

int blocks_per_multiprocessor(int block_size, size_t shared) {
  const unsigned threads = (static_cast<unsigned>(block_size) + 31) / 32 * 32;
  if (block_size < 1 || threads > kMaxThreads || shared > kSharedLimit) return 0;
  const size_t by_shared = (kSharedLimit + 1024) / (shared + 1024);  // a block's own kilobyte included
  return static_cast<int>(std::min<size_t>({kBlocksPerMultiprocessor, kThreadsPerMultiprocessor / threads, by_shared}));
}

cudaError_t occupancy_block_size(int* grid, int* block, size_t (*shared_of)(void* context, int size), void* context,
                                 int limit) {
  if (!grid || !block || limit < 0) return refuse(cudaErrorInvalidValue);
  int best_threads = 0;
  for (int size = std::min(limit ? limit : static_cast<int>(kMaxThreads), static_cast<int>(kMaxThreads)); size >= 1;
       size -= size % 32 ? size % 32 : 32) {
    const int blocks = blocks_per_multiprocessor(size, shared_of(context, size));
    if (blocks * size <= best_threads) continue;
    best_threads = blocks * size;
    *block = size;
    *grid = blocks * static_cast<int>(multiprocessors());
  }
  return best_threads ? cudaSuccess : refuse(cudaErrorInvalidValue);
}

}  // namespace simt
