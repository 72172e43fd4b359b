// What the CPU device counted while it ran the last kernels. Exact, and the same for any number of workers.
#pragma once
#include <cstdint>
#include <string>

namespace simt {

struct LaunchStats {
  uint64_t blocks = 0;
  uint64_t threads = 0;
  uint64_t barriers = 0;  // block barriers completed, summed over blocks
  uint64_t warp_ops = 0;  // shuffles, votes, reductions and __syncwarp completed, summed over warps
  uint64_t atomics = 0;   // atomic operations, summed over threads
};

LaunchStats last_launch_stats();

// Of the launches since the last call: of each count the most that a block has on average, and the blocks of the launch
// with the most of them. Without a launch, all are 0.
struct BlockStats {
  uint64_t blocks = 0;
  double barriers = 0, warp_ops = 0;
};
BlockStats take_block_stats();

// The grid and the block of the last launch that was refused, with what is allowed; "" if none was.
std::string refused_launch();

}  // namespace simt
