// Shared memory in which each lane of one warp finds a segment of the block's values side by side, padded where the
// lanes would otherwise want the same bank.
#pragma once
#include "cub/util_ptx.cuh"
#include "cub/util_type.cuh"

namespace cub {

template <class T, int BLOCK_THREADS>
struct BlockRakingLayout {
  static constexpr int MAX_RAKING_THREADS = BLOCK_THREADS < 32 ? BLOCK_THREADS : 32;
  static constexpr int SEGMENT_LENGTH = (BLOCK_THREADS + MAX_RAKING_THREADS - 1) / MAX_RAKING_THREADS;
  static constexpr int RAKING_THREADS = (BLOCK_THREADS + SEGMENT_LENGTH - 1) / SEGMENT_LENGTH;
  static constexpr bool USE_SEGMENT_PADDING = SEGMENT_LENGTH % 2 == 0 && SEGMENT_LENGTH > 2;
  static constexpr bool UNGUARDED = BLOCK_THREADS % RAKING_THREADS == 0;
  static constexpr int STRIDE = SEGMENT_LENGTH + USE_SEGMENT_PADDING;

  struct alignas(16) Storage {
    T buff[RAKING_THREADS * STRIDE];
  };
  struct TempStorage : Uninitialized<Storage> {};

  static T* PlacementPtr(TempStorage& storage, unsigned linear_tid) {
    return storage.Alias().buff + linear_tid + (USE_SEGMENT_PADDING ? linear_tid / SEGMENT_LENGTH : 0);
  }
  static T* RakingPtr(TempStorage& storage, unsigned linear_tid) { return storage.Alias().buff + linear_tid * STRIDE; }
};

}  // namespace cub
