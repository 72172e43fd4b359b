// cub::BlockStore and the stores that it is made of.
#pragma once
#include <cstring>

#include "cub/block/block_exchange.cuh"
#include "cub/details/vectors.h"

namespace cub {

template <class T, int N, class Iterator>
SIMT_FOR_CALLER void StoreDirectBlocked(int linear_tid, Iterator to, T (&items)[N]) {
  for (int i = 0; i < N; ++i) to[linear_tid * N + i] = items[i];
}
template <class T, int N, class Iterator>
SIMT_FOR_CALLER void StoreDirectBlocked(int linear_tid, Iterator to, T (&items)[N], int valid_items) {
  for (int i = 0; i < N; ++i)
    if (linear_tid * N + i < valid_items) to[linear_tid * N + i] = items[i];
}

// In accesses of up to 16 bytes. As in CUB, the address must be a multiple of the access.
template <class T, int N>
SIMT_FOR_CALLER void StoreDirectBlockedVectorized(int linear_tid, T* to, T (&items)[N]) {
  using Vector = detail::VectorOf<detail::vector_bytes(sizeof(T), N)>;
  constexpr int kVectors = static_cast<int>(sizeof(items) / sizeof(Vector));
  Vector* vectors = reinterpret_cast<Vector*>(to) + linear_tid * kVectors;
  for (int i = 0; i < kVectors; ++i) {
    Vector vector;
    std::memcpy(&vector, reinterpret_cast<const char*>(items) + i * sizeof(Vector), sizeof(Vector));
    vectors[i] = vector;
  }
}

template <int BLOCK_THREADS, class T, int N, class Iterator>
SIMT_FOR_CALLER void StoreDirectStriped(int linear_tid, Iterator to, T (&items)[N]) {
  for (int i = 0; i < N; ++i) to[linear_tid + i * BLOCK_THREADS] = items[i];
}
template <int BLOCK_THREADS, class T, int N, class Iterator>
SIMT_FOR_CALLER void StoreDirectStriped(int linear_tid, Iterator to, T (&items)[N], int valid_items) {
  for (int i = 0; i < N; ++i)
    if (linear_tid + i * BLOCK_THREADS < valid_items) to[linear_tid + i * BLOCK_THREADS] = items[i];
}

template <class T, int N, class Iterator>
SIMT_FOR_CALLER void StoreDirectWarpStriped(int linear_tid, Iterator to, T (&items)[N]) {
  const int first = linear_tid / 32 * 32 * N + linear_tid % 32;
  for (int i = 0; i < N; ++i) to[first + i * 32] = items[i];
}
template <class T, int N, class Iterator>
SIMT_FOR_CALLER void StoreDirectWarpStriped(int linear_tid, Iterator to, T (&items)[N], int valid_items) {
  const int first = linear_tid / 32 * 32 * N + linear_tid % 32;
  for (int i = 0; i < N; ++i)
    if (first + i * 32 < valid_items) to[first + i * 32] = items[i];
}

enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED,
};

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, BlockStoreAlgorithm ALGORITHM = BLOCK_STORE_DIRECT,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1>
class BlockStore {
  static constexpr int kThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  static constexpr bool kInWarps =
      ALGORITHM == BLOCK_STORE_WARP_TRANSPOSE || ALGORITHM == BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED;
  static constexpr bool kExchanges = kInWarps || ALGORITHM == BLOCK_STORE_TRANSPOSE;
  static_assert(!kInWarps || kThreads % 32 == 0, "BLOCK_THREADS must be a multiple of WARP_THREADS");
  using Exchange = BlockExchange<T, BLOCK_DIM_X, ITEMS_PER_THREAD, ALGORITHM == BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED,
                                 BLOCK_DIM_Y, BLOCK_DIM_Z>;
  struct WithExchange : Exchange::TempStorage {
    int valid_items;  // thread 0 tells the others
  };
  using Storage = std::conditional_t<kExchanges, WithExchange, NullType>;
  using Site = simt::Site;

 public:
  struct TempStorage : Uninitialized<Storage> {};

  SIMT_FOR_CALLER BlockStore() : storage_(simt::shared<Storage, simt_S_private_storage>()) {}
  SIMT_FOR_CALLER BlockStore(TempStorage& temp_storage) : storage_(temp_storage.Alias()) {}

  template <class Iterator>
  SIMT_FOR_CALLER void Store(Iterator to, T (&items)[ITEMS_PER_THREAD], Site site = Site::here()) {
    if constexpr (ALGORITHM == BLOCK_STORE_VECTORIZE && std::is_convertible_v<Iterator, T*>)
      StoreDirectBlockedVectorized<T>(tid_, to, items);
    else
      store(site, to, items);
  }
  template <class Iterator>
  SIMT_FOR_CALLER void Store(Iterator to, T (&items)[ITEMS_PER_THREAD], int valid_items, Site site = Site::here()) {
    store(site, to, items, valid_items);
  }

 private:
  struct simt_S_private_storage {};

  template <class Iterator>
  SIMT_FOR_CALLER void store(Site site, Iterator to, T (&items)[ITEMS_PER_THREAD]) {
    exchange(items, site);
    store_in_order(to, items);
  }
  template <class Iterator>
  SIMT_FOR_CALLER void store(Site site, Iterator to, T (&items)[ITEMS_PER_THREAD], int valid_items) {
    exchange(items, site);
    if constexpr (kExchanges) {
      if (tid_ == 0) storage_.valid_items = valid_items;
      __syncthreads(site);
      valid_items = storage_.valid_items;
    }
    store_in_order(to, items, valid_items);
  }

  SIMT_FOR_CALLER void exchange(T (&items)[ITEMS_PER_THREAD], Site site) {
    if constexpr (kInWarps)
      Exchange(storage_).BlockedToWarpStriped(items, items, site);
    else if constexpr (kExchanges)
      Exchange(storage_).BlockedToStriped(items, items, site);
  }
  template <class Iterator, class... Guard>
  SIMT_FOR_CALLER void store_in_order(Iterator to, T (&items)[ITEMS_PER_THREAD], Guard... guard) {
    if constexpr (kInWarps)
      StoreDirectWarpStriped(tid_, to, items, guard...);
    else if constexpr (kExchanges || ALGORITHM == BLOCK_STORE_STRIPED)
      StoreDirectStriped<kThreads>(tid_, to, items, guard...);
    else
      StoreDirectBlocked(tid_, to, items, guard...);
  }

  Storage& storage_;
  int tid_ = RowMajorTid(BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z);
};

}  // namespace cub
