// 06_two_shots: for many rows. Each rank sums and norms its shard alone, as in 02, but in one kernel: partial results
// to the owners, flags, norm, y to everybody, flags. A flag per block, so that a block waits for its own rows and no
// others.
//
// It removes the work that all ranks did alike, and with more than two ranks most of the bytes. It leaves the link idle
// while blocks norm, and the memory idle while they wait.
#pragma once

#include "assignment3/tensor_parallel/shots.cuh"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel::two_shots {

template <int kPacks>
__global__ void __launch_bounds__(kThreads) two_shots_kernel(const Work w) {
  __shared__ float warp_sums[2][32];
  const uint64_t number = number_of_launch(w);
  for (int64_t i = blockIdx.x; i < w.shard; i += gridDim.x) send_parts<kPacks>(w, i);
  signal(w, kParts, number + 1);  // flags begin with 0
  wait_for(w, kParts, number + 1, number);
  const auto weight = load_row<kPacks>(w, w.t.weight, 0);
  int turn = 0;
  for (int64_t i = blockIdx.x; i < w.shard; i += gridDim.x, turn ^= 1) norm_and_send(w, i, weight, warp_sums[turn]);
  signal(w, kRows, number + 1);
  wait_for(w, kRows, number + 1, number);
  for (int64_t i = blockIdx.x; i < w.shard; i += gridDim.x) take_rows<kPacks>(w, i);
  count_launch(w.state, number, 0);
}

inline Workspace workspace;

inline void launch(const AllReduceCall& call, cudaStream_t stream) {
  if (call.rows == 0) return;
  const Symmetric& memory = workspace.of(call.ranks, bytes_of_shots(call));
  const unsigned threads = threads_for(call.cols);
  with_packs(call.cols, [&](auto packs) {
    auto* const kernel = two_shots_kernel<packs>;
    const unsigned blocks = waiting_blocks(call.ranks, kernel, threads, shard_rows(call.rows, call.ranks));
    launch_on_all(call, memory, [&](const Work& w) { kernel<<<blocks, threads, 0, stream>>>(w); });
  });
}

inline const Stage<AllReduceRmsNormSharded> stage{
    "06_two_shots", "each rank sums and norms its rows; a flag per block and shot", launch, {0, refuses}};

}  // namespace ladder::tensor_parallel::two_shots
