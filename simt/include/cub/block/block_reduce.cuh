// cub::BlockReduce. Each algorithm keeps its values where CUB keeps them and has CUB's barriers, so that what it costs
// can be counted, and so that a reuse of its memory without a barrier shows.
#pragma once
#include "cub/block/block_raking_layout.cuh"
#include "cub/warp/warp_reduce.cuh"
#include "simt/device.h"

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
};

namespace detail {

// Every warp reduces its values; thread 0 combines the results. One barrier, after which thread 0 still reads.
template <class T, int threads>
struct BlockReduceWarpReductions {
  static constexpr int kWarps = (threads + 31) / 32;
  static constexpr int kWarpThreads = threads < 32 ? threads : 32;
  static constexpr bool kEven = threads % kWarpThreads == 0;
  using Warp = typename WarpReduce<T, kWarpThreads>::InternalWarpReduce;

  struct Storage {
    typename Warp::TempStorage warp_reduce[kWarps];
    T warp_aggregates[kWarps];
    T block_prefix;
  };
  struct TempStorage : Uninitialized<Storage> {};

  template <bool full, class Operator>
  SIMT_FOR_CALLER static T reduce(TempStorage& temp, int tid, T input, int valid, Operator op, simt::Site site) {
    Storage& storage = temp.Alias();
    const int warp = tid / 32;
    const int left = valid - warp * kWarpThreads;
    T total = Warp(storage.warp_reduce[warp]).template reduce < full &&
              kEven > (input, left < kWarpThreads ? left : kWarpThreads, op, site);
    if (LaneId() == 0) storage.warp_aggregates[warp] = total;
    __syncthreads(site);
    if (tid == 0) {
      for (int other = 1; other < kWarps; ++other)
        if (full || other * kWarpThreads < valid) total = op(total, storage.warp_aggregates[other]);
    }
    return total;
  }
};

// All values go to shared memory; one warp reads them in segments and reduces its results. One barrier.
template <class T, int threads>
struct BlockReduceRaking {
  using Layout = BlockRakingLayout<T, threads>;
  static constexpr int kRaking = Layout::RAKING_THREADS, kSegment = Layout::SEGMENT_LENGTH;
  using Warp = typename WarpReduce<T, kRaking>::InternalWarpReduce;

  union Storage {
    typename Warp::TempStorage warp_storage;
    typename Layout::TempStorage raking_grid;
  };
  struct TempStorage : Uninitialized<Storage> {};

  template <bool full, class Operator>
  SIMT_FOR_CALLER static T reduce(TempStorage& temp, int tid, T input, int valid, Operator op, simt::Site site) {
    Storage& storage = temp.Alias();
    if constexpr (kRaking == threads) {
      return Warp(storage.warp_storage).template reduce<full>(input, valid, op, site);
    } else {
      *Layout::PlacementPtr(storage.raking_grid, static_cast<unsigned>(tid)) = input;
      __syncthreads(site);
      if (tid >= kRaking) return input;
      const T* segment = Layout::RakingPtr(storage.raking_grid, static_cast<unsigned>(tid));
      T total = segment[0];
      for (int i = 1; i < kSegment; ++i)
        if ((full && Layout::UNGUARDED) || tid * kSegment + i < valid) total = op(total, segment[i]);
      __syncwarp(~0u >> (32 - kRaking), site);
      const int valid_lanes = full ? kRaking : (valid + kSegment - 1) / kSegment;
      return Warp(storage.warp_storage).template reduce < full && Layout::UNGUARDED > (total, valid_lanes, op, site);
    }
  }
};

// The same, except that the values of the first warp stay in its registers.
template <class T, int threads>
struct BlockReduceRakingCommutativeOnly {
  using FallBack = BlockReduceRaking<T, threads>;
  static constexpr bool kUsesFallBack = threads % 32 != 0 || threads <= 32;
  static constexpr int kSharing = threads > 32 ? threads - 32 : 1;
  static constexpr int kSegment = kSharing / 32;
  using Layout = BlockRakingLayout<T, kSharing>;
  using Warp = WarpReduce<T, 32>;

  union Storage {
    struct {
      typename Warp::TempStorage warp_storage;
      typename Layout::TempStorage raking_grid;
    } own;
    typename FallBack::TempStorage fall_back;
  };
  struct TempStorage : Uninitialized<Storage> {};

  template <bool full, class Operator>
  SIMT_FOR_CALLER static T reduce(TempStorage& temp, int tid, T input, int valid, Operator op, simt::Site site) {
    Storage& storage = temp.Alias();
    if constexpr (kUsesFallBack || !full) {
      return FallBack::template reduce<full>(storage.fall_back, tid, input, valid, op, site);
    } else {
      if (tid >= 32) *Layout::PlacementPtr(storage.own.raking_grid, static_cast<unsigned>(tid - 32)) = input;
      __syncthreads(site);
      if (tid >= 32) return input;
      const T* segment = Layout::RakingPtr(storage.own.raking_grid, static_cast<unsigned>(tid));
      for (int i = 0; i < kSegment; ++i) input = op(input, segment[i]);
      return Warp(storage.own.warp_storage).Reduce(input, op, site);
    }
  }
};

}  // namespace detail

// The result is thread 0's. With num_valid, the values of the first num_valid threads count.
template <class T, int BLOCK_DIM_X, BlockReduceAlgorithm ALGORITHM = BLOCK_REDUCE_WARP_REDUCTIONS, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1>
class BlockReduce {
  static constexpr int kThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  using Internal =
      std::conditional_t<ALGORITHM == BLOCK_REDUCE_WARP_REDUCTIONS, detail::BlockReduceWarpReductions<T, kThreads>,
                         std::conditional_t<ALGORITHM == BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
                                            detail::BlockReduceRakingCommutativeOnly<T, kThreads>,
                                            detail::BlockReduceRaking<T, kThreads>>>;
  using Storage = typename Internal::TempStorage;

 public:
  struct TempStorage : Uninitialized<Storage> {};

  SIMT_FOR_CALLER BlockReduce() : storage_(simt::shared<Storage, simt_S_private_storage>()) {}
  SIMT_FOR_CALLER BlockReduce(TempStorage& temp_storage) : storage_(temp_storage.Alias()) {}

  template <class ReductionOp>
  SIMT_FOR_CALLER T Reduce(T input, ReductionOp op, simt::Site site = simt::Site::here()) {
    return Internal::template reduce<true>(storage_, tid_, input, kThreads, op, site);
  }
  template <int ITEMS_PER_THREAD, class ReductionOp>
  SIMT_FOR_CALLER T Reduce(T (&inputs)[ITEMS_PER_THREAD], ReductionOp op, simt::Site site = simt::Site::here()) {
    return Reduce(ThreadReduce(inputs, op), op, site);
  }
  template <class ReductionOp>
  SIMT_FOR_CALLER T Reduce(T input, ReductionOp op, int num_valid, simt::Site site = simt::Site::here()) {
    if (num_valid >= kThreads) return Reduce(input, op, site);
    return Internal::template reduce<false>(storage_, tid_, input, num_valid, op, site);
  }

  SIMT_FOR_CALLER T Sum(T input, simt::Site site = simt::Site::here()) {
    return Reduce(input, cuda::std::plus<>{}, site);
  }
  template <int ITEMS_PER_THREAD>
  SIMT_FOR_CALLER T Sum(T (&inputs)[ITEMS_PER_THREAD], simt::Site site = simt::Site::here()) {
    return Reduce(inputs, cuda::std::plus<>{}, site);
  }
  SIMT_FOR_CALLER T Sum(T input, int num_valid, simt::Site site = simt::Site::here()) {
    return Reduce(input, cuda::std::plus<>{}, num_valid, site);
  }

 private:
  struct simt_S_private_storage {};
  Storage& storage_;
  int tid_ = RowMajorTid(BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z);
};

}  // namespace cub
