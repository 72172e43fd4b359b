// The right parts of 05_data_is_flag and of one shot with flags, so that each mutant contains its fault and little
// else.
#pragma once

#include "assignment3/tensor_parallel/one_shot.cuh"
#include "assignment3/tensor_parallel/shots.cuh"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel::mutants::parts {

// Work that takes time and does nothing: it keeps rank 0 behind, as another program on the same GPU might.
__device__ inline void be_late([[maybe_unused]] const Work& w) {
#ifndef __SIMT__
  const long long begin = clock64();
  while (w.rank == 0 && clock64() - begin < 30000) {
  }
#endif
}

// What a mutant of 05_data_is_flag replaces one function of.
struct RightTurn {
  static __device__ uint64_t buffers() { return 3; }  // in turn
  static __device__ uint4 sent(uint4 pack) { return without_sentinel(pack); }
  static __device__ void pause(const Work&) {}
};

template <class Body, int kPacks>
__global__ void __launch_bounds__(kThreads) turn_kernel(const Work w, uint32_t packs) {
  __shared__ float warp_sums[32];
  Turn turn(w);
  const size_t each = w.bytes / 3 / sizeof(uint4) * sizeof(uint4), other = Body::buffers() - 1;
  turn.now = turn.number % Body::buffers() * each;
  turn.cleared = (turn.number + other) % Body::buffers() * each;
  turn.dirty = turn.number > 0 ? packs : 0;  // mutants get launches of one shape in a row
  for (int64_t row = blockIdx.x; row < w.rows; row += gridDim.x) {
    const auto partial = load_row<kPacks>(w, w.t.partial, row), residual = load_row<kPacks>(w, w.t.residual, row);
    auto sent = partial;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) sent.p[i] = Body::sent(partial.p[i]);
    for (int peer = 0; peer < w.ranks; ++peer) {
      uint4* const to = row_in(w.buffer[peer] + turn.now, w, w.rank * w.rows + row);
#pragma unroll
      for (int i = 0; i < kPacks; ++i)
        if (peer != w.rank && pack_of(i) < w.pitch) store_to_peer(to + pack_of(i), sent.p[i]);
    }
    const auto sum = received_sum(w, turn, row, partial);
    if (row == blockIdx.x) {
      Body::pause(w);
      clear(w, turn);
      __syncthreads();
      count_launch(w.state, turn.number, packs);
    }
    const auto weight = load_row<kPacks>(w, w.t.weight, 0);
    store_row(w, w.t.y, row, normed_row(w, row, sum, residual, weight, warp_sums));
    __syncthreads();
  }
}

// Each shape has a workspace of its own here, since a mutant may leave anything in it.
template <class Body>
void launch_turn(const AllReduceCall& call, cudaStream_t stream) {
  if (call.rows == 0) return;
  static std::map<std::pair<int64_t, int64_t>, Workspace> workspaces;
  const auto [workspace, _] = workspaces.try_emplace({call.rows, call.cols}, kSentinel);
  const Symmetric& memory = workspace->second.of(call.ranks, bytes_of_turns(call));
  const unsigned threads = threads_for(call.cols);
  with_packs(call.cols, [&](auto packs) {
    auto* const kernel = turn_kernel<Body, packs>;
    const unsigned blocks = waiting_blocks(call.ranks, kernel, threads, call.rows);
    launch_on_all(call, memory, [&](const Work& w) { kernel<<<blocks, threads, 0, stream>>>(w, packs_left(w)); });
  });
}

// What a mutant with flags replaces one function of. One shot: each block stores its rows into every peer's slot,
// raises its flag, waits for the peers' and adds.
struct RightFlags {
  static __device__ void raise(const Work& w, uint64_t number) { signal(w, kParts, number); }
  static __device__ void wait(const Work& w, uint64_t number) { wait_for(w, kParts, number, number); }
  static __device__ int read_from(const Work&, int rank) { return rank; }  // whose slot
  static unsigned blocks(unsigned resident, int64_t) { return resident; }
};

template <class Body, int kPacks>
__global__ void __launch_bounds__(kThreads) flags_kernel(const Work w) {
  __shared__ float warp_sums[32];
  const uint64_t number = number_of_launch(w);
  // Two buffers in turn: a peer that is in the next launch has ended the one before this.
  const auto buffer = [&](int rank) { return parts_in(w.buffer[rank]) + number % 2 * (w.bytes / 2); };
  for (int64_t row = blockIdx.x; row < w.rows; row += gridDim.x) {
    const auto partial = load_row<kPacks>(w, w.t.partial, row);
    for (int peer = 0; peer < w.ranks; ++peer) {
      uint4* const to = row_in(buffer(peer), w, w.rank * w.rows + row);
#pragma unroll
      for (int i = 0; i < kPacks; ++i)
        if (pack_of(i) < w.pitch) to[pack_of(i)] = partial.p[i];
    }
  }
  Body::raise(w, number + 1);
  Body::wait(w, number + 1);
  for (int64_t row = blockIdx.x; row < w.rows; row += gridDim.x) {
    const auto residual = load_row<kPacks>(w, w.t.residual, row), weight = load_row<kPacks>(w, w.t.weight, 0);
    RowSum<kPacks> sum = {};
    for (int rank = 0; rank < w.ranks; ++rank) {
      const uint4* const from = row_in(buffer(w.rank), w, Body::read_from(w, rank) * w.rows + row);
#pragma unroll
      for (int i = 0; i < kPacks; ++i)
        if (pack_of(i) < w.pitch) add(sum.p[i], from[pack_of(i)]);
    }
    store_row(w, w.t.y, row, normed_row(w, row, sum, residual, weight, warp_sums));
    __syncthreads();
  }
  count_launch(w.state, number, 0);
}

template <class Body>
void launch_flags(const AllReduceCall& call, cudaStream_t stream) {
  if (call.rows == 0) return;
  static Workspace workspace;
  const Symmetric& memory = workspace.of(call.ranks, 2 * (kFlagBytes + call.ranks * call.rows * row_bytes(call)));
  const unsigned threads = threads_for(call.cols);
  with_packs(call.cols, [&](auto packs) {
    auto* const kernel = flags_kernel<Body, packs>;
    const unsigned blocks = Body::blocks(waiting_blocks(call.ranks, kernel, threads, call.rows), call.rows);
    launch_on_all(call, memory, [&](const Work& w) { kernel<<<blocks, threads, 0, stream>>>(w); });
  });
}

}  // namespace ladder::tensor_parallel::mutants::parts
