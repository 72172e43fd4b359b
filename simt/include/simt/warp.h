// Warp-level built-ins: shuffles, votes, matches and reductions among the lanes of a mask.
#pragma once
#include <cstring>
#include <type_traits>
#include <utility>

#include "analysis.h"
#include "core.h"
#include "driver_types.h"

namespace simt {

template <class T>
struct Identity {
  using type = T;
};
template <class T>
using NotDeduced = typename Identity<T>::type;

// What CUDA's overloads return for an argument of type T: integers narrower than int are promoted.
template <class T, bool = std::is_arithmetic_v<T> || (std::is_enum_v<T> && std::is_convertible_v<T, int>)>
struct PromotedType {
  using type = T;
};
template <class T>
struct PromotedType<T, true> {
  using type = decltype(+std::declval<T>());
};
template <class T>
using Promoted = typename PromotedType<T>::type;

template <class T>
uint64_t to_word(const T& value) {
  static_assert(is_copyable_by_bytes<T>, "warp built-ins exchange trivially copyable types only");
  static_assert(sizeof(T) <= 8, "warp built-ins exchange at most eight bytes a lane; exchange larger types in parts");
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}

template <class T>
T from_word(uint64_t word) {
  alignas(T) unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &word, sizeof(T));
  return *reinterpret_cast<T*>(bytes);
}

// Calls visit(lane) for each lane of the mask, lowest first.
template <class Visit>
void for_each_lane(uint32_t mask, Visit visit) {
  for (; mask; mask &= mask - 1) visit(static_cast<unsigned>(__builtin_ctz(mask)));
}

// --- Shuffles ------------------------------------------------------------------------------------------------------

enum class Shuffle { index, up, down, butterfly };

// The lane that `lane` reads from; itself where CUDA gives a lane its own value back. Segments of `width` lanes are
// independent, except that a butterfly may read from an earlier one.
template <Shuffle kind>
unsigned shuffle_source(unsigned lane, unsigned operand, unsigned width) {
  const unsigned first = lane & ~(width - 1), last = lane | (width - 1);
  operand &= 31;  // the instruction has a five-bit operand
  switch (kind) {
    case Shuffle::index:
      return first | (operand & (width - 1));
    case Shuffle::up:
      return lane >= first + operand ? lane - operand : lane;
    case Shuffle::down:
      return lane + operand <= last ? lane + operand : lane;
    case Shuffle::butterfly:
      return (lane ^ operand) <= last ? lane ^ operand : lane;
  }
}

// CUDA leaves the value of a lane that takes no part undefined; an H200 gives 0, and programs rely on it.
template <Shuffle kind>
void combine_shuffle(Exchange& exchange, uint32_t mask) {
  for_each_lane(mask, [&](unsigned lane) {
    const uint32_t packed = exchange.operand[lane];
    const unsigned source = shuffle_source<kind>(lane, packed & 0xff, packed >> 8);
    exchange.result[lane] = mask >> source & 1 ? exchange.value[source] : 0;
  });
}

template <Shuffle kind>
constexpr Collective shuffle_called(const char* name) {
  return {&combine_shuffle<kind>, analysis::Operation::shuffle, name};
}

template <class T>
T shuffle(const Collective& what, unsigned mask, const T& value, unsigned operand, int width, Site site) {
  if (width < 1 || width > warpSize || (width & (width - 1)))
    device_fault(cudaErrorIllegalInstruction, "the width of a shuffle must be 1, 2, 4, 8, 16 or 32", site);
  const uint32_t packed = (operand & 31) | static_cast<unsigned>(width) << 8;
  return from_word<T>(warp_collective(what, mask, to_word(value), packed, site));
}

// --- Votes and matches ---------------------------------------------------------------------------------------------

struct VoteResult {
  uint32_t voters, votes;
};

inline void combine_vote(Exchange& exchange, uint32_t mask) {
  VoteResult result{mask, 0};
  for_each_lane(mask,
                [&](unsigned lane) { result.votes |= static_cast<uint32_t>(exchange.operand[lane] != 0) << lane; });
  for_each_lane(mask, [&](unsigned lane) { exchange.result[lane] = to_word(result); });
}

inline VoteResult vote(unsigned mask, bool predicate, const char* name, Site site) {
  const Collective what{&combine_vote, analysis::Operation::vote, name};
  return from_word<VoteResult>(warp_collective(what, mask, 0, predicate, site));
}

inline void combine_match_any(Exchange& exchange, uint32_t mask) {
  for_each_lane(mask, [&](unsigned lane) {
    uint32_t equal = 0;
    for_each_lane(mask, [&](unsigned other) {
      equal |= static_cast<uint32_t>(exchange.value[other] == exchange.value[lane]) << other;
    });
    exchange.result[lane] = equal;
  });
}

inline void combine_match_all(Exchange& exchange, uint32_t mask) {
  const uint64_t first = exchange.value[__builtin_ctz(mask)];
  bool same = true;
  for_each_lane(mask, [&](unsigned lane) { same = same && exchange.value[lane] == first; });
  for_each_lane(mask, [&](unsigned lane) { exchange.result[lane] = same ? mask : 0; });
}

// --- Reductions and barrier ----------------------------------------------------------------------------------------

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return T(a + b);
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};

template <class Operation, class T>
void combine_reduce(Exchange& exchange, uint32_t mask) {
  T total = from_word<T>(exchange.value[__builtin_ctz(mask)]);
  for_each_lane(mask & (mask - 1),
                [&](unsigned lane) { total = Operation{}(total, from_word<T>(exchange.value[lane])); });
  for_each_lane(mask, [&](unsigned lane) { exchange.result[lane] = to_word(total); });
}

template <class Operation, class T>
T reduce(unsigned mask, T value, const char* name, Site site) {
  const Collective what{&combine_reduce<Operation, T>, analysis::Operation::warp_reduce, name};
  return from_word<T>(warp_collective(what, mask, to_word(value), 0, site));
}

inline void combine_nothing(Exchange&, uint32_t) {}

inline void warp_barrier(unsigned mask, const char* name, Site site) {
  const Collective what{&combine_nothing, analysis::Operation::warp_sync, name};
  warp_collective(what, mask, 0, 0, site);
}

// The lanes that are at one place together. A line alone is not enough: both branches of a condition may call the same
// function. So lanes are distinguished by the copy of the code that they are in, and by its caller.
[[gnu::noinline]] inline uint32_t lanes_here(const void* caller, Site site) {
  const uint32_t at_line = active_mask(site);
#ifdef SIMT_ANALYSIS
  return at_line;  // the lanes of one step
#endif
  const auto address = [](const void* code) { return reinterpret_cast<uint64_t>(code); };
  const uint64_t place = address(__builtin_return_address(0)) ^ address(caller) << 32 ^ address(caller) >> 32;
  static constexpr Collective kWhat{&combine_match_any, analysis::Operation::vote, "__activemask"};
  return static_cast<uint32_t>(warp_collective(kWhat, at_line, place, 0, site));
}

}  // namespace simt

// --- CUDA's names --------------------------------------------------------------------------------------------------

inline void __syncwarp(unsigned mask = 0xffffffff, simt::Site site = simt::Site::here()) {
  simt::warp_barrier(mask, "__syncwarp", site);
}

[[gnu::always_inline]] inline unsigned __activemask(simt::Site site = simt::Site::here()) {
  return simt::lanes_here(__builtin_return_address(0), site);
}

template <class T>
simt::Promoted<T> __shfl_sync(unsigned mask, T value, int source, int width = warpSize,
                              simt::Site site = simt::Site::here()) {
  static constexpr auto kWhat = simt::shuffle_called<simt::Shuffle::index>("__shfl_sync");
  return simt::shuffle(kWhat, mask, value, static_cast<unsigned>(source), width, site);
}
template <class T>
simt::Promoted<T> __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                                 simt::Site site = simt::Site::here()) {
  static constexpr auto kWhat = simt::shuffle_called<simt::Shuffle::up>("__shfl_up_sync");
  return simt::shuffle(kWhat, mask, value, delta, width, site);
}
template <class T>
simt::Promoted<T> __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                                   simt::Site site = simt::Site::here()) {
  static constexpr auto kWhat = simt::shuffle_called<simt::Shuffle::down>("__shfl_down_sync");
  return simt::shuffle(kWhat, mask, value, delta, width, site);
}
template <class T>
simt::Promoted<T> __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize,
                                  simt::Site site = simt::Site::here()) {
  static constexpr auto kWhat = simt::shuffle_called<simt::Shuffle::butterfly>("__shfl_xor_sync");
  return simt::shuffle(kWhat, mask, value, static_cast<unsigned>(lane_mask), width, site);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, simt::Site site = simt::Site::here()) {
  return simt::vote(mask, predicate, "__ballot_sync", site).votes;
}
inline int __any_sync(unsigned mask, int predicate, simt::Site site = simt::Site::here()) {
  return simt::vote(mask, predicate, "__any_sync", site).votes != 0;
}
inline int __all_sync(unsigned mask, int predicate, simt::Site site = simt::Site::here()) {
  const simt::VoteResult result = simt::vote(mask, predicate, "__all_sync", site);
  return result.votes == result.voters;
}
inline int __uni_sync(unsigned mask, int predicate, simt::Site site = simt::Site::here()) {
  const simt::VoteResult result = simt::vote(mask, predicate, "__uni_sync", site);
  return result.votes == result.voters || result.votes == 0;
}

template <class T>
unsigned __match_any_sync(unsigned mask, T value, simt::Site site = simt::Site::here()) {
  static constexpr simt::Collective kWhat{&simt::combine_match_any, simt::analysis::Operation::vote,
                                          "__match_any_sync"};
  return static_cast<unsigned>(simt::warp_collective(kWhat, mask, simt::to_word(value), 0, site));
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all_equal, simt::Site site = simt::Site::here()) {
  static constexpr simt::Collective kWhat{&simt::combine_match_all, simt::analysis::Operation::vote,
                                          "__match_all_sync"};
  const unsigned equal = static_cast<unsigned>(simt::warp_collective(kWhat, mask, simt::to_word(value), 0, site));
  *all_equal = equal != 0;
  return equal;
}

#define SIMT_REDUCE(name, Operation, T)                                         \
  inline T name(unsigned mask, T value, simt::Site site = simt::Site::here()) { \
    return simt::reduce<simt::Operation>(mask, value, #name, site);             \
  }
SIMT_REDUCE(__reduce_add_sync, Add, unsigned)
SIMT_REDUCE(__reduce_add_sync, Add, int)
SIMT_REDUCE(__reduce_min_sync, Min, unsigned)
SIMT_REDUCE(__reduce_min_sync, Min, int)
SIMT_REDUCE(__reduce_max_sync, Max, unsigned)
SIMT_REDUCE(__reduce_max_sync, Max, int)
SIMT_REDUCE(__reduce_and_sync, And, unsigned)
SIMT_REDUCE(__reduce_or_sync, Or, unsigned)
SIMT_REDUCE(__reduce_xor_sync, Xor, unsigned)
#undef SIMT_REDUCE
