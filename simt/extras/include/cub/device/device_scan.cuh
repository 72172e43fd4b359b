#pragma once
#include "cub/details/device.h"

namespace cub {

struct DeviceScan {
  template <class In, class Out, class Op, class T, class N>
  static cudaError_t ExclusiveScan(void* temp, std::size_t& bytes, In in, Out out, Op op, T init, N n,
                                   cudaStream_t stream = nullptr) {
    return run(temp, bytes, stream, [from = detail::raw(in), to = detail::raw(out), op, init, n] {
      detail::Serial::exclusive_scan(from, from + n, to, init, op);
    });
  }
  template <class In, class Out, class Op, class N>
  static cudaError_t InclusiveScan(void* temp, std::size_t& bytes, In in, Out out, Op op, N n,
                                   cudaStream_t stream = nullptr) {
    return run(temp, bytes, stream, [from = detail::raw(in), to = detail::raw(out), op, n] {
      detail::Serial::inclusive_scan(from, from + n, to, op);
    });
  }
  template <class In, class Out, class Op, class T, class N>
  static cudaError_t InclusiveScanInit(void* temp, std::size_t& bytes, In in, Out out, Op op, T init, N n,
                                       cudaStream_t stream = nullptr) {
    return run(temp, bytes, stream, [from = detail::raw(in), to = detail::raw(out), op, init, n] {
      T sum = init;
      for (N i = 0; i < n; ++i) to[i] = sum = op(sum, from[i]);
    });
  }
  template <class In, class Out, class N>
  static cudaError_t ExclusiveSum(void* temp, std::size_t& bytes, In in, Out out, N n, cudaStream_t stream = nullptr) {
    return ExclusiveScan(temp, bytes, in, out, std::plus<>(), detail::value_of<In>{}, n, stream);
  }
  template <class In, class Out, class N>
  static cudaError_t InclusiveSum(void* temp, std::size_t& bytes, In in, Out out, N n, cudaStream_t stream = nullptr) {
    return InclusiveScan(temp, bytes, in, out, std::plus<>(), n, stream);
  }
  template <class It, class N>
  static cudaError_t ExclusiveSum(void* temp, std::size_t& bytes, It data, N n, cudaStream_t stream = nullptr) {
    return ExclusiveSum(temp, bytes, data, data, n, stream);
  }
  template <class It, class N>
  static cudaError_t InclusiveSum(void* temp, std::size_t& bytes, It data, N n, cudaStream_t stream = nullptr) {
    return InclusiveSum(temp, bytes, data, data, n, stream);
  }
  template <class Keys, class In, class Out, class Op, class T, class N, class Equal = std::equal_to<>>
  static cudaError_t ExclusiveScanByKey(void* temp, std::size_t& bytes, Keys keys, In in, Out out, Op op, T init, N n,
                                        Equal same = {}, cudaStream_t stream = nullptr) {
    return run(temp, bytes, stream,
               [k = detail::raw(keys), from = detail::raw(in), to = detail::raw(out), op, init, n, same] {
                 detail::Serial::exclusive_scan_by_key(k, k + n, from, to, init, same, op);
               });
  }
  template <class Keys, class In, class Out, class Op, class N, class Equal = std::equal_to<>>
  static cudaError_t InclusiveScanByKey(void* temp, std::size_t& bytes, Keys keys, In in, Out out, Op op, N n,
                                        Equal same = {}, cudaStream_t stream = nullptr) {
    return run(temp, bytes, stream,
               [k = detail::raw(keys), from = detail::raw(in), to = detail::raw(out), op, n, same] {
                 detail::Serial::inclusive_scan_by_key(k, k + n, from, to, same, op);
               });
  }
  template <class Keys, class In, class Out, class N, class Equal = std::equal_to<>>
  static cudaError_t ExclusiveSumByKey(void* temp, std::size_t& bytes, Keys keys, In in, Out out, N n, Equal same = {},
                                       cudaStream_t stream = nullptr) {
    return ExclusiveScanByKey(temp, bytes, keys, in, out, std::plus<>(), detail::value_of<In>{}, n, same, stream);
  }
  template <class Keys, class In, class Out, class N, class Equal = std::equal_to<>>
  static cudaError_t InclusiveSumByKey(void* temp, std::size_t& bytes, Keys keys, In in, Out out, N n, Equal same = {},
                                       cudaStream_t stream = nullptr) {
    return InclusiveScanByKey(temp, bytes, keys, in, out, std::plus<>(), n, same, stream);
  }

 private:
  template <class Body>
  static cudaError_t run(void* temp, std::size_t& bytes, cudaStream_t stream, Body body) {
    return detail::run(temp, bytes, "cub::DeviceScan", stream, body);
  }
};

}  // namespace cub
