// cub::WarpScan: by shuffles where a logical warp has a power of two of threads, else through shared memory.
#pragma once
#include "cub/thread/thread_operators.cuh"
#include "cub/util_ptx.cuh"
#include "cub/util_type.cuh"

namespace cub {
namespace detail {

// Sums of integers need no second exchange: what came before is the inclusive sum less the own value.
template <class T, class Operator>
constexpr bool can_subtract = std::is_integral_v<T>&& std::is_same_v<Operator, cuda::std::plus<>>;

template <class T, int threads>
struct WarpScanShfl {
  using TempStorage = NullType;
  int lane = static_cast<int>(LaneId() % threads);
  unsigned mask = WarpMask<threads>(LaneId() / threads);

  SIMT_FOR_CALLER explicit WarpScanShfl(TempStorage&) {}

  template <class Operator>
  SIMT_FOR_CALLER T inclusive(T value, Operator op, simt::Site site) const {
    for (int offset = 1; offset < threads; offset *= 2) {
      const T other = ShuffleUp<threads>(value, offset, 0, mask, site);
      if (lane >= offset) value = op(other, value);
    }
    return value;
  }
  // What the lane before this one has; lane 0 has none, and gets its own.
  SIMT_FOR_CALLER T previous(T value, simt::Site site) const { return ShuffleUp<threads>(value, 1, 0, mask, site); }
  SIMT_FOR_CALLER T of_lane(T value, int source, simt::Site site) const {
    return ShuffleIndex<threads>(value, source, mask, site);
  }
};

template <class T, int threads>
struct WarpScanSmem {
  static constexpr int kHalf = 1 << (Log2<threads>::VALUE - 1);
  using TempStorage = Uninitialized<T[threads + kHalf]>;
  T* values;
  int lane = static_cast<int>(LaneId() % threads);
  unsigned mask = WarpMask<threads>(LaneId() / threads);

  SIMT_FOR_CALLER explicit WarpScanSmem(TempStorage& storage) : values(storage.Alias() + kHalf) {}

  template <class Operator>
  SIMT_FOR_CALLER T inclusive(T value, Operator op, simt::Site site) const {
    for (int offset = 1; offset < threads; offset *= 2) {
      values[lane] = value;
      __syncwarp(mask, site);
      if (lane >= offset) value = op(values[lane - offset], value);
      __syncwarp(mask, site);
    }
    return value;
  }
  SIMT_FOR_CALLER T previous(T value, simt::Site site) const { return of_lane(value, lane ? lane - 1 : 0, site); }
  SIMT_FOR_CALLER T of_lane(T value, int source, simt::Site site) const {
    values[lane] = value;
    __syncwarp(mask, site);
    const T found = values[source];
    __syncwarp(mask, site);
    return found;
  }
};

}  // namespace detail

// Without an initial value, lane 0's exclusive result is undefined.
template <class T, int LOGICAL_WARP_THREADS = detail::warp_threads>
class WarpScan {
  static_assert(LOGICAL_WARP_THREADS >= 1 && LOGICAL_WARP_THREADS <= 32, "a logical warp has 1 to 32 threads");
  using Internal =
      std::conditional_t<PowerOfTwo<LOGICAL_WARP_THREADS>::VALUE, detail::WarpScanShfl<T, LOGICAL_WARP_THREADS>,
                         detail::WarpScanSmem<T, LOGICAL_WARP_THREADS>>;

 public:
  struct TempStorage : Uninitialized<typename Internal::TempStorage> {};

  SIMT_FOR_CALLER WarpScan(TempStorage& temp_storage) : storage_(temp_storage.Alias()) {}

  SIMT_FOR_CALLER void InclusiveSum(T input, T& output, simt::Site site = simt::Site::here()) {
    InclusiveScan(input, output, cuda::std::plus<>{}, site);
  }
  SIMT_FOR_CALLER void InclusiveSum(T input, T& output, T& warp_aggregate, simt::Site site = simt::Site::here()) {
    InclusiveScan(input, output, cuda::std::plus<>{}, warp_aggregate, site);
  }
  SIMT_FOR_CALLER void ExclusiveSum(T input, T& output, simt::Site site = simt::Site::here()) {
    ExclusiveScan(input, output, T{}, cuda::std::plus<>{}, site);
  }
  SIMT_FOR_CALLER void ExclusiveSum(T input, T& output, T& warp_aggregate, simt::Site site = simt::Site::here()) {
    ExclusiveScan(input, output, T{}, cuda::std::plus<>{}, warp_aggregate, site);
  }

  template <class ScanOp>
  SIMT_FOR_CALLER void InclusiveScan(T input, T& output, ScanOp op, simt::Site site = simt::Site::here()) {
    output = Internal(storage_).inclusive(input, op, site);
  }
  template <class ScanOp>
  SIMT_FOR_CALLER void InclusiveScan(T input, T& output, ScanOp op, T& warp_aggregate,
                                     simt::Site site = simt::Site::here()) {
    output = Internal(storage_).inclusive(input, op, site);
    warp_aggregate = last(output, site);
  }
  template <class ScanOp>
  SIMT_FOR_CALLER void InclusiveScan(T input, T& output, T initial_value, ScanOp op,
                                     simt::Site site = simt::Site::here()) {
    output = op(initial_value, Internal(storage_).inclusive(input, op, site));
  }
  template <class ScanOp>
  SIMT_FOR_CALLER void InclusiveScan(T input, T& output, T initial_value, ScanOp op, T& warp_aggregate,
                                     simt::Site site = simt::Site::here()) {
    InclusiveScan(input, output, op, warp_aggregate, site);
    output = op(initial_value, output);
  }

  template <class ScanOp>
  SIMT_FOR_CALLER void ExclusiveScan(T input, T& output, ScanOp op, simt::Site site = simt::Site::here()) {
    T inclusive;
    Scan(input, inclusive, output, op, site);
  }
  template <class ScanOp>
  SIMT_FOR_CALLER void ExclusiveScan(T input, T& output, ScanOp op, T& warp_aggregate,
                                     simt::Site site = simt::Site::here()) {
    T inclusive;
    Scan(input, inclusive, output, op, site);
    warp_aggregate = last(inclusive, site);
  }
  template <class ScanOp>
  SIMT_FOR_CALLER void ExclusiveScan(T input, T& output, T initial_value, ScanOp op,
                                     simt::Site site = simt::Site::here()) {
    T inclusive;
    Scan(input, inclusive, output, initial_value, op, site);
  }
  template <class ScanOp>
  SIMT_FOR_CALLER void ExclusiveScan(T input, T& output, T initial_value, ScanOp op, T& warp_aggregate,
                                     simt::Site site = simt::Site::here()) {
    const T inclusive = Internal(storage_).inclusive(input, op, site);
    warp_aggregate = last(inclusive, site);
    output = before(input, T(op(initial_value, inclusive)), initial_value, op, site);
  }

  template <class ScanOp>
  SIMT_FOR_CALLER void Scan(T input, T& inclusive_output, T& exclusive_output, ScanOp op,
                            simt::Site site = simt::Site::here()) {
    Internal warp(storage_);
    const T inclusive = warp.inclusive(input, op, site);
    if constexpr (detail::can_subtract<T, ScanOp>)
      exclusive_output = inclusive - input;
    else
      exclusive_output = warp.previous(inclusive, site);
    inclusive_output = inclusive;
  }
  template <class ScanOp>
  SIMT_FOR_CALLER void Scan(T input, T& inclusive_output, T& exclusive_output, T initial_value, ScanOp op,
                            simt::Site site = simt::Site::here()) {
    const T inclusive = op(initial_value, Internal(storage_).inclusive(input, op, site));
    exclusive_output = before(input, inclusive, initial_value, op, site);
    inclusive_output = inclusive;
  }

  SIMT_FOR_CALLER T Broadcast(T input, unsigned source_lane, simt::Site site = simt::Site::here()) {
    return Internal(storage_).of_lane(input, static_cast<int>(source_lane), site);
  }

 private:
  SIMT_FOR_CALLER T last(T inclusive, simt::Site site) {
    return Internal(storage_).of_lane(inclusive, LOGICAL_WARP_THREADS - 1, site);
  }
  template <class ScanOp>
  SIMT_FOR_CALLER T before(T input, T inclusive, T initial_value, ScanOp, simt::Site site) {
    if constexpr (detail::can_subtract<T, ScanOp>) {
      return inclusive - input;
    } else {
      Internal warp(storage_);
      const T found = warp.previous(inclusive, site);
      return warp.lane == 0 ? initial_value : found;
    }
  }

  typename Internal::TempStorage& storage_;
};

}  // namespace cub
