#pragma once
#include "cub/details/device.h"

namespace cub {

struct DeviceFor {
  template <class N, class Op>
  static cudaError_t Bulk(N n, Op op, cudaStream_t stream = nullptr) {
    return simt::run_as_kernel("cub::DeviceFor", stream, [=]() mutable {
      for (N i = 0; i < n; ++i) op(i);
    });
  }
  template <class It, class Op>
  static cudaError_t ForEach(It first, It last, Op op, cudaStream_t stream = nullptr) {
    return ForEachN(first, last - first, op, stream);
  }
  template <class It, class N, class Op>
  static cudaError_t ForEachN(It first, N n, Op op, cudaStream_t stream = nullptr) {
    return simt::run_as_kernel("cub::DeviceFor", stream, [from = detail::raw(first), n, op]() mutable {
      detail::Serial::for_each(from, from + n, op);
    });
  }
};

}  // namespace cub
