// more_blocks_than_fit: a block per row, each of which waits for all blocks of the peers: those that wait keep others
// from starting.
#pragma once

#include "parts.cuh"

namespace ladder::tensor_parallel::mutants::more_blocks_than_fit {

struct Body : parts::RightFlags {
  // Each rank counts the blocks that have sent, in the first flag of each.
  static __device__ void raise(const Work& w, uint64_t) {
    __syncthreads();
    const int peer = static_cast<int>(threadIdx.x);
    if (peer < w.ranks) Flag(*flag_in(w.buffer[peer], kRows, w.rank, 0)).fetch_add(1, cuda::memory_order_acq_rel);
  }
  static __device__ void wait(const Work& w, uint64_t number) {
    const int peer = static_cast<int>(threadIdx.x);
    if (peer < w.ranks) wait_for_flag(flag_in(w.buffer[w.rank], kRows, peer, 0), number * gridDim.x, peer, number);
    __syncthreads();
  }
  static unsigned blocks(unsigned, int64_t rows) { return static_cast<unsigned>(rows); }  // the fault: those that fit
};

inline const Mutant<AllReduceRmsNorm> mutant{
    "more_blocks_than_fit",    "blocks wait for blocks that have no place on an SM",
    parts::launch_flags<Body>, "the kernel",
    Shows::anywhere,           {{20000, 256, 2}}};

}  // namespace ladder::tensor_parallel::mutants::more_blocks_than_fit
