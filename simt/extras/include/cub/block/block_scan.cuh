// cub::BlockScan. Each algorithm keeps its values where CUB keeps them and has CUB's barriers.
#pragma once
#include "cub/block/block_raking_layout.cuh"
#include "cub/thread/thread_reduce.cuh"
#include "cub/warp/warp_scan.cuh"
#include "simt/device.h"

namespace cub {

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

namespace detail {

// A scan takes an initial value or none (null), and gives the sum of all inputs to where one asks for it.
template <class T>
struct ScanExtras {
  const T* initial;
  T* aggregate;
};

// Every warp scans its values, and each thread adds what the warps before its own have. One barrier.
template <class T, int threads>
struct BlockScanWarpScans {
  static constexpr int kWarps = (threads + 31) / 32;
  using Warp = WarpScan<T, 32>;
  struct alignas(32) Storage {
    T warp_aggregates[kWarps];
    typename Warp::TempStorage warp_scan[kWarps];
    T block_prefix;
  };
  struct TempStorage : Uninitialized<Storage> {};

  template <bool inclusive, class Operator>
  SIMT_FOR_CALLER static T scan(TempStorage& temp, int tid, T input, Operator op, ScanExtras<T> extras,
                                simt::Site site) {
    Storage& storage = temp.Alias();
    const int warp = tid / 32;
    T up_to, before, warp_prefix;
    if constexpr (inclusive)
      Warp(storage.warp_scan[warp]).InclusiveScan(input, up_to, op, site);
    else
      Warp(storage.warp_scan[warp]).Scan(input, up_to, before, op, site);
    if (LaneId() == 31) storage.warp_aggregates[warp] = up_to;
    __syncthreads(site);
    T total = storage.warp_aggregates[0];
    for (int other = 1; other < kWarps; ++other) {
      if (warp == other) warp_prefix = total;
      total = op(total, storage.warp_aggregates[other]);
    }
    if (extras.aggregate) *extras.aggregate = total;
    const T own = inclusive ? up_to : before;
    if (!extras.initial && warp == 0) return own;
    if (extras.initial) warp_prefix = warp ? T(op(*extras.initial, warp_prefix)) : *extras.initial;
    return !inclusive && LaneId() == 0 ? warp_prefix : T(op(warp_prefix, own));
  }

  template <bool inclusive, class Operator, class Callback>
  SIMT_FOR_CALLER static T scan_after(TempStorage& temp, int tid, T input, Operator op, Callback& callback,
                                      simt::Site site) {
    T total;
    T result = scan<inclusive>(temp, tid, input, op, {nullptr, &total}, site);
    if (tid < 32) {
      const T prefix = callback(total);
      if (tid == 0) temp.Alias().block_prefix = prefix;
    }
    __syncthreads(site);
    const T prefix = temp.Alias().block_prefix;
    return !inclusive && tid == 0 ? prefix : T(op(prefix, result));
  }
};

// All values go to shared memory; one warp scans them in segments and puts the results in their places. Two barriers.
template <class T, int threads, bool memoize>
struct BlockScanRaking {
  using Layout = BlockRakingLayout<T, threads>;
  static constexpr int kRaking = Layout::RAKING_THREADS, kSegment = Layout::SEGMENT_LENGTH;
  static constexpr bool kOneWarp = kRaking == threads;
  using Warp = WarpScan<T, kRaking>;
  struct Storage {
    typename Warp::TempStorage warp_scan;
    typename Layout::TempStorage raking_grid;
    T block_aggregate;
  };
  struct TempStorage : Uninitialized<Storage> {};

  // sum_before(warp, sum of the segment) is what counts before the segment; the first has nothing where has_first is
  // not set.
  template <bool inclusive, class Operator, class SumBefore>
  SIMT_FOR_CALLER static T in_segments(Storage& storage, int tid, T input, Operator op, bool has_first,
                                       SumBefore sum_before, simt::Site site) {
    T* const place = Layout::PlacementPtr(storage.raking_grid, static_cast<unsigned>(tid));
    *place = input;
    __syncthreads(site);
    if (tid < kRaking) {
      T* const segment = Layout::RakingPtr(storage.raking_grid, static_cast<unsigned>(tid));
      T values[kSegment];
      for (int i = 0; i < kSegment; ++i)
        if (Layout::UNGUARDED || tid * kSegment + i < threads) values[i] = segment[i];
      T total = values[0];
      for (int i = 1; i < kSegment; ++i)
        if (Layout::UNGUARDED || tid * kSegment + i < threads) total = op(total, values[i]);
      Warp warp(storage.warp_scan);
      const T before = sum_before(warp, total);
      if constexpr (!memoize) {
        for (int i = 0; i < kSegment; ++i)
          if (Layout::UNGUARDED || tid * kSegment + i < threads) values[i] = segment[i];
      }
      if constexpr (inclusive)
        thread_scan_inclusive<T, kSegment>(values, values, op, before, has_first || tid != 0);
      else
        thread_scan_exclusive<T, kSegment>(values, values, op, before, has_first || tid != 0);
      for (int i = 0; i < kSegment; ++i)
        if (Layout::UNGUARDED || tid * kSegment + i < threads) segment[i] = values[i];
    }
    __syncthreads(site);
    return *place;
  }

  template <bool inclusive, class Operator>
  SIMT_FOR_CALLER static T scan(TempStorage& temp, int tid, T input, Operator op, ScanExtras<T> extras,
                                simt::Site site) {
    Storage& storage = temp.Alias();
    if constexpr (kOneWarp) {
      Warp warp(storage.warp_scan);
      T result, unused;
      T& aggregate = extras.aggregate ? *extras.aggregate : unused;
      if (inclusive)
        extras.aggregate ? warp.InclusiveScan(input, result, op, aggregate, site)
                         : warp.InclusiveScan(input, result, op, site);
      else if (extras.initial)
        extras.aggregate ? warp.ExclusiveScan(input, result, *extras.initial, op, aggregate, site)
                         : warp.ExclusiveScan(input, result, *extras.initial, op, site);
      else
        extras.aggregate ? warp.ExclusiveScan(input, result, op, aggregate, site)
                         : warp.ExclusiveScan(input, result, op, site);
      return result;
    } else {
      const auto sum_before = [&](Warp & warp, T total) __attribute__((always_inline)) {
        T up_to, before;
        if (!extras.initial) {
          warp.Scan(total, up_to, before, op, site);
          if (extras.aggregate && tid == kRaking - 1) storage.block_aggregate = up_to;
        } else if (extras.aggregate) {
          T aggregate;
          warp.ExclusiveScan(total, before, *extras.initial, op, aggregate, site);
          if (tid == 0) storage.block_aggregate = aggregate;
        } else {
          warp.ExclusiveScan(total, before, *extras.initial, op, site);
        }
        return before;
      };
      const T result = in_segments<inclusive>(storage, tid, input, op, extras.initial != nullptr, sum_before, site);
      if (extras.aggregate) *extras.aggregate = storage.block_aggregate;
      return result;
    }
  }

  template <bool inclusive, class Operator, class Callback>
  SIMT_FOR_CALLER static T scan_after(TempStorage& temp, int tid, T input, Operator op, Callback& callback,
                                      simt::Site site) {
    Storage& storage = temp.Alias();
    const auto prefix_of = [&](Warp & warp, T aggregate) __attribute__((always_inline)) {
      return warp.Broadcast(callback(aggregate), 0, site);
    };
    if constexpr (kOneWarp) {
      Warp warp(storage.warp_scan);
      T aggregate;
      T result = scan<inclusive>(temp, tid, input, op, {nullptr, &aggregate}, site);
      const T prefix = prefix_of(warp, aggregate);
      return !inclusive && tid == 0 ? prefix : T(op(prefix, result));
    } else {
      const auto sum_before = [&](Warp & warp, T total) __attribute__((always_inline)) {
        T before, aggregate;
        warp.ExclusiveScan(total, before, op, aggregate, site);
        const T prefix = prefix_of(warp, aggregate);
        return tid == 0 ? prefix : T(op(prefix, before));
      };
      return in_segments<inclusive>(storage, tid, input, op, true, sum_before, site);
    }
  }
};

}  // namespace detail

// The callback is called by the first warp with the sum of all inputs; what lane 0's call returns counts before them.
// Without an initial value and a callback, thread 0's exclusive result is undefined.
template <class T, int BLOCK_DIM_X, BlockScanAlgorithm ALGORITHM = BLOCK_SCAN_RAKING, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1>
class BlockScan {
  static constexpr int kThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  using Internal = std::conditional_t<ALGORITHM == BLOCK_SCAN_WARP_SCANS && kThreads % 32 == 0,
                                      detail::BlockScanWarpScans<T, kThreads>,
                                      detail::BlockScanRaking<T, kThreads, ALGORITHM == BLOCK_SCAN_RAKING_MEMOIZE>>;
  using Storage = typename Internal::TempStorage;
  using Plus = cuda::std::plus<>;
  using Site = simt::Site;

 public:
  struct TempStorage : Uninitialized<Storage> {};

  SIMT_FOR_CALLER BlockScan() : storage_(simt::shared<Storage, simt_S_private_storage>()) {}
  SIMT_FOR_CALLER BlockScan(TempStorage& temp_storage) : storage_(temp_storage.Alias()) {}

  // --- Sums of one item per thread
  SIMT_FOR_CALLER void InclusiveSum(T input, T& output, Site site = Site::here()) {
    InclusiveScan(input, output, Plus{}, site);
  }
  SIMT_FOR_CALLER void InclusiveSum(T input, T& output, T& block_aggregate, Site site = Site::here()) {
    InclusiveScan(input, output, Plus{}, block_aggregate, site);
  }
  template <class Callback>
  SIMT_FOR_CALLER void InclusiveSum(T input, T& output, Callback& callback, Site site = Site::here()) {
    InclusiveScan(input, output, Plus{}, callback, site);
  }
  SIMT_FOR_CALLER void ExclusiveSum(T input, T& output, Site site = Site::here()) {
    ExclusiveScan(input, output, T{}, Plus{}, site);
  }
  SIMT_FOR_CALLER void ExclusiveSum(T input, T& output, T& block_aggregate, Site site = Site::here()) {
    ExclusiveScan(input, output, T{}, Plus{}, block_aggregate, site);
  }
  template <class Callback>
  SIMT_FOR_CALLER void ExclusiveSum(T input, T& output, Callback& callback, Site site = Site::here()) {
    ExclusiveScan(input, output, Plus{}, callback, site);
  }

  // --- Scans of one item per thread
  template <class ScanOp>
  SIMT_FOR_CALLER void InclusiveScan(T input, T& output, ScanOp op, Site site = Site::here()) {
    output = Internal::template scan<true>(storage_, tid_, input, op, {nullptr, nullptr}, site);
  }
  template <class ScanOp>
  SIMT_FOR_CALLER void InclusiveScan(T input, T& output, ScanOp op, T& block_aggregate, Site site = Site::here()) {
    output = Internal::template scan<true>(storage_, tid_, input, op, {nullptr, &block_aggregate}, site);
  }
  template <class ScanOp, class Callback>
  SIMT_FOR_CALLER void InclusiveScan(T input, T& output, ScanOp op, Callback& callback, Site site = Site::here()) {
    output = Internal::template scan_after<true>(storage_, tid_, input, op, callback, site);
  }
  template <class ScanOp>
  SIMT_FOR_CALLER void ExclusiveScan(T input, T& output, ScanOp op, Site site = Site::here()) {
    output = Internal::template scan<false>(storage_, tid_, input, op, {nullptr, nullptr}, site);
  }
  template <class ScanOp>
  SIMT_FOR_CALLER void ExclusiveScan(T input, T& output, ScanOp op, T& block_aggregate, Site site = Site::here()) {
    output = Internal::template scan<false>(storage_, tid_, input, op, {nullptr, &block_aggregate}, site);
  }
  template <class ScanOp>
  SIMT_FOR_CALLER void ExclusiveScan(T input, T& output, T initial_value, ScanOp op, Site site = Site::here()) {
    output = Internal::template scan<false>(storage_, tid_, input, op, {&initial_value, nullptr}, site);
  }
  template <class ScanOp>
  SIMT_FOR_CALLER void ExclusiveScan(T input, T& output, T initial_value, ScanOp op, T& block_aggregate,
                                     Site site = Site::here()) {
    output = Internal::template scan<false>(storage_, tid_, input, op, {&initial_value, &block_aggregate}, site);
  }
  template <class ScanOp, class Callback>
  SIMT_FOR_CALLER void ExclusiveScan(T input, T& output, ScanOp op, Callback& callback, Site site = Site::here()) {
    output = Internal::template scan_after<false>(storage_, tid_, input, op, callback, site);
  }

  // --- Sums of several items per thread, one thread's side by side
  template <int N>
  SIMT_FOR_CALLER void InclusiveSum(T (&input)[N], T (&output)[N], Site site = Site::here()) {
    InclusiveScan(input, output, Plus{}, site);
  }
  template <int N>
  SIMT_FOR_CALLER void InclusiveSum(T (&input)[N], T (&output)[N], T& block_aggregate, Site site = Site::here()) {
    InclusiveScan(input, output, Plus{}, block_aggregate, site);
  }
  template <int N, class Callback>
  SIMT_FOR_CALLER void InclusiveSum(T (&input)[N], T (&output)[N], Callback& callback, Site site = Site::here()) {
    InclusiveScan(input, output, Plus{}, callback, site);
  }
  template <int N>
  SIMT_FOR_CALLER void ExclusiveSum(T (&input)[N], T (&output)[N], Site site = Site::here()) {
    ExclusiveScan(input, output, T{}, Plus{}, site);
  }
  template <int N>
  SIMT_FOR_CALLER void ExclusiveSum(T (&input)[N], T (&output)[N], T& block_aggregate, Site site = Site::here()) {
    ExclusiveScan(input, output, T{}, Plus{}, block_aggregate, site);
  }
  template <int N, class Callback>
  SIMT_FOR_CALLER void ExclusiveSum(T (&input)[N], T (&output)[N], Callback& callback, Site site = Site::here()) {
    ExclusiveScan(input, output, Plus{}, callback, site);
  }

  // --- Scans of several items per thread
  template <int N, class ScanOp>
  SIMT_FOR_CALLER void InclusiveScan(T (&input)[N], T (&output)[N], ScanOp op, Site site = Site::here()) {
    scan_items<true>(input, output, op, {nullptr, nullptr}, site);
  }
  template <int N, class ScanOp>
  SIMT_FOR_CALLER void InclusiveScan(T (&input)[N], T (&output)[N], ScanOp op, T& block_aggregate,
                                     Site site = Site::here()) {
    scan_items<true>(input, output, op, {nullptr, &block_aggregate}, site);
  }
  template <int N, class ScanOp>
  SIMT_FOR_CALLER void InclusiveScan(T (&input)[N], T (&output)[N], T initial_value, ScanOp op,
                                     Site site = Site::here()) {
    scan_items<true>(input, output, op, {&initial_value, nullptr}, site);
  }
  template <int N, class ScanOp>
  SIMT_FOR_CALLER void InclusiveScan(T (&input)[N], T (&output)[N], T initial_value, ScanOp op, T& block_aggregate,
                                     Site site = Site::here()) {
    scan_items<true>(input, output, op, {&initial_value, &block_aggregate}, site);
  }
  template <int N, class ScanOp, class Callback>
  SIMT_FOR_CALLER void InclusiveScan(T (&input)[N], T (&output)[N], ScanOp op, Callback& callback,
                                     Site site = Site::here()) {
    T before;
    ExclusiveScan(T(ThreadReduce(input, op)), before, op, callback, site);
    detail::thread_scan_inclusive<T, N>(input, output, op, before);
  }
  template <int N, class ScanOp>
  SIMT_FOR_CALLER void ExclusiveScan(T (&input)[N], T (&output)[N], ScanOp op, Site site = Site::here()) {
    scan_items<false>(input, output, op, {nullptr, nullptr}, site);
  }
  template <int N, class ScanOp>
  SIMT_FOR_CALLER void ExclusiveScan(T (&input)[N], T (&output)[N], ScanOp op, T& block_aggregate,
                                     Site site = Site::here()) {
    scan_items<false>(input, output, op, {nullptr, &block_aggregate}, site);
  }
  template <int N, class ScanOp>
  SIMT_FOR_CALLER void ExclusiveScan(T (&input)[N], T (&output)[N], T initial_value, ScanOp op,
                                     Site site = Site::here()) {
    scan_items<false>(input, output, op, {&initial_value, nullptr}, site);
  }
  template <int N, class ScanOp>
  SIMT_FOR_CALLER void ExclusiveScan(T (&input)[N], T (&output)[N], T initial_value, ScanOp op, T& block_aggregate,
                                     Site site = Site::here()) {
    scan_items<false>(input, output, op, {&initial_value, &block_aggregate}, site);
  }
  template <int N, class ScanOp, class Callback>
  SIMT_FOR_CALLER void ExclusiveScan(T (&input)[N], T (&output)[N], ScanOp op, Callback& callback,
                                     Site site = Site::here()) {
    T before;
    ExclusiveScan(T(ThreadReduce(input, op)), before, op, callback, site);
    detail::thread_scan_exclusive<T, N>(input, output, op, before);
  }

 private:
  struct simt_S_private_storage {};

  template <bool inclusive, int N, class ScanOp>
  SIMT_FOR_CALLER void scan_items(T (&input)[N], T (&output)[N], ScanOp op, detail::ScanExtras<T> extras, Site site) {
    const T before = Internal::template scan<false>(storage_, tid_, T(ThreadReduce(input, op)), op, extras, site);
    const bool has_before = extras.initial || tid_ != 0;
    if constexpr (inclusive)
      detail::thread_scan_inclusive<T, N>(input, output, op, before, has_before);
    else
      detail::thread_scan_exclusive<T, N>(input, output, op, before, has_before);
  }

  Storage& storage_;
  int tid_ = RowMajorTid(BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z);
};

}  // namespace cub
