// What the launchers of reduction1 to reduction7 share: reduction0's launches, one after the other, until one sum is
// left.
#pragma once
#include <algorithm>
#include <cstdint>

#include "common/launch.h"

namespace ladder::reduction {

// launch_round(blocks, from, to, count) starts a kernel that writes one sum for each of its blocks. most_blocks: of one
// launch, whose blocks then read more than elements_per_block each.
template <class LaunchRound>
void in_rounds(const float* input, float* output, float* scratch, int64_t n, int64_t elements_per_block,
               int64_t most_blocks, LaunchRound launch_round) {
  while (true) {
    const int64_t blocks = std::clamp<int64_t>(blocks_for(n, elements_per_block), 1, most_blocks);
    float* sums = blocks == 1 ? output : scratch;
    launch_round(static_cast<unsigned>(blocks), input, sums, n);
    if (blocks == 1) return;
    input = sums;
    scratch += blocks;
    n = blocks;
  }
}

}  // namespace ladder::reduction
