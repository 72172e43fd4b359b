// Tiles: a block cut into groups of a size known at compile time, up to a warp, or of several warps.
#pragma once
#include "lanes.h"
#include "thread_block.h"

namespace cooperative_groups {
namespace details {

template <unsigned Size>
class lane_tile : public lane_group {
 public:
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned thread_rank() { return simt::lane_id() % Size; }

  template <class T>
  Plain<T> shfl(T&& value, int source, simt::Site site = simt::Site::here()) const {
    return shuffle<simt::Shuffle::index, Plain<T>>(mask_, value, static_cast<unsigned>(source), Size,
                                                   "thread_block_tile::shfl", site);
  }
  template <class T>
  Plain<T> shfl_up(T&& value, unsigned delta, simt::Site site = simt::Site::here()) const {
    return shuffle<simt::Shuffle::up, Plain<T>>(mask_, value, delta, Size, "thread_block_tile::shfl_up", site);
  }
  template <class T>
  Plain<T> shfl_down(T&& value, unsigned delta, simt::Site site = simt::Site::here()) const {
    return shuffle<simt::Shuffle::down, Plain<T>>(mask_, value, delta, Size, "thread_block_tile::shfl_down", site);
  }
  template <class T>
  Plain<T> shfl_xor(T&& value, unsigned lane_mask, simt::Site site = simt::Site::here()) const {
    return shuffle<simt::Shuffle::butterfly, Plain<T>>(mask_, value, lane_mask, Size, "thread_block_tile::shfl_xor",
                                                       site);
  }

 protected:
  lane_tile(unsigned meta_rank, unsigned meta_size)
      : lane_group(Kind::lanes, (~0u >> (32 - Size)) << (simt::lane_id() & ~(Size - 1)), Size, meta_rank, meta_size) {}
};

// A tile of several warps meets in memory instead of registers. As in CUDA, it is no thread_group.
template <unsigned Size>
class warps_tile {
 public:
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned thread_rank() { return rank_in_block() % Size; }
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }
  void sync(simt::Site = simt::Site::here()) const { tile_barrier(Size); }

  template <class T>
  Plain<T> shfl(T&& value, unsigned source, simt::Site site = simt::Site::here()) const {
    return of_warps<Plain<T>>(value, site, source % 32,
                              [&](const Plain<T>* values, unsigned) { return values[source / 32]; });
  }
  int any(int predicate, simt::Site site = simt::Site::here()) const {
    return of_warps(simt::vote(~0u, predicate, "the any() of a tile", site).votes, site, 0,
                    [](const unsigned* votes, unsigned warps) {
                      return std::any_of(votes, votes + warps, [](unsigned v) { return v != 0; });
                    });
  }
  int all(int predicate, simt::Site site = simt::Site::here()) const {
    const simt::VoteResult vote = simt::vote(~0u, predicate, "the all() of a tile", site);
    return of_warps(static_cast<unsigned>(vote.votes == vote.voters), site, 0, [](const unsigned* all, unsigned warps) {
      return std::all_of(all, all + warps, [](unsigned a) { return a != 0; });
    });
  }

  // Each warp contributes the value of its lane `leader`; finish(values, count) sees all of them, in every thread.
  template <class T, class Finish>
  SIMT_OWN auto of_warps(const T& value, simt::Site, unsigned leader, Finish finish) const {
    static_assert(simt::is_copyable_by_bytes<T>, "tiles exchange trivially copyable types only");
    static_assert(sizeof(T) <= 8, "tiles of more than 32 threads exchange at most eight bytes");
    TileMemory& memory = tile_memory();
    const unsigned first_warp = rank_in_block() / Size * (Size / 32);
    const unsigned warps = std::min(Size / 32, (block_size() + 31) / 32 - first_warp);
    if (simt::lane_id() == leader) std::memcpy(memory.value[rank_in_block() / 32], &value, sizeof(T));
    tile_barrier(Size);
    alignas(T) unsigned char bytes[(Size / 32) * sizeof(T)] = {};
    for (unsigned warp = 0; warp < warps; ++warp)
      std::memcpy(bytes + warp * sizeof(T), memory.value[first_warp + warp], sizeof(T));
    tile_barrier(Size);
    return finish(reinterpret_cast<T*>(bytes), warps);
  }

 protected:
  warps_tile(unsigned meta_rank, unsigned meta_size) : meta_rank_(meta_rank), meta_size_(meta_size) {}

 private:
  unsigned meta_rank_, meta_size_;
};

template <unsigned Size>
using tile_base = std::conditional_t<(Size <= 32), lane_tile<Size <= 32 ? Size : 32>, warps_tile<Size>>;

}  // namespace details

template <unsigned Size, class Parent = void>
class thread_block_tile : public details::tile_base<Size> {
  static_assert(Size >= 1 && Size <= 1024 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, ... or 1024 threads");

 public:
  thread_block_tile(const Parent& parent)
      : details::tile_base<Size>(static_cast<unsigned>(parent.thread_rank()) / Size,
                                 static_cast<unsigned>((parent.num_threads() + Size - 1) / Size)) {}
};

// A tile that has forgotten what it is a part of.
template <unsigned Size>
class thread_block_tile<Size, void> : public details::tile_base<Size> {
 public:
  template <class Parent>
  thread_block_tile(const thread_block_tile<Size, Parent>& tile)
      : thread_block_tile(tile.meta_group_rank(), tile.meta_group_size()) {}

 private:
  template <unsigned, class>
  friend class thread_block_tile;
  friend thread_block_tile<1, void> this_thread();
  thread_block_tile(unsigned meta_rank, unsigned meta_size) : details::tile_base<Size>(meta_rank, meta_size) {}
};

inline thread_block_tile<1, void> this_thread() { return {0, 1}; }

}  // namespace cooperative_groups
