// cub::BlockExchange: items from one order among the threads to another, through shared memory. Blocked: a thread's
// items are side by side. Striped: neighbouring threads have neighbouring items. Warp-striped: so within each warp's
// items.
#pragma once
#include "cub/util_ptx.cuh"
#include "cub/util_type.cuh"
#include "simt/device.h"

namespace cub {

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, bool WARP_TIME_SLICING = false, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1>
class BlockExchange {
  static constexpr int kThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z, kItems = ITEMS_PER_THREAD;
  static constexpr int kWarps = (kThreads + 31) / 32, kWarpThreads = kThreads < 32 ? kThreads : 32;
  static constexpr int kWarpItems = kWarpThreads * kItems;
  static constexpr int kPlaces = WARP_TIME_SLICING ? kWarpItems : kThreads * kItems;
  static constexpr bool kPadded = kItems > 4 && PowerOfTwo<kItems>::VALUE;
  struct alignas(16) Storage {
    T buff[kPlaces + (kPadded ? kPlaces / 32 : 0)];
  };
  using Site = simt::Site;

 public:
  struct TempStorage : Uninitialized<Storage> {};

  SIMT_FOR_CALLER BlockExchange() : storage_(simt::shared<Storage, simt_S_private_storage>()) {}
  SIMT_FOR_CALLER BlockExchange(TempStorage& temp_storage) : storage_(temp_storage.Alias()) {}

  template <class Output>
  SIMT_FOR_CALLER void StripedToBlocked(const T (&input)[kItems], Output (&output)[kItems], Site site = Site::here()) {
    in_block(input, output, Striped{}, Blocked{}, site);
  }
  template <class Output>
  SIMT_FOR_CALLER void BlockedToStriped(const T (&input)[kItems], Output (&output)[kItems], Site site = Site::here()) {
    in_block(input, output, Blocked{}, Striped{}, site);
  }
  template <class Output>
  SIMT_FOR_CALLER void WarpStripedToBlocked(const T (&input)[kItems], Output (&output)[kItems],
                                            Site site = Site::here()) {
    in_warps(input, output, Striped{}, Blocked{}, site);
  }
  template <class Output>
  SIMT_FOR_CALLER void BlockedToWarpStriped(const T (&input)[kItems], Output (&output)[kItems],
                                            Site site = Site::here()) {
    in_warps(input, output, Blocked{}, Striped{}, site);
  }
  // ranks[i] is the place of item i among all items of the block.
  template <class Output, class Offset>
  SIMT_FOR_CALLER void ScatterToBlocked(const T (&input)[kItems], Output (&output)[kItems], Offset (&ranks)[kItems],
                                        Site site = Site::here()) {
    in_block(input, output, Ranked<Offset>{ranks}, Blocked{}, site);
  }
  template <class Output, class Offset>
  SIMT_FOR_CALLER void ScatterToStriped(const T (&input)[kItems], Output (&output)[kItems], Offset (&ranks)[kItems],
                                        Site site = Site::here()) {
    in_block(input, output, Ranked<Offset>{ranks}, Striped{}, site);
  }

 private:
  struct simt_S_private_storage {};

  // The place of a thread's item i among those of `threads` threads.
  struct Blocked {
    int operator()(int thread, int, int i) const { return thread * kItems + i; }
  };
  struct Striped {
    int operator()(int thread, int threads, int i) const { return i * threads + thread; }
  };
  template <class Offset>
  struct Ranked {
    const Offset* ranks;
    int operator()(int, int, int i) const { return static_cast<int>(ranks[i]); }
  };

  SIMT_FOR_CALLER T& at(int place) const { return storage_.buff[kPadded ? place + place / 32 : place]; }

  template <class Output, class From, class To>
  SIMT_FOR_CALLER void in_block(const T (&input)[kItems], Output (&output)[kItems], From from, To to, Site site) const {
    if constexpr (!WARP_TIME_SLICING) {
      for (int i = 0; i < kItems; ++i) at(from(tid_, kThreads, i)) = input[i];
      __syncthreads(site);
      for (int i = 0; i < kItems; ++i) output[i] = at(to(tid_, kThreads, i));
    } else {  // the memory holds the items of one warp's width at a time
      T kept[kItems];
      for (int slice = 0; slice < kWarps; ++slice) {
        const int first = slice * kWarpItems;
        __syncthreads(site);
        for (int i = 0; i < kItems; ++i) {
          const int place = from(tid_, kThreads, i) - first;
          if (place >= 0 && place < kWarpItems) at(place) = input[i];
        }
        __syncthreads(site);
        for (int i = 0; i < kItems; ++i) {
          const int place = to(tid_, kThreads, i) - first;
          if (place >= 0 && place < kWarpItems) kept[i] = at(place);
        }
      }
      for (int i = 0; i < kItems; ++i) output[i] = kept[i];
    }
  }

  template <class Output, class From, class To>
  SIMT_FOR_CALLER void in_warps(const T (&input)[kItems], Output (&output)[kItems], From from, To to, Site site) const {
    const int lane = static_cast<int>(LaneId()), warp = tid_ / 32;
    const int first = WARP_TIME_SLICING ? 0 : warp * kWarpItems;
    for (int slice = 0; slice < (WARP_TIME_SLICING ? kWarps : 1); ++slice) {
      if (slice) __syncthreads(site);
      if (WARP_TIME_SLICING && warp != slice) continue;
      for (int i = 0; i < kItems; ++i) at(first + from(lane, kWarpThreads, i)) = input[i];
      __syncwarp(0xffffffff, site);
      for (int i = 0; i < kItems; ++i) output[i] = at(first + to(lane, kWarpThreads, i));
    }
  }

  Storage& storage_;
  int tid_ = RowMajorTid(BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z);
};

}  // namespace cub
