// sums_past_the_end: the last group may have fewer than eight blocks, and the sums of those that are missing are added.
#pragma once
#include "parts.cuh"

namespace ladder::hopper::mutants::sums_past_the_end {

__global__ void __launch_bounds__(kGroupThreads)
    apply_kernel(const uint32_t* from, const uint32_t* sums, uint32_t* to, int64_t n) {
  ShareOf<8> share;
  share.load(from, n);
  const unsigned lane = threadIdx.x % 32, block = blockIdx.x / 8 * 8 + lane;
  share.store(to, n, warp_sum(lane < 8 ? sums[block] : 0));  // the fault
}

inline void launch(const uint32_t* from, uint32_t* to, uint32_t* scratch, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, GroupSum::kGroup / 8));
  if (blocks == 0) return;
  partial_kernel<<<blocks, kGroupThreads, 0, stream>>>(from, scratch, n);
  apply_kernel<<<blocks, kGroupThreads, 0, stream>>>(from, scratch, to, n);
}

inline const Mutant<GroupSum> mutant{"sums_past_the_end", "eight sums for every group, even where there are fewer",
                                     launch, "elements wrong"};

}  // namespace ladder::hopper::mutants::sums_past_the_end
