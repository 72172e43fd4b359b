// 07_chunks: two shots with a row of each shard at a time, and as in 05 the data is the flag. A block sends the next
// row before it waits for the last one, so that the link carries rows while the block norms others and a third kind is
// copied.
//
// It removes the pauses of link and memory, which now work at once, and both flags, each of which waited until the rows
// before it had arrived.
#pragma once

#include "assignment3/tensor_parallel/chunks.cuh"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel::chunks {

template <int kPacks>
__global__ void __launch_bounds__(kThreads) chunks_kernel(const Work w) {
  __shared__ float warp_sums[2][32];
  norm_rows_in_chunks(w, load_row<kPacks>(w, w.t.weight, 0), warp_sums);
}

inline Workspace workspace(kSentinel);

inline void launch(const AllReduceCall& call, cudaStream_t stream) {
  if (call.rows == 0) return;
  const Symmetric& memory = workspace.of(call.ranks, bytes_of_chunks(call));
  const unsigned threads = threads_for(call.cols);
  with_packs(call.cols, [&](auto packs) {
    auto* const kernel = chunks_kernel<packs>;
    const unsigned blocks = waiting_blocks(call.ranks, kernel, threads, shard_rows(call.rows, call.ranks));
    launch_on_all(call, memory, [&](const Work& w) { kernel<<<blocks, threads, 0, stream>>>(w); });
  });
}

inline const Stage<AllReduceRmsNormSharded> stage{
    "07_chunks", "two shots row by row: link and memory work at once", launch, {0, refuses}};

}  // namespace ladder::tensor_parallel::chunks
