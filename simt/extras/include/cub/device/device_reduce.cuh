#pragma once
#include "cub/details/device.h"

namespace cub {

struct DeviceReduce {
  template <class In, class Out, class N, class Op, class T>
  static cudaError_t Reduce(void* temp, std::size_t& bytes, In in, Out out, N n, Op op, T init,
                            cudaStream_t stream = nullptr) {
    return TransformReduce(
        temp, bytes, in, out, n, op, [](const auto& x) { return x; }, init, stream);
  }
  template <class In, class Out, class N, class Op, class Transform, class T>
  static cudaError_t TransformReduce(void* temp, std::size_t& bytes, In in, Out out, N n, Op op, Transform transform,
                                     T init, cudaStream_t stream = nullptr) {
    return detail::run(temp, bytes, "cub::DeviceReduce", stream,
                       [from = detail::raw(in), to = detail::raw(out), n, op, transform, init]() mutable {
                         *to = detail::Serial::transform_reduce(from, from + n, transform, init, op);
                       });
  }
  template <class In, class Out, class N>
  static cudaError_t Sum(void* temp, std::size_t& bytes, In in, Out out, N n, cudaStream_t stream = nullptr) {
    return Reduce(temp, bytes, in, out, n, std::plus<>(), detail::value_of<Out>{}, stream);
  }
  template <class In, class Out, class N>
  static cudaError_t Min(void* temp, std::size_t& bytes, In in, Out out, N n, cudaStream_t stream = nullptr) {
    return Reduce(temp, bytes, in, out, n, cuda::minimum<>(), std::numeric_limits<detail::value_of<In>>::max(), stream);
  }
  template <class In, class Out, class N>
  static cudaError_t Max(void* temp, std::size_t& bytes, In in, Out out, N n, cudaStream_t stream = nullptr) {
    return Reduce(temp, bytes, in, out, n, cuda::maximum<>(), std::numeric_limits<detail::value_of<In>>::lowest(),
                  stream);
  }
  // The index and the value as a KeyValuePair, as older CUB has it, or in two places.
  template <class In, class Out, class N>
  static cudaError_t ArgMin(void* temp, std::size_t& bytes, In in, Out out, N n, cudaStream_t stream = nullptr) {
    return pair(temp, bytes, in, out, n, std::less<>(), stream);
  }
  template <class In, class Out, class N>
  static cudaError_t ArgMax(void* temp, std::size_t& bytes, In in, Out out, N n, cudaStream_t stream = nullptr) {
    return pair(temp, bytes, in, out, n, std::greater<>(), stream);
  }
  template <class In, class Value, class Index>
  static cudaError_t ArgMin(void* temp, std::size_t& bytes, In in, Value value, Index index, std::int64_t n,
                            cudaStream_t stream = nullptr) {
    return two_places(temp, bytes, in, value, index, n, std::less<>(), stream);
  }
  template <class In, class Value, class Index>
  static cudaError_t ArgMax(void* temp, std::size_t& bytes, In in, Value value, Index index, std::int64_t n,
                            cudaStream_t stream = nullptr) {
    return two_places(temp, bytes, in, value, index, n, std::greater<>(), stream);
  }
  template <class Keys, class Unique, class Values, class Sums, class Runs, class Op, class N>
  static cudaError_t ReduceByKey(void* temp, std::size_t& bytes, Keys keys, Unique unique, Values values, Sums sums,
                                 Runs runs, Op op, N n, cudaStream_t stream = nullptr) {
    return detail::run(temp, bytes, "cub::DeviceReduce", stream,
                       [k = detail::raw(keys), u = detail::raw(unique), v = detail::raw(values), s = detail::raw(sums),
                        r = detail::raw(runs), op, n] {
                         *r = static_cast<detail::value_of<Runs>>(
                             detail::Serial::reduce_by_key(k, k + n, v, u, s, std::equal_to<>(), op).first - u);
                       });
  }

 private:
  template <class In, class Better>
  static In best(In from, std::int64_t n, Better better) {
    In found = from;
    for (std::int64_t i = 1; i < n; ++i)
      if (better(from[i], *found)) found = from + i;
    return found;
  }
  template <class In, class Out, class N, class Better>
  static cudaError_t pair(void* temp, std::size_t& bytes, In in, Out out, N n, Better better, cudaStream_t stream) {
    return detail::run(temp, bytes, "cub::DeviceReduce", stream,
                       [from = detail::raw(in), to = detail::raw(out), n, better] {
                         const auto found = best(from, static_cast<std::int64_t>(n), better);
                         *to = {static_cast<decltype(detail::value_of<Out>::key)>(found - from), *found};
                       });
  }
  template <class In, class Value, class Index, class Better>
  static cudaError_t two_places(void* temp, std::size_t& bytes, In in, Value value, Index index, std::int64_t n,
                                Better better, cudaStream_t stream) {
    return detail::run(temp, bytes, "cub::DeviceReduce", stream,
                       [from = detail::raw(in), v = detail::raw(value), i = detail::raw(index), n, better] {
                         const auto found = best(from, n, better);
                         *v = *found, *i = static_cast<detail::value_of<Index>>(found - from);
                       });
  }
};

struct DeviceSegmentedReduce {
  template <class In, class Out, class Begins, class Ends, class Op, class T>
  static cudaError_t Reduce(void* temp, std::size_t& bytes, In in, Out out, std::int64_t segments, Begins begins,
                            Ends ends, Op op, T init, cudaStream_t stream = nullptr) {
    return detail::run(temp, bytes, "cub::DeviceSegmentedReduce", stream,
                       [from = detail::raw(in), to = detail::raw(out), b = detail::raw(begins), e = detail::raw(ends),
                        segments, op, init]() mutable {
                         for (std::int64_t i = 0; i < segments; ++i)
                           to[i] = detail::Serial::reduce(from + b[i], from + e[i], init, op);
                       });
  }
  template <class In, class Out, class Begins, class Ends>
  static cudaError_t Sum(void* temp, std::size_t& bytes, In in, Out out, std::int64_t segments, Begins begins,
                         Ends ends, cudaStream_t stream = nullptr) {
    return Reduce(temp, bytes, in, out, segments, begins, ends, std::plus<>(), detail::value_of<Out>{}, stream);
  }
  template <class In, class Out, class Begins, class Ends>
  static cudaError_t Min(void* temp, std::size_t& bytes, In in, Out out, std::int64_t segments, Begins begins,
                         Ends ends, cudaStream_t stream = nullptr) {
    return Reduce(temp, bytes, in, out, segments, begins, ends, cuda::minimum<>(),
                  std::numeric_limits<detail::value_of<In>>::max(), stream);
  }
  template <class In, class Out, class Begins, class Ends>
  static cudaError_t Max(void* temp, std::size_t& bytes, In in, Out out, std::int64_t segments, Begins begins,
                         Ends ends, cudaStream_t stream = nullptr) {
    return Reduce(temp, bytes, in, out, segments, begins, ends, cuda::maximum<>(),
                  std::numeric_limits<detail::value_of<In>>::lowest(), stream);
  }
};

}  // namespace cub
