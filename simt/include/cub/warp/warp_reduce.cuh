// cub::WarpReduce: by shuffles where a logical warp has a power of two of threads, else through shared memory.
#pragma once
#include "cub/thread/thread_operators.cuh"
#include "cub/thread/thread_reduce.cuh"
#include "cub/util_ptx.cuh"
#include "cub/util_type.cuh"

namespace cub {
namespace detail {

// The operators and types for which a GPU has an instruction that reduces a warp.
template <class T, class Operator>
constexpr bool has_warp_instruction = (std::is_same_v<T, int> ||
                                       std::is_same_v<T, unsigned>)&&(std::is_same_v<Operator, cuda::std::plus<>> ||
                                                                      std::is_same_v<Operator, cuda::minimum<>> ||
                                                                      std::is_same_v<Operator, cuda::maximum<>>);

template <class T, int threads>
struct WarpReduceShfl {
  using TempStorage = NullType;
  int lane = static_cast<int>(LaneId() % threads);
  unsigned mask = WarpMask<threads>(LaneId() / threads);

  SIMT_FOR_CALLER explicit WarpReduceShfl(TempStorage&) {}

  // Each lane gets the values from its own to that of last_lane, combined.
  template <class Operator>
  SIMT_FOR_CALLER T fold(T value, int last_lane, Operator op, simt::Site site) const {
    for (int offset = 1; offset < threads; offset *= 2) {
      const T other = ShuffleDown<threads>(value, offset, last_lane, mask, site);
      if (lane + offset <= last_lane) value = op(value, other);
    }
    return value;
  }

  template <bool all_valid, class Operator>
  SIMT_FOR_CALLER T reduce(T value, int valid_items, Operator op, simt::Site site) const {
    if constexpr (all_valid && has_warp_instruction<T, Operator>) {
      if constexpr (std::is_same_v<Operator, cuda::std::plus<>>) return __reduce_add_sync(mask, value, site);
      if constexpr (std::is_same_v<Operator, cuda::minimum<>>) return __reduce_min_sync(mask, value, site);
      if constexpr (std::is_same_v<Operator, cuda::maximum<>>) return __reduce_max_sync(mask, value, site);
    } else {
      return fold(value, all_valid ? threads - 1 : valid_items - 1, op, site);
    }
  }
};

template <class T, int threads>
struct WarpReduceSmem {
  static constexpr int kElements = threads + (1 << (Log2<threads>::VALUE - 1));
  struct Storage {
    T values[kElements];
    unsigned char flags[kElements];
  };
  using TempStorage = Uninitialized<Storage>;
  Storage& storage;
  int lane = static_cast<int>(LaneId() % threads);
  unsigned mask = WarpMask<threads>(LaneId() / threads);

  SIMT_FOR_CALLER explicit WarpReduceSmem(TempStorage& storage) : storage(storage.Alias()) {}

  template <class Operator>
  SIMT_FOR_CALLER T fold(T value, int last_lane, Operator op, simt::Site site) const {
    for (int offset = 1; offset < threads; offset *= 2) {
      storage.values[lane] = value;
      __syncwarp(mask, site);
      if (lane + offset <= last_lane) value = op(value, storage.values[lane + offset]);
      __syncwarp(mask, site);
    }
    return value;
  }

  template <bool all_valid, class Operator>
  SIMT_FOR_CALLER T reduce(T value, int valid_items, Operator op, simt::Site site) const {
    return fold(value, all_valid ? threads - 1 : valid_items - 1, op, site);
  }
};

}  // namespace detail

// The result is that of lane 0 of each logical warp; of a segment, that of its first lane.
template <class T, int LOGICAL_WARP_THREADS = detail::warp_threads>
class WarpReduce {
  static_assert(LOGICAL_WARP_THREADS >= 1 && LOGICAL_WARP_THREADS <= 32, "a logical warp has 1 to 32 threads");

 public:
  using InternalWarpReduce =
      std::conditional_t<PowerOfTwo<LOGICAL_WARP_THREADS>::VALUE, detail::WarpReduceShfl<T, LOGICAL_WARP_THREADS>,
                         detail::WarpReduceSmem<T, LOGICAL_WARP_THREADS>>;
  struct TempStorage : Uninitialized<typename InternalWarpReduce::TempStorage> {};

  SIMT_FOR_CALLER WarpReduce(TempStorage& temp_storage) : storage_(temp_storage.Alias()) {}

  SIMT_FOR_CALLER T Sum(T input, simt::Site site = simt::Site::here()) {
    return Reduce(input, cuda::std::plus<>{}, site);
  }
  SIMT_FOR_CALLER T Sum(T input, int valid_items, simt::Site site = simt::Site::here()) {
    return Reduce(input, cuda::std::plus<>{}, valid_items, site);
  }
  template <class ReductionOp>
  SIMT_FOR_CALLER T Reduce(T input, ReductionOp op, simt::Site site = simt::Site::here()) {
    return InternalWarpReduce(storage_).template reduce<true>(input, LOGICAL_WARP_THREADS, op, site);
  }
  template <class ReductionOp>
  SIMT_FOR_CALLER T Reduce(T input, ReductionOp op, int valid_items, simt::Site site = simt::Site::here()) {
    return InternalWarpReduce(storage_).template reduce<false>(input, valid_items, op, site);
  }

  template <class Flag>
  SIMT_FOR_CALLER T HeadSegmentedSum(T input, Flag head_flag, simt::Site site = simt::Site::here()) {
    return HeadSegmentedReduce(input, head_flag, cuda::std::plus<>{}, site);
  }
  template <class Flag>
  SIMT_FOR_CALLER T TailSegmentedSum(T input, Flag tail_flag, simt::Site site = simt::Site::here()) {
    return TailSegmentedReduce(input, tail_flag, cuda::std::plus<>{}, site);
  }
  template <class ReductionOp, class Flag>
  SIMT_FOR_CALLER T HeadSegmentedReduce(T input, Flag head_flag, ReductionOp op, simt::Site site = simt::Site::here()) {
    return segmented(input, head_flag, 1, op, site);
  }
  template <class ReductionOp, class Flag>
  SIMT_FOR_CALLER T TailSegmentedReduce(T input, Flag tail_flag, ReductionOp op, simt::Site site = simt::Site::here()) {
    return segmented(input, tail_flag, 0, op, site);
  }

 private:
  // The segment of a lane ends at the next flag from it on, or with its logical warp. A head ends the one before it.
  template <class ReductionOp>
  SIMT_FOR_CALLER T segmented(T input, bool flag, unsigned heads, ReductionOp op, simt::Site site) {
    InternalWarpReduce warp(storage_);
    const unsigned first = LaneId() - static_cast<unsigned>(warp.lane);
    uint64_t ends = static_cast<uint64_t>(__ballot_sync(warp.mask, flag, site) & warp.mask) >> (first + heads);
    ends |= uint64_t{1} << (LOGICAL_WARP_THREADS - 1);
    return warp.fold(input, __builtin_ctzll(ends >> warp.lane) + warp.lane, op, site);
  }

  typename InternalWarpReduce::TempStorage& storage_;
};

}  // namespace cub
