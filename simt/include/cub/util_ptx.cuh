// Where a thread stands in its block and warp, and shuffles of any type.
#pragma once
#include <cstdint>
#include <cstring>

#include "cub/util_type.cuh"
#include "simt/warp.h"

namespace cub {

inline int RowMajorTid(int block_dim_x, int block_dim_y, int block_dim_z) {
  return static_cast<int>(block_dim_z == 1 ? 0 : threadIdx.z) * block_dim_x * block_dim_y +
         static_cast<int>(block_dim_y == 1 ? 0 : threadIdx.y) * block_dim_x + static_cast<int>(threadIdx.x);
}

inline unsigned LaneId() { return simt::lane_id(); }
inline unsigned WarpId() { return simt::warp_id(); }
inline unsigned LaneMaskGe() { return ~0u << simt::lane_id(); }

// The lanes of a logical warp of the calling warp.
template <int logical_threads>
unsigned WarpMask(unsigned warp_id) {
  return (~0u >> (32 - logical_threads)) << (PowerOfTwo<logical_threads>::VALUE ? warp_id * logical_threads : 0);
}

namespace detail {

constexpr int warp_threads = 32;

// One shuffle for a value of up to eight bytes; a larger one goes in words, as it does on a GPU.
template <simt::Shuffle kind, int width, class T>
SIMT_FOR_CALLER T shuffle(const T& value, unsigned operand, unsigned mask, const char* name, simt::Site site) {
  if constexpr (sizeof(T) <= 8) {
    return simt::shuffle(simt::shuffle_called<kind>(name), mask, value, operand, width, site);
  } else {
    uint32_t words[(sizeof(T) + 3) / 4] = {};
    std::memcpy(words, &value, sizeof(T));
    for (uint32_t& word : words)
      word = simt::shuffle(simt::shuffle_called<kind>(name), mask, word, operand, width, site);
    T result = value;
    std::memcpy(static_cast<void*>(&result), words, sizeof(T));
    return result;
  }
}

}  // namespace detail

// A lane without a source within [first_lane, last_lane] of its logical warp gets its own value.
template <int logical_threads, class T>
SIMT_FOR_CALLER T ShuffleDown(const T& input, int offset, int last_lane, unsigned mask,
                              simt::Site site = simt::Site::here()) {
  const T found = detail::shuffle<simt::Shuffle::down, logical_threads>(input, static_cast<unsigned>(offset), mask,
                                                                        "__shfl_down_sync", site);
  const int lane = static_cast<int>(LaneId() % logical_threads);
  return lane + offset <= last_lane ? found : input;
}
template <int logical_threads, class T>
SIMT_FOR_CALLER T ShuffleUp(const T& input, int offset, int first_lane, unsigned mask,
                            simt::Site site = simt::Site::here()) {
  const T found = detail::shuffle<simt::Shuffle::up, logical_threads>(input, static_cast<unsigned>(offset), mask,
                                                                      "__shfl_up_sync", site);
  const int lane = static_cast<int>(LaneId() % logical_threads);
  return lane - offset >= first_lane ? found : input;
}
template <int logical_threads, class T>
SIMT_FOR_CALLER T ShuffleIndex(const T& input, int lane, unsigned mask, simt::Site site = simt::Site::here()) {
  return detail::shuffle<simt::Shuffle::index, logical_threads>(input, static_cast<unsigned>(lane), mask, "__shfl_sync",
                                                                site);
}

}  // namespace cub
