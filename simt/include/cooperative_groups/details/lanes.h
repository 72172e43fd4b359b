// Groups of lanes of one warp: what tiles of up to 32 threads and coalesced groups have in common, and the latter.
#pragma once
#include "thread_group.h"

namespace cooperative_groups {
namespace details {

// Shuffles of up to 32 bytes: each lane deposits where its value is and where its result goes.
template <class T>
struct Parcel {
  const T* value;
  T* result;
};

template <simt::Shuffle kind, class T>
void combine_parcels(simt::Exchange& exchange, uint32_t mask) {
  const auto parcel = [&](unsigned lane) { return reinterpret_cast<const Parcel<T>*>(exchange.value[lane]); };
  simt::for_each_lane(mask, [&](unsigned lane) {
    const unsigned source =
        simt::shuffle_source<kind>(lane, exchange.operand[lane] & 0xff, exchange.operand[lane] >> 8);
    T* result = parcel(lane)->result;
    if (mask >> source & 1)
      *result = *parcel(source)->value;
    else
      std::memset(static_cast<void*>(result), 0, sizeof(T));
  });
}

template <simt::Shuffle kind, class T>
T shuffle(unsigned mask, const T& value, unsigned operand, unsigned width, const char* name, simt::Site site) {
  static_assert(simt::is_copyable_by_bytes<T>, "groups shuffle trivially copyable types only");
  static_assert(sizeof(T) <= 32, "groups shuffle at most 32 bytes a thread");
  if constexpr (sizeof(T) <= 8) {
    return simt::shuffle(simt::shuffle_called<kind>(name), mask, value, operand, static_cast<int>(width), site);
  } else {
    T result = value;
    const Parcel<T> parcel{&value, &result};
    const simt::Collective what{&combine_parcels<kind, T>, simt::analysis::Operation::shuffle, name};
    simt::warp_collective(what, mask, reinterpret_cast<uint64_t>(&parcel), (operand & 31) | width << 8, site);
    return result;
  }
}

class lane_group : public thread_group {
 public:
  unsigned size() const { return size_; }
  unsigned num_threads() const { return size_; }
  unsigned thread_rank() const {
    return static_cast<unsigned>(__builtin_popcount(mask_ & ((1u << simt::lane_id()) - 1)));
  }
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }
  void sync(simt::Site site = simt::Site::here()) const { simt::warp_barrier(mask_, "the sync of a group", site); }

  int any(int predicate, simt::Site site = simt::Site::here()) const {
    return simt::vote(mask_, predicate, "the any() of a group", site).votes != 0;
  }
  int all(int predicate, simt::Site site = simt::Site::here()) const {
    const simt::VoteResult result = simt::vote(mask_, predicate, "the all() of a group", site);
    return result.votes == result.voters;
  }
  unsigned ballot(int predicate, simt::Site site = simt::Site::here()) const {
    return by_rank(simt::vote(mask_, predicate, "the ballot of a group", site).votes);
  }
  template <class T>
  unsigned match_any(T value, simt::Site site = simt::Site::here()) const {
    return by_rank(__match_any_sync(mask_, value, site));
  }
  template <class T>
  unsigned match_all(T value, int& all_equal, simt::Site site = simt::Site::here()) const {
    return by_rank(__match_all_sync(mask_, value, &all_equal, site));
  }

 protected:
  using thread_group::thread_group;

  // From a bit per lane to a bit per rank.
  unsigned by_rank(unsigned lanes) const {
    unsigned ranks = 0, rank = 0;
    simt::for_each_lane(mask_, [&](unsigned lane) { ranks |= (lanes >> lane & 1) << rank++; });
    return ranks;
  }
  unsigned lane_of(unsigned rank) const {
    unsigned mask = mask_;
    for (; rank; --rank) mask &= mask - 1;
    return static_cast<unsigned>(__builtin_ctz(mask));
  }
};

}  // namespace details

class coalesced_group : public details::lane_group {
 public:
  template <class T>
  details::Plain<T> shfl(T&& value, int source, simt::Site site = simt::Site::here()) const {
    return from_rank<details::Plain<T>>(value, static_cast<unsigned>(source), "coalesced_group::shfl", site);
  }
  template <class T>
  details::Plain<T> shfl_down(T&& value, unsigned delta, simt::Site site = simt::Site::here()) const {
    return from_rank<details::Plain<T>>(value, thread_rank() + delta, "coalesced_group::shfl_down", site);
  }
  template <class T>
  details::Plain<T> shfl_up(T&& value, unsigned delta, simt::Site site = simt::Site::here()) const {
    return from_rank<details::Plain<T>>(value, thread_rank() - delta, "coalesced_group::shfl_up", site);
  }

 private:
  friend struct details::Access;
  coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
      : lane_group(details::Kind::lanes, mask, static_cast<unsigned>(__builtin_popcount(mask)), meta_rank, meta_size) {}

  // The lane's own value if the group has no such rank.
  template <class T>
  T from_rank(const T& value, unsigned rank, const char* name, simt::Site site) const {
    const unsigned lane = rank < size_ ? lane_of(rank) : simt::lane_id();
    return details::shuffle<simt::Shuffle::index>(mask_, value, lane, warpSize, name, site);
  }
};

struct details::Access {
  static coalesced_group coalesced(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1) {
    return {mask, meta_rank, meta_size};
  }
  static thread_group group(Kind kind, unsigned mask, unsigned meta_rank, unsigned meta_size) {
    return {kind, mask, static_cast<unsigned>(__builtin_popcount(mask)), meta_rank, meta_size};
  }
  static Kind kind(const thread_group& group) { return group.kind_; }
  static unsigned mask(const thread_group& group) { return group.mask_; }
};

[[gnu::always_inline]] inline coalesced_group coalesced_threads(simt::Site site = simt::Site::here()) {
  return details::Access::coalesced(__activemask(site));
}

}  // namespace cooperative_groups
