// Cutting a group into smaller ones: by rank, or by a value that each thread gives.
#pragma once
#include "lanes.h"
#include "thread_block.h"
#include "tile.h"

namespace cooperative_groups {
namespace details {

// The lanes of `mask` whose rank divided by `size` is that of the calling lane.
inline unsigned lanes_of_tile(unsigned mask, unsigned size, simt::Site site) {
  if (size < 1 || size > 32 || (size & (size - 1)))
    simt::device_fault(cudaErrorLaunchFailure,
                       "tiled_partition(group, size) makes tiles of 1, 2, 4, 8, 16 or 32 threads; for larger ones say "
                       "tiled_partition<size>(block)",
                       site);
  const unsigned own_rank = static_cast<unsigned>(__builtin_popcount(mask & ((1u << simt::lane_id()) - 1)));
  unsigned tile = 0, rank = 0;
  simt::for_each_lane(mask,
                      [&](unsigned lane) { tile |= static_cast<unsigned>(rank++ / size == own_rank / size) << lane; });
  return tile;
}

inline coalesced_group tile_of_lanes(const thread_group& parent, unsigned size, simt::Site site) {
  const unsigned tile = lanes_of_tile(Access::mask(parent), size, site);
  return Access::coalesced(tile, static_cast<unsigned>(parent.thread_rank()) / size,
                           static_cast<unsigned>((parent.size() + size - 1) / size));
}

inline coalesced_group binary_partition(const thread_group& parent, bool predicate, simt::Site site) {
  const simt::VoteResult vote = simt::vote(Access::mask(parent), predicate, "binary_partition", site);
  const unsigned others = vote.voters & ~vote.votes;
  if (vote.votes == 0 || others == 0) return Access::coalesced(vote.voters);
  return Access::coalesced(predicate ? vote.votes : others, predicate, 2);
}

template <class Label>
coalesced_group labeled_partition(const thread_group& parent, Label label, simt::Site site) {
  static_assert(std::is_integral_v<Label> || std::is_pointer_v<Label>, "a label is an integer or a pointer");
  if constexpr (std::is_same_v<Label, bool>) return binary_partition(parent, label, site);
  const unsigned mask = Access::mask(parent);
  const unsigned group = __match_any_sync(mask, label, site);
  const unsigned leader = static_cast<unsigned>(__builtin_ctz(group));
  const unsigned leaders = simt::vote(mask, leader == simt::lane_id(), "labeled_partition", site).votes;
  return Access::coalesced(group, static_cast<unsigned>(__builtin_popcount(leaders & ((1u << leader) - 1))),
                           static_cast<unsigned>(__builtin_popcount(leaders)));
}

template <class Group>
struct is_tileable : std::false_type {};
template <>
struct is_tileable<thread_block> : std::true_type {};
template <unsigned Size, class Parent>
struct is_tileable<thread_block_tile<Size, Parent>> : std::true_type {};

template <class Group>
struct is_lanes : std::is_same<Group, coalesced_group> {};
template <unsigned Size, class Parent>
struct is_lanes<thread_block_tile<Size, Parent>> : std::bool_constant<Size <= 32> {};

}  // namespace details

template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
  static_assert(details::is_tileable<Parent>::value,
                "tiled_partition<Size> cuts a thread_block or a thread_block_tile; for a coalesced_group say "
                "tiled_partition(group, size)");
  return thread_block_tile<Size, Parent>(parent);
}

inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size,
                                       simt::Site site = simt::Site::here()) {
  return details::tile_of_lanes(parent, size, site);
}
inline thread_group tiled_partition(const thread_group& parent, unsigned size, simt::Site site = simt::Site::here()) {
  using details::Access;
  using details::Kind;
  switch (Access::kind(parent)) {
    case Kind::lanes:
      return details::tile_of_lanes(parent, size, site);
    case Kind::block: {
      const unsigned tile = details::lanes_of_tile(simt::present_lanes(), size, site);
      return Access::group(Kind::lanes, tile, details::rank_in_block() / size,
                           (details::block_size() + size - 1) / size);
    }
    default:
      simt::device_fault(cudaErrorLaunchFailure,
                         "tiled_partition(group, size) cuts blocks, tiles of up to 32 threads and coalesced groups",
                         site);
  }
}

template <class Group>
coalesced_group binary_partition(const Group& group, bool predicate, simt::Site site = simt::Site::here()) {
  static_assert(details::is_lanes<Group>::value,
                "binary_partition cuts a coalesced_group or a tile of at most 32 threads");
  return details::binary_partition(group, predicate, site);
}
template <class Group, class Label>
coalesced_group labeled_partition(const Group& group, Label label, simt::Site site = simt::Site::here()) {
  static_assert(details::is_lanes<Group>::value,
                "labeled_partition cuts a coalesced_group or a tile of at most 32 threads");
  return details::labeled_partition(group, label, site);
}

}  // namespace cooperative_groups
