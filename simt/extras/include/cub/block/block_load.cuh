// cub::BlockLoad and the loads that it is made of.
#pragma once
#include <cstring>

#include "cub/block/block_exchange.cuh"
#include "cub/details/vectors.h"

namespace cub {

template <class T, int N, class Iterator>
SIMT_FOR_CALLER void LoadDirectBlocked(int linear_tid, Iterator from, T (&items)[N]) {
  for (int i = 0; i < N; ++i) items[i] = from[linear_tid * N + i];
}
template <class T, int N, class Iterator>
SIMT_FOR_CALLER void LoadDirectBlocked(int linear_tid, Iterator from, T (&items)[N], int valid_items) {
  for (int i = 0; i < N; ++i)
    if (linear_tid * N + i < valid_items) items[i] = from[linear_tid * N + i];
}
template <class T, class Default, int N, class Iterator>
SIMT_FOR_CALLER void LoadDirectBlocked(int linear_tid, Iterator from, T (&items)[N], int valid_items, Default other) {
  for (int i = 0; i < N; ++i) items[i] = other;
  LoadDirectBlocked(linear_tid, from, items, valid_items);
}

// In accesses of up to 16 bytes where the address allows it.
template <class T, int N>
SIMT_FOR_CALLER void LoadDirectBlockedVectorized(int linear_tid, const T* from, T (&items)[N]) {
  using Vector = detail::VectorOf<detail::vector_bytes(sizeof(T), N)>;
  if (reinterpret_cast<uintptr_t>(from) % alignof(Vector)) {
    LoadDirectBlocked(linear_tid, from, items);
    return;
  }
  constexpr int kVectors = static_cast<int>(sizeof(items) / sizeof(Vector));
  const Vector* vectors = reinterpret_cast<const Vector*>(from) + linear_tid * kVectors;
  for (int i = 0; i < kVectors; ++i) {
    const Vector vector = vectors[i];
    std::memcpy(reinterpret_cast<char*>(items) + i * sizeof(Vector), &vector, sizeof(Vector));
  }
}

template <int BLOCK_THREADS, class T, int N, class Iterator>
SIMT_FOR_CALLER void LoadDirectStriped(int linear_tid, Iterator from, T (&items)[N]) {
  for (int i = 0; i < N; ++i) items[i] = from[linear_tid + i * BLOCK_THREADS];
}
template <int BLOCK_THREADS, class T, int N, class Iterator>
SIMT_FOR_CALLER void LoadDirectStriped(int linear_tid, Iterator from, T (&items)[N], int valid_items) {
  for (int i = 0; i < N; ++i)
    if (linear_tid + i * BLOCK_THREADS < valid_items) items[i] = from[linear_tid + i * BLOCK_THREADS];
}
template <int BLOCK_THREADS, class T, class Default, int N, class Iterator>
SIMT_FOR_CALLER void LoadDirectStriped(int linear_tid, Iterator from, T (&items)[N], int valid_items, Default other) {
  for (int i = 0; i < N; ++i) items[i] = other;
  LoadDirectStriped<BLOCK_THREADS>(linear_tid, from, items, valid_items);
}

template <class T, int N, class Iterator>
SIMT_FOR_CALLER void LoadDirectWarpStriped(int linear_tid, Iterator from, T (&items)[N]) {
  const int first = linear_tid / 32 * 32 * N + linear_tid % 32;
  for (int i = 0; i < N; ++i) items[i] = from[first + i * 32];
}
template <class T, int N, class Iterator>
SIMT_FOR_CALLER void LoadDirectWarpStriped(int linear_tid, Iterator from, T (&items)[N], int valid_items) {
  const int first = linear_tid / 32 * 32 * N + linear_tid % 32;
  for (int i = 0; i < N; ++i)
    if (first + i * 32 < valid_items) items[i] = from[first + i * 32];
}
template <class T, class Default, int N, class Iterator>
SIMT_FOR_CALLER void LoadDirectWarpStriped(int linear_tid, Iterator from, T (&items)[N], int valid_items,
                                           Default other) {
  for (int i = 0; i < N; ++i) items[i] = other;
  LoadDirectWarpStriped(linear_tid, from, items, valid_items);
}

enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,
};

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, BlockLoadAlgorithm ALGORITHM = BLOCK_LOAD_DIRECT,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1>
class BlockLoad {
  static constexpr int kThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  static constexpr bool kInWarps =
      ALGORITHM == BLOCK_LOAD_WARP_TRANSPOSE || ALGORITHM == BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED;
  static constexpr bool kExchanges = kInWarps || ALGORITHM == BLOCK_LOAD_TRANSPOSE;
  static_assert(!kInWarps || kThreads % 32 == 0, "BLOCK_THREADS must be a multiple of WARP_THREADS");
  using Exchange = BlockExchange<T, BLOCK_DIM_X, ITEMS_PER_THREAD, ALGORITHM == BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,
                                 BLOCK_DIM_Y, BLOCK_DIM_Z>;
  struct WithoutExchange {
    using TempStorage = NullType;
  };
  using Storage = typename std::conditional_t<kExchanges, Exchange, WithoutExchange>::TempStorage;
  using Site = simt::Site;

 public:
  struct TempStorage : Uninitialized<Storage> {};

  SIMT_FOR_CALLER BlockLoad() : storage_(simt::shared<Storage, simt_S_private_storage>()) {}
  SIMT_FOR_CALLER BlockLoad(TempStorage& temp_storage) : storage_(temp_storage.Alias()) {}

  template <class Iterator>
  SIMT_FOR_CALLER void Load(Iterator from, T (&items)[ITEMS_PER_THREAD], Site site = Site::here()) {
    if constexpr (ALGORITHM == BLOCK_LOAD_VECTORIZE && std::is_convertible_v<Iterator, const T*>)
      LoadDirectBlockedVectorized<T>(tid_, from, items);
    else
      load(site, from, items);
  }
  template <class Iterator>
  SIMT_FOR_CALLER void Load(Iterator from, T (&items)[ITEMS_PER_THREAD], int valid_items, Site site = Site::here()) {
    load(site, from, items, valid_items);
  }
  template <class Iterator, class Default>
  SIMT_FOR_CALLER void Load(Iterator from, T (&items)[ITEMS_PER_THREAD], int valid_items, Default other,
                            Site site = Site::here()) {
    load(site, from, items, valid_items, other);
  }

 private:
  struct simt_S_private_storage {};

  template <class Iterator, class... Guard>
  SIMT_FOR_CALLER void load(Site site, Iterator from, T (&items)[ITEMS_PER_THREAD], Guard... guard) {
    if constexpr (kInWarps)
      LoadDirectWarpStriped(tid_, from, items, guard...);
    else if constexpr (kExchanges || ALGORITHM == BLOCK_LOAD_STRIPED)
      LoadDirectStriped<kThreads>(tid_, from, items, guard...);
    else
      LoadDirectBlocked(tid_, from, items, guard...);
    if constexpr (kInWarps)
      Exchange(storage_).WarpStripedToBlocked(items, items, site);
    else if constexpr (kExchanges)
      Exchange(storage_).StripedToBlocked(items, items, site);
  }

  Storage& storage_;
  int tid_ = RowMajorTid(BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z);
};

}  // namespace cub
