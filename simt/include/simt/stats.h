// What the CPU device counted while it ran the last kernel. Exact, and the same for any number of workers.
#pragma once
#include <cstdint>

namespace simt {

struct LaunchStats {
  uint64_t blocks = 0;
  uint64_t threads = 0;
  uint64_t barriers = 0;  // block barriers completed, summed over blocks
  uint64_t warp_ops = 0;  // shuffles, votes, reductions and __syncwarp completed, summed over warps
  uint64_t atomics = 0;   // atomic operations, summed over threads
};

LaunchStats last_launch_stats();

}  // namespace simt
