#pragma once
#include "cub/details/device.h"

namespace cub {

struct DeviceRunLengthEncode {
  template <class In, class Unique, class Lengths, class Runs, class N>
  static cudaError_t Encode(void* temp, std::size_t& bytes, In in, Unique unique, Lengths lengths, Runs runs, N n,
                            cudaStream_t stream = nullptr) {
    return detail::run(
        temp, bytes, "cub::DeviceRunLengthEncode", stream,
        [from = detail::raw(in), u = detail::raw(unique), l = detail::raw(lengths), r = detail::raw(runs), n] {
          const auto ones = thrust::constant_iterator<detail::value_of<Lengths>>(1);
          *r = static_cast<detail::value_of<Runs>>(detail::Serial::reduce_by_key(from, from + n, ones, u, l).first - u);
        });
  }
};

}  // namespace cub
