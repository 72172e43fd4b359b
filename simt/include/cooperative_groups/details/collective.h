// Reductions and scans over groups of lanes, for any operator. Values are combined in the order of CUDA's shuffles, so
// that floating-point results round alike.
#pragma once
#include "cooperative_groups.h"

namespace cooperative_groups {
namespace details {

// What a lane deposits: the last to arrive works on all of them while their owners wait.
template <class T, class Operator>
struct Contribution {
  T value, result;
  Operator* combine;
};

template <class T, class Operator>
struct Contributions {
  simt::Exchange& exchange;
  uint32_t mask;
  Contribution<T, Operator>& operator[](unsigned lane) const {
    return *reinterpret_cast<Contribution<T, Operator>*>(exchange.value[lane]);
  }
  // One round of shuffles: each lane combines its value with that of the lane partner(lane), if there is one.
  template <class Partner>
  void round(Partner partner) const {
    simt::for_each_lane(mask, [&](unsigned lane) {
      const int other = partner(lane);
      Contribution<T, Operator>& own = (*this)[lane];
      own.result = other < 0 ? own.value : (*own.combine)(own.value, (*this)[static_cast<unsigned>(other)].value);
    });
    simt::for_each_lane(mask, [&](unsigned lane) { (*this)[lane].value = (*this)[lane].result; });
  }
};

// The sum over a tile, in every lane.
template <class T, class Operator>
void combine_butterfly(simt::Exchange& exchange, uint32_t mask) {
  const unsigned size = exchange.operand[__builtin_ctz(mask)];
  for (unsigned step = size / 2; step; step /= 2)
    Contributions<T, Operator>{exchange, mask}.round(
        [&](unsigned lane) { return mask >> (lane ^ step) & 1 ? static_cast<int>(lane ^ step) : -1; });
}

// The sum up to each lane, by rank.
template <class T, class Operator>
void combine_scan(simt::Exchange& exchange, uint32_t mask) {
  unsigned lanes[32], ranks[32], size = 0;
  simt::for_each_lane(mask, [&](unsigned lane) {
    lanes[size] = lane;
    ranks[lane] = size++;
  });
  for (unsigned step = 1; step < size; step *= 2)
    Contributions<T, Operator>{exchange, mask}.round(
        [&](unsigned lane) { return ranks[lane] >= step ? static_cast<int>(lanes[ranks[lane] - step]) : -1; });
}

template <class T, class Operator>
T collective(simt::Combine combine, uint32_t mask, T value, uint32_t operand, Operator& op, const char* name,
             simt::Site site) {
  Contribution<T, Operator> own{value, value, &op};
  const simt::Collective what{combine, simt::analysis::Operation::warp_reduce, name};
  simt::warp_collective(what, mask, reinterpret_cast<uint64_t>(&own), operand, site);
  return own.value;
}

template <unsigned Size, class T, class Operator>
T reduce_tile(uint32_t mask, T value, Operator& op, simt::Site site) {
  return collective(&combine_butterfly<T, Operator>, mask, value, Size, op, "cooperative_groups::reduce", site);
}

template <class T, class Operator>
T scan_lanes(uint32_t mask, T value, Operator& op, simt::Site site) {
  return collective(&combine_scan<T, Operator>, mask, value, 0, op, "a scan of cooperative_groups", site);
}

// --- Per kind of group ---------------------------------------------------------------------------------------------

template <unsigned Size, class Parent, class T, class Operator>
T reduce(const thread_block_tile<Size, Parent>& group, T value, Operator& op, simt::Site site) {
  if constexpr (Size <= 32) {
    return reduce_tile<Size>(Access::mask(group), value, op, site);
  } else {
    const T of_warp = reduce_tile<32>(~0u, value, op, site);
    return group.of_warps(of_warp, site, 0, [&](const T* sums, unsigned warps) {
      T total = sums[0];
      for (unsigned warp = 1; warp < warps; ++warp) total = op(total, sums[warp]);
      return total;
    });
  }
}

template <class T, class Operator>
T reduce(const coalesced_group& group, T value, Operator& op, simt::Site site) {
  const uint32_t mask = Access::mask(group);
  if (group.size() == 32) return reduce_tile<32>(mask, value, op, site);
  return group.shfl(scan_lanes(mask, value, op, site), static_cast<int>(group.size()) - 1, site);
}

// A scan gives each thread the sum up to it, with and without its own value; the first has none without.
template <class T>
struct Scan {
  T inclusive, exclusive;
};

template <class Group, class T, class Operator>
Scan<T> scan_in_warp(const Group& group, T value, Operator& op, simt::Site site) {
  const T inclusive = scan_lanes(Access::mask(group), value, op, site);
  const T before = group.shfl_up(inclusive, 1, site);
  return {inclusive, group.thread_rank() == 0 ? T{} : before};
}

template <class T, class Operator>
Scan<T> scan(const coalesced_group& group, T value, Operator& op, simt::Site site) {
  return scan_in_warp(group, value, op, site);
}

template <unsigned Size, class Parent, class T, class Operator>
Scan<T> scan(const thread_block_tile<Size, Parent>& group, T value, Operator& op, simt::Site site) {
  if constexpr (Size <= 32) {
    return scan_in_warp(group, value, op, site);
  } else {
    const unsigned last_lane = 31 - static_cast<unsigned>(__builtin_clz(simt::present_lanes()));
    const Scan<T> own = scan_in_warp(tiled_partition<32>(group), value, op, site);
    return group.of_warps(own.inclusive, site, last_lane, [&](const T* sums, unsigned) {
      const unsigned warp = group.thread_rank() / 32;
      if (warp == 0) return own;
      T before = sums[0];
      for (unsigned w = 1; w < warp; ++w) before = op(before, sums[w]);
      return Scan<T>{op(before, own.inclusive), group.thread_rank() % 32 ? op(before, own.exclusive) : before};
    });
  }
}

}  // namespace details

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

namespace details {

template <class T, class Operator>
using CheckedResult = Plain<decltype(std::declval<Operator&>()(std::declval<T&>(), std::declval<T&>()))>;

template <class Group, class T, class Operator>
constexpr void check_collective() {
  static_assert(
      is_tileable<Group>::value && !std::is_same_v<Group, thread_block> || std::is_same_v<Group, coalesced_group>,
      "reductions and scans take a thread_block_tile or a coalesced_group; cut a block with "
      "tiled_partition<size>(block) first");
  static_assert(std::is_same_v<CheckedResult<T, Operator>, T>,
                "the operator's result must have the type of the reduced value");
}

}  // namespace details
}  // namespace cooperative_groups
