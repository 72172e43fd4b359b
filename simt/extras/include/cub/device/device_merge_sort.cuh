#pragma once
#include "cub/details/device.h"

namespace cub {

struct DeviceMergeSort {
  template <class Keys, class N, class Less>
  static cudaError_t SortKeys(void* temp, std::size_t& bytes, Keys keys, N n, Less less,
                              cudaStream_t stream = nullptr) {
    return detail::run(temp, bytes, "cub::DeviceMergeSort", stream,
                       [k = detail::raw(keys), n, less] { detail::Serial::sort(k, k + n, less); });
  }
  template <class Keys, class Values, class N, class Less>
  static cudaError_t SortPairs(void* temp, std::size_t& bytes, Keys keys, Values values, N n, Less less,
                               cudaStream_t stream = nullptr) {
    return detail::run(
        temp, bytes, "cub::DeviceMergeSort", stream,
        [k = detail::raw(keys), v = detail::raw(values), n, less] { detail::Serial::sort_by_key(k, k + n, v, less); });
  }
  template <class... Arguments>
  static cudaError_t StableSortKeys(void* temp, std::size_t& bytes, const Arguments&... arguments) {
    return SortKeys(temp, bytes, arguments...);
  }
  template <class... Arguments>
  static cudaError_t StableSortPairs(void* temp, std::size_t& bytes, const Arguments&... arguments) {
    return SortPairs(temp, bytes, arguments...);
  }
};

}  // namespace cub
