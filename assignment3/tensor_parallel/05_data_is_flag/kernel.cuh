// 05_data_is_flag: no barrier. What arrives says itself that it has arrived: buffers hold a number that no rank sends,
// and a thread reads its own 16 bytes until none of their words is that number.
//
// It removes both barriers: what is left of the link is one way, once. Three buffers in turn take the place of the
// second barrier (sentinel.cuh has the proof), and no fence is needed, since nothing but the data itself is waited for.
#pragma once

#include "assignment3/tensor_parallel/sentinel.cuh"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel::data_is_flag {

template <int kPacks>
__global__ void __launch_bounds__(kThreads) data_is_flag_kernel(const Work w, uint32_t packs) {
  __shared__ float warp_sums[2][32];
  const auto weight = load_row<kPacks>(w, w.t.weight, 0);
  const Turn turn(w);
  int count = 0;
  for (int64_t row = blockIdx.x; row < w.rows; row += gridDim.x, ++count) {
    const auto partial = load_row<kPacks>(w, w.t.partial, row);
    const auto residual = load_row<kPacks>(w, w.t.residual, row);
    for (int step = 1; step < w.ranks; ++step) {
      const int peer = (w.rank + step) % w.ranks;  // not all to the same first
      uint4* const to = row_in(w.buffer[peer] + turn.now, w, w.rank * w.rows + row);
#pragma unroll
      for (int i = 0; i < kPacks; ++i)
        if (pack_of(i) < w.pitch) store_to_peer(to + pack_of(i), without_sentinel(partial.p[i]));
    }
    if (count == 0) {
      auto* const cleared = reinterpret_cast<uint4*>(w.buffer[w.rank] + turn.cleared);
      for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < turn.dirty; i += gridDim.x * blockDim.x)
        store_to_peer(cleared + i, make_uint4(kSentinel, kSentinel, kSentinel, kSentinel));
      __syncthreads();  // all threads have read the state
      count_launch(w.state, turn.number, packs);
    }
    RowSum<kPacks> sum = {};
    for (int rank = 0; rank < w.ranks; ++rank) {
      uint4* const from = row_in(w.buffer[w.rank] + turn.now, w, rank * w.rows + row);
      Patience patience(rank, turn.number);
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        uint4 pack = partial.p[i];
        if (rank != w.rank && pack_of(i) < w.pitch)
          for (pack = load_from_peer(from + pack_of(i)); has_sentinel(pack); pack = load_from_peer(from + pack_of(i)))
            patience.spend();
        add(sum.p[i], pack);
      }
    }
    store_row(w, w.t.y, row, normed_row(w, row, sum, residual, weight, warp_sums[count % 2]));
  }
}

inline Workspace workspace(kSentinel);

inline void launch(const AllReduceCall& call, cudaStream_t stream) {
  if (call.rows == 0) return;
  const Symmetric& memory = workspace.of(call.ranks, bytes_of_turns(call));
  const unsigned threads = threads_for(call.cols);
  with_packs(call.cols, [&](auto packs) {
    auto* const kernel = data_is_flag_kernel<packs>;
    const unsigned blocks = waiting_blocks(call.ranks, kernel, threads, call.rows);
    launch_on_all(call, memory, [&](const Work& w) { kernel<<<blocks, threads, 0, stream>>>(w, packs_left(w)); });
  });
}

inline const Stage<AllReduceRmsNorm> stage{
    "05_data_is_flag", "no barriers: the data itself says that it has arrived", launch, {0, refuses}};

}  // namespace ladder::tensor_parallel::data_is_flag
