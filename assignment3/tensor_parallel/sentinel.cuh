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

__device__ inline void empty(uint4* slot) {
  store_to_peer(slot, make_uint4(kSentinel, kSentinel, kSentinel, kSentinel));
}

// A row that is its own flag: into a peer's slot, and out of the own one.
template <int kPacks>
__device__ void send_row(const Work& w, uint4* to, const Packs<kPacks>& row) {
#pragma unroll
  for (int i = 0; i < kPacks; ++i)
    if (pack_of(i) < w.pitch) store_to_peer(to + pack_of(i), without_sentinel(row.p[i]));
}
template <int kPacks>
__device__ Packs<kPacks> arrived_row(const Work& w, uint4* from, int sender, uint64_t launch) {
  Packs<kPacks> row = {};
  Patience patience(sender, launch);
#pragma unroll
  for (int i = 0; i < kPacks; ++i)
    if (pack_of(i) < w.pitch)
      for (row.p[i] = load_from_peer(from + pack_of(i)); has_sentinel(row.p[i]);
           row.p[i] = load_from_peer(from + pack_of(i)))
        patience.spend();
  return row;
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
__device__ inline void clear(const Work& w, const Turn& turn) {
  auto* const packs = reinterpret_cast<uint4*>(w.buffer[w.rank] + turn.cleared);
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < turn.dirty; i += gridDim.x * blockDim.x)
    empty(packs + i);
}

inline size_t bytes_of_turns(const AllReduceCall& call) {
  return 3 * (call.ranks * call.rows * row_bytes(call) + sizeof(uint4));
}

inline uint32_t packs_left(const Work& w) { return static_cast<uint32_t>(w.ranks * w.rows * w.pitch); }

}  // namespace ladder::tensor_parallel
