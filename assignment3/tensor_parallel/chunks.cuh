// The protocol that 07_chunks introduces: two shots in which the data is the flag, so that a block needs neither a
// barrier nor a release between a row and the next one.
//
// Launch k uses buffer k mod 2, and a thread that has read a slot puts the sentinels back at once. A peer writes there
// at its launch k + 2, and comes to that only after its launch k + 1, which has waited for this rank's launch k + 1,
// which began when launch k had ended: all sentinels are back by then. (An owner of rows waits for the partial results
// of every rank; a rank without rows waits for y of an owner, which has.)
#pragma once

#include "assignment3/tensor_parallel/sentinel.cuh"

namespace ladder::tensor_parallel {

// The buffer of one launch, and the order in which a block sends to its peers.
struct Chunks {
  uint64_t number;
  size_t now;  // where it begins
  int first;   // blocks begin with different peers, so that at no time all ranks send to the same one
  __device__ explicit Chunks(const Work& w)
      : number(number_of_launch(w)),
        now(number % 2 * (w.bytes / 2 / sizeof(uint4) * sizeof(uint4))),
        first(static_cast<int>(blockIdx.x) % (w.ranks - 1)) {}
  // In steps 0 to ranks - 2.
  __device__ int peer_in(int step, const Work& w) const {
    const int ahead = first + step < w.ranks - 1 ? first + step + 1 : first + step + 2 - w.ranks;
    return (w.rank + ahead) % w.ranks;
  }
};
// In a buffer: a slot of a shard's rows for each rank's partial results, then one for each rank's y.
enum Shots { kPartsOf, kRowsOf };
__device__ inline uint4* slot_row(const Work& w, const Chunks& turn, int at, Shots shot, int from, int64_t i) {
  return row_in(w.buffer[at] + turn.now, w, (shot * w.ranks + from) * w.shard + i);
}
inline size_t bytes_of_chunks(const AllReduceCall& call) {
  return 2 * (2 * call.ranks * shard_rows(call.rows, call.ranks) * row_bytes(call) + sizeof(uint4));
}

// A row that has arrived, out of its slot, which is empty again.
template <int kPacks>
__device__ Packs<kPacks> taken_row(const Work& w, uint4* from, int sender, uint64_t launch) {
  const auto row = arrived_row<kPacks>(w, from, sender, launch);
#pragma unroll
  for (int i = 0; i < kPacks; ++i)
    if (pack_of(i) < w.pitch) empty(from + pack_of(i));
  return row;
}

// Row i of each shard but the own one, to its owner.
template <int kPacks>
__device__ void send_parts(const Work& w, const Chunks& turn, int64_t i) {
  for (int step = 0; step < w.ranks - 1; ++step) {
    const int owner = turn.peer_in(step, w);
    const int64_t row = owner * w.shard + i;
    if (i < w.shard && row < w.rows)
      send_row(w, slot_row(w, turn, owner, kPartsOf, w.rank, i), load_row<kPacks>(w, w.t.partial, row));
  }
}

// Row i of the own shard: sum, residual and norm, and y to everybody, without sentinels for this rank, too. All threads
// of a block.
template <int kPacks>
__device__ void norm_and_send(const Work& w, const Chunks& turn, int64_t i, const Packs<kPacks>& weight,
                              float* warp_sums) {
  const int64_t row = w.rank * w.shard + i;
  if (i >= w.shard || row >= w.rows) return;
  const auto own = load_row<kPacks>(w, w.t.partial, row), residual = load_row<kPacks>(w, w.t.residual, i);
  RowSum<kPacks> sum = {};
  for (int rank = 0; rank < w.ranks; ++rank) {
    auto part = own;
    if (rank != w.rank) part = taken_row<kPacks>(w, slot_row(w, turn, w.rank, kPartsOf, rank, i), rank, turn.number);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) add(sum.p[p], part.p[p]);
  }
  auto y = normed_row(w, i, sum, residual, weight, warp_sums);
#pragma unroll
  for (int p = 0; p < kPacks; ++p) y.p[p] = without_sentinel(y.p[p]);
  for (int step = 0; step < w.ranks - 1; ++step)
    send_row(w, slot_row(w, turn, turn.peer_in(step, w), kRowsOf, w.rank, i), y);
  store_row(w, w.t.y, row, y);
}

// Row i of each other shard into y, once it has arrived.
template <int kPacks>
__device__ void take_rows(const Work& w, const Chunks& turn, int64_t i) {
  for (int step = 1; step < w.ranks; ++step) {
    const int owner = (w.rank + step) % w.ranks;
    const int64_t row = owner * w.shard + i;
    if (row < w.rows)
      store_row(w, w.t.y, row, taken_row<kPacks>(w, slot_row(w, turn, w.rank, kRowsOf, owner, i), owner, turn.number));
  }
}

// A row of each shard at a time: the next one is on its way while this one is waited for, and the one before is taken.
template <int kPacks>
__device__ void norm_rows_in_chunks(const Work& w, const Packs<kPacks>& weight, float (&warp_sums)[2][32]) {
  const Chunks turn(w);
  const int64_t step = gridDim.x;
  send_parts<kPacks>(w, turn, blockIdx.x);
  __syncthreads();  // all threads have read the state
  count_launch(w.state, turn.number, 0);
  int count = 0;
  for (int64_t i = blockIdx.x; i - step < w.shard; i += step, ++count) {
    send_parts<kPacks>(w, turn, i + step);
    norm_and_send(w, turn, i, weight, warp_sums[count % 2]);
    if (count > 0) take_rows<kPacks>(w, turn, i - step);
  }
}

}  // namespace ladder::tensor_parallel
