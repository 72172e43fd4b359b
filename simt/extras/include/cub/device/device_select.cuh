#pragma once
#include "cub/details/device.h"

namespace cub {

struct DeviceSelect {
  template <class In, class Out, class Count, class N, class Predicate>
  static cudaError_t If(void* temp, std::size_t& bytes, In in, Out out, Count count, N n, Predicate predicate,
                        cudaStream_t stream = nullptr) {
    return counted(temp, bytes, out, count, stream, [from = detail::raw(in), n, predicate](auto to) {
      return detail::Serial::copy_if(from, from + n, to, predicate);
    });
  }
  template <class It, class Count, class N, class Predicate>
  static cudaError_t If(void* temp, std::size_t& bytes, It data, Count count, N n, Predicate predicate,
                        cudaStream_t stream = nullptr) {
    return If(temp, bytes, data, data, count, n, predicate, stream);
  }
  template <class In, class Flags, class Out, class Count, class N>
  static cudaError_t Flagged(void* temp, std::size_t& bytes, In in, Flags flags, Out out, Count count, N n,
                             cudaStream_t stream = nullptr) {
    return counted(temp, bytes, out, count, stream, [from = detail::raw(in), f = detail::raw(flags), n](auto to) {
      return detail::Serial::copy_if(from, from + n, f, to, [](const auto& flag) { return static_cast<bool>(flag); });
    });
  }
  template <class In, class Out, class Count, class N>
  static cudaError_t Unique(void* temp, std::size_t& bytes, In in, Out out, Count count, N n,
                            cudaStream_t stream = nullptr) {
    return counted(temp, bytes, out, count, stream,
                   [from = detail::raw(in), n](auto to) { return detail::Serial::unique_copy(from, from + n, to); });
  }
  template <class Keys, class Values, class KeysOut, class ValuesOut, class Count, class N>
  static cudaError_t UniqueByKey(void* temp, std::size_t& bytes, Keys keys, Values values, KeysOut keys_out,
                                 ValuesOut values_out, Count count, N n, cudaStream_t stream = nullptr) {
    return counted(temp, bytes, keys_out, count, stream,
                   [k = detail::raw(keys), v = detail::raw(values), vo = detail::raw(values_out), n](auto to) {
                     return detail::Serial::unique_by_key_copy(k, k + n, v, to, vo).first;
                   });
  }

 private:
  template <class Out, class Count, class Algorithm>
  static cudaError_t counted(void* temp, std::size_t& bytes, Out out, Count count, cudaStream_t stream,
                             Algorithm algorithm) {
    return detail::run(temp, bytes, "cub::DeviceSelect", stream,
                       [to = detail::raw(out), c = detail::raw(count), algorithm] {
                         *c = static_cast<detail::value_of<Count>>(algorithm(to) - to);
                       });
  }
};

}  // namespace cub
