// The type that groups convert to, and the barrier of tiles of several warps.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "simt/device.h"

namespace cooperative_groups {
namespace details {

enum class Kind { block, lanes, cluster, grid };

template <class T>
using Plain = std::remove_cv_t<std::remove_reference_t<T>>;

inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned rank_in_block() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
inline unsigned long long grid_blocks() { return static_cast<uint64_t>(gridDim.x) * gridDim.y * gridDim.z; }
inline unsigned long long rank_of_block() {
  return blockIdx.x + static_cast<uint64_t>(gridDim.x) * (blockIdx.y + static_cast<uint64_t>(gridDim.y) * blockIdx.z);
}

// Memory that tiles of several warps meet in. It is part of the block's shared memory, which is poisoned before each
// block: the first thread to come finds no signature and sets it up.
struct TileMemory {
  static constexpr uint64_t kSignature = 0x74696c656d656d21;
  struct Barrier {
    unsigned arrived, phase;
  };
  uint64_t signature;
  Barrier barrier[32];                    // of the tile number i of 1024 / n threads: n + i
  alignas(8) unsigned char value[32][8];  // by warp
};

SIMT_OWN inline TileMemory& tile_memory() {
  struct Declaration;
  TileMemory& memory = simt::shared<TileMemory, Declaration>();
  if (memory.signature != TileMemory::kSignature) memory = TileMemory{TileMemory::kSignature, {}, {}};
  return memory;
}

SIMT_OWN inline void tile_barrier(unsigned size) {
  const unsigned tile = rank_in_block() / size;
  const unsigned members = std::min(size, block_size() - tile * size);
  TileMemory::Barrier& barrier = tile_memory().barrier[1024 / size + tile];
  const unsigned phase = barrier.phase;
  if (++barrier.arrived == members) {
    barrier.arrived = 0;
    ++barrier.phase;
  }
  while (barrier.phase == phase) simt::yield();
}

struct Access;

}  // namespace details

class thread_group {
 public:
  unsigned long long size() const { return num_threads(); }
  unsigned long long num_threads() const {
    switch (kind_) {
      case details::Kind::cluster:
        return static_cast<uint64_t>(details::block_size()) * __clusterSizeInBlocks();
      case details::Kind::grid:
        return details::block_size() * details::grid_blocks();
      default:
        return size_;
    }
  }
  unsigned long long thread_rank() const {
    const unsigned in_block = details::rank_in_block();
    switch (kind_) {
      case details::Kind::block:
        return in_block;
      case details::Kind::lanes:
        return static_cast<unsigned>(__builtin_popcount(mask_ & ((1u << simt::lane_id()) - 1)));
      case details::Kind::cluster:
        return __clusterRelativeBlockRank() * details::block_size() + in_block;
      case details::Kind::grid:
        return details::rank_of_block() * details::block_size() + in_block;
    }
    return 0;
  }
  void sync(simt::Site site = simt::Site::here()) const {
    switch (kind_) {
      case details::Kind::block:
        simt::block_barrier(simt::Vote::none, 0, site);
        break;
      case details::Kind::lanes:
        simt::warp_barrier(mask_, "the sync of a group", site);
        break;
      case details::Kind::cluster:
        simt::cluster_arrive(site);
        simt::cluster_wait(site);
        break;
      case details::Kind::grid:
        simt::grid_barrier(site);
        break;
    }
  }

 protected:
  friend struct details::Access;
  thread_group(details::Kind kind, unsigned mask, unsigned size, unsigned meta_rank = 0, unsigned meta_size = 1)
      : kind_(kind), mask_(mask), size_(size), meta_rank_(meta_rank), meta_size_(meta_size) {}

  details::Kind kind_;
  unsigned mask_;  // of lanes, for groups inside a warp
  unsigned size_;  // for groups inside a block
  unsigned meta_rank_, meta_size_;
};

template <class Group>
void sync(const Group& group, simt::Site site = simt::Site::here()) {
  group.sync(site);
}
template <class Group>
auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
auto group_size(const Group& group) {
  return group.num_threads();
}

}  // namespace cooperative_groups
