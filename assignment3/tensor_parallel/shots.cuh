// The protocol that 06_two_shots introduces: each rank sums and norms its own rows (its shard), and both shots, partial
// results to the owners and y to everybody, lie in one kernel.
//
// Neither shot needs buffers in turn. Partial results: a peer that overwrites them is in its next launch, so its last
// one had ended, with y of this rank, which it sent after it had read them. y: a peer sends it after it has got partial
// results of this rank's same launch, which began when the launch before, and its reading of y, had ended.
#pragma once

#include "assignment3/tensor_parallel/shared.cuh"

namespace ladder::tensor_parallel {

enum Shot { kParts, kRows };

constexpr size_t kFlagBytes = size_t{2} * kMostRanks * kMostBlocks * sizeof(uint64_t);

// The flag that block `block` of rank `from` raises in the memory that begins at `buffer`.
__device__ inline uint64_t* flag_in(char* buffer, Shot shot, int from, int block) {
  return reinterpret_cast<uint64_t*>(buffer) + (shot * kMostRanks + from) * kMostBlocks + block;
}
// Where the rows lie that arrive: partial results in a slot for each rank; y. The latter's place is the same at every
// launch, whatever its shape.
__device__ inline char* parts_in(char* buffer) { return buffer + kFlagBytes; }
__device__ inline char* rows_in(const Work& w, char* buffer) { return buffer + w.bytes / 2; }
inline size_t bytes_of_shots(const AllReduceCall& call) {
  return 2 * (kFlagBytes + call.ranks * shard_rows(call.rows, call.ranks) * row_bytes(call));
}

// All that the block has stored is there when the others' blocks of the same number see the flag.
__device__ inline void signal(const Work& w, Shot shot, uint64_t number) {
  __syncthreads();
  const int peer = static_cast<int>(threadIdx.x);
  if (peer < w.ranks && peer != w.rank)
    raise_flag(flag_in(w.buffer[peer], shot, w.rank, static_cast<int>(blockIdx.x)), number);
}
__device__ inline void wait_for(const Work& w, Shot shot, uint64_t number, uint64_t launch) {
  const int peer = static_cast<int>(threadIdx.x);
  if (peer < w.ranks && peer != w.rank)
    wait_for_flag(flag_in(w.buffer[w.rank], shot, peer, static_cast<int>(blockIdx.x)), number, peer, launch);
  __syncthreads();
}

// Row i of each shard but the own one, to its owner.
template <int kPacks>
__device__ void send_parts(const Work& w, int64_t i) {
  for (int step = 1; step < w.ranks; ++step) {
    const int owner = (w.rank + step) % w.ranks;  // not all to the same first
    if (i >= w.shard || owner * w.shard + i >= w.rows) continue;
    const auto partial = load_row<kPacks>(w, w.t.partial, owner * w.shard + i);
    uint4* const to = row_in(parts_in(w.buffer[owner]), w, w.rank * w.shard + i);
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (pack_of(p) < w.pitch) to[pack_of(p)] = partial.p[p];
  }
}

// Row i of the own shard: sum, residual and norm, and y to everybody. All threads of a block.
template <int kPacks>
__device__ void norm_and_send(const Work& w, int64_t i, const Packs<kPacks>& weight, float* warp_sums) {
  const int64_t row = w.rank * w.shard + i;
  if (i >= w.shard || row >= w.rows) return;
  const auto own = load_row<kPacks>(w, w.t.partial, row), residual = load_row<kPacks>(w, w.t.residual, i);
  RowSum<kPacks> sum = {};
  for (int rank = 0; rank < w.ranks; ++rank) {
    const uint4* const from = row_in(parts_in(w.buffer[w.rank]), w, rank * w.shard + i);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      uint4 pack = own.p[p];
      if (rank != w.rank && pack_of(p) < w.pitch) pack = from[pack_of(p)];
      add(sum.p[p], pack);
    }
  }
  const auto y = normed_row(w, i, sum, residual, weight, warp_sums);
  for (int step = 1; step < w.ranks; ++step) {
    uint4* const to = row_in(rows_in(w, w.buffer[(w.rank + step) % w.ranks]), w, row);
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (pack_of(p) < w.pitch) to[pack_of(p)] = y.p[p];
  }
  store_row(w, w.t.y, row, y);
}

// Row i of each other shard, which has arrived, into y.
template <int kPacks>
__device__ void take_rows(const Work& w, int64_t i) {
  for (int step = 1; step < w.ranks; ++step) {
    const int64_t row = (w.rank + step) % w.ranks * w.shard + i;
    if (i >= w.shard || row >= w.rows) continue;
    const uint4* const from = row_in(rows_in(w, w.buffer[w.rank]), w, row);
    Packs<kPacks> y = {};
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (pack_of(p) < w.pitch) y.p[p] = from[pack_of(p)];
    store_row(w, w.t.y, row, y);
  }
}

}  // namespace ladder::tensor_parallel
