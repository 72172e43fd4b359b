// The protocol that 05_data_is_flag introduces: the data is the flag.
//
// A buffer holds the sentinel wherever nothing has arrived. Launch k uses buffer k mod 3 and puts the sentinel back
// into buffer k + 2 mod 3, which launch k - 1 has used. A peer writes there at its launch k + 2, and comes to that only
// after its launch k + 1, which has waited for data of this rank's launch k + 1, which began when launch k had ended:
// all sentinels are back by then. With two buffers the peer would write at launch k + 1, for which it need not have
// heard of more than this rank's launch k: sentinels could overwrite its data.
#pragma once

#include "assignment3/tensor_parallel/shared.cuh"

namespace ladder::tensor_parallel {

constexpr uint32_t kSentinel = 0x80008000u;  // two of -0.0, which are sent as +0.0

__device__ inline uint32_t without_sentinel(uint32_t word) { return word == kSentinel ? 0 : word; }
__device__ inline uint4 without_sentinel(uint4 pack) {
  return make_uint4(without_sentinel(pack.x), without_sentinel(pack.y), without_sentinel(pack.z),
                    without_sentinel(pack.w));
}
__device__ inline bool has_sentinel(uint4 pack) {
  return pack.x == kSentinel || pack.y == kSentinel || pack.z == kSentinel || pack.w == kSentinel;
}

// The buffers of one launch: in each a slot for every rank, of as many rows as the launch has.
struct Turn {
  uint64_t number;
  size_t now, cleared;  // where the launch's buffer begins, and the one that it clears
  uint32_t dirty;       // packs to clear
  __device__ explicit Turn(const Work& w)
      : number(number_of_launch(w)),
        now(number % 3 * (w.bytes / 3 / sizeof(uint4) * sizeof(uint4))),
        cleared((number + 2) % 3 * (w.bytes / 3 / sizeof(uint4) * sizeof(uint4))),
        dirty(shared_by_blocks(w.state->packs[(number + 2) % 3]).load(cuda::memory_order_relaxed)) {}
};
inline size_t bytes_of_turns(const AllReduceCall& call) {
  return 3 * (call.ranks * call.rows * row_bytes(call) + sizeof(uint4));
}

template <int kPacks>
__device__ void push_row(const Work& w, const Turn& turn, int64_t row, const Packs<kPacks>& partial) {
  for (int step = 1; step < w.ranks; ++step) {
    const int peer = (w.rank + step) % w.ranks;  // not all to the same first
    uint4* const to = row_in(w.buffer[peer] + turn.now, w, w.rank * w.rows + row);
#pragma unroll
    for (int i = 0; i < kPacks; ++i)
      if (pack_of(i) < w.pitch) store_to_peer(to + pack_of(i), without_sentinel(partial.p[i]));
  }
}

__device__ inline void clear(const Work& w, const Turn& turn) {
  auto* const packs = reinterpret_cast<uint4*>(w.buffer[w.rank] + turn.cleared);
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < turn.dirty; i += gridDim.x * blockDim.x)
    packs[i] = make_uint4(kSentinel, kSentinel, kSentinel, kSentinel);
}

// The sum of a row in the order of the ranks, of which this one's partial result is in registers.
template <int kPacks>
__device__ RowSum<kPacks> received_sum(const Work& w, const Turn& turn, int64_t row, const Packs<kPacks>& partial) {
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
  return sum;
}

inline uint32_t packs_left(const Work& w) { return static_cast<uint32_t>(w.ranks * w.rows * w.pitch); }

}  // namespace ladder::tensor_parallel
