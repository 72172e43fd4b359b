// 07_chunks: 06_two_shots with a row of each shard at a time. A block sends the next row before it waits for the last
// one, so that the link carries rows while the block norms others and a third kind is copied.
//
// It removes the pauses of link and memory, which now work at once; it costs a flag per row.
#pragma once

#include "assignment3/tensor_parallel/shots.cuh"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel::chunks {

template <int kPacks>
__global__ void __launch_bounds__(kThreads) chunks_kernel(const Work w) {
  __shared__ float warp_sums[2][32];
  const uint64_t number = number_of_launch(w), base = number * kMostSteps;
  const int64_t steps = (w.shard + gridDim.x - 1) / gridDim.x;
  const auto weight = load_row<kPacks>(w, w.t.weight, 0);
  const auto row_of = [&](int64_t step) { return step * gridDim.x + blockIdx.x; };
  for (int64_t step = 0; step < steps + 2; ++step) {
    if (step < steps) {
      send_parts<kPacks>(w, row_of(step));
      signal(w, kParts, base + step + 1);
    }
    if (step >= 1 && step - 1 < steps) {
      wait_for(w, kParts, base + step, number);
      norm_and_send(w, row_of(step - 1), weight, warp_sums[step % 2]);
      signal(w, kRows, base + step);
    }
    if (step >= 2) {
      wait_for(w, kRows, base + step - 1, number);
      take_rows<kPacks>(w, row_of(step - 2));
    }
  }
  count_launch(w.state, number, 0);
}

inline Workspace workspace;

inline void launch(const AllReduceCall& call, cudaStream_t stream) {
  if (call.rows == 0) return;
  const Symmetric& memory = workspace.of(call.ranks, bytes_of_shots(call));
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
