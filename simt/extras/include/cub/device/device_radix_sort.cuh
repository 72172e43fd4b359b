#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cub/details/device.h"

namespace cub {
namespace detail {

// A key as an unsigned number in the keys' order; the two zeros of floating point are one key.
template <class T>
std::uint64_t ordered_bits(T key) {
  constexpr bool is_float =
      std::is_floating_point_v<T> || std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;
  static_assert(is_float || std::is_integral_v<T>, "DeviceRadixSort sorts numbers");
  constexpr std::uint64_t sign = std::uint64_t(1) << (8 * sizeof(T) - 1);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &key, sizeof(T));
  if constexpr (is_float) {
    if (bits == sign) bits = 0;
    return bits & sign ? ~bits & (2 * sign - 1) : bits | sign;
  }
  return std::is_signed_v<T> ? bits ^ sign : bits;
}

template <class T>
struct BitsLess {
  bool descending;
  int begin, end;
  bool operator()(const T& a, const T& b) const { return descending ? at(b) < at(a) : at(a) < at(b); }
  std::uint64_t at(const T& key) const {
    const std::uint64_t bits = ordered_bits(key) >> begin;
    return end - begin < 64 ? bits & ((std::uint64_t(1) << (end - begin)) - 1) : bits;
  }
};

}  // namespace detail

struct DeviceRadixSort {
#define SIMT_SORT(suffix, descending)                                                                                  \
  template <class K, class N>                                                                                          \
  static cudaError_t SortKeys##suffix(void* temp, std::size_t& bytes, const K* in, K* out, N n, int begin_bit = 0,     \
                                      int end_bit = 8 * sizeof(K), cudaStream_t stream = nullptr) {                    \
    return keys<K>(temp, bytes, in, out, n, {descending, begin_bit, end_bit}, stream);                                 \
  }                                                                                                                    \
  template <class K, class N>                                                                                          \
  static cudaError_t SortKeys##suffix(void* temp, std::size_t& bytes, DoubleBuffer<K>& buffers, N n,                   \
                                      int begin_bit = 0, int end_bit = 8 * sizeof(K), cudaStream_t stream = nullptr) { \
    const cudaError_t error = SortKeys##suffix(temp, bytes, static_cast<const K*>(buffers.Current()),                  \
                                               buffers.Alternate(), n, begin_bit, end_bit, stream);                    \
    if (temp && error == cudaSuccess) buffers.selector ^= 1;                                                           \
    return error;                                                                                                      \
  }                                                                                                                    \
  template <class K, class V, class N>                                                                                 \
  static cudaError_t SortPairs##suffix(void* temp, std::size_t& bytes, const K* in, K* out, const V* values,           \
                                       V* values_out, N n, int begin_bit = 0, int end_bit = 8 * sizeof(K),             \
                                       cudaStream_t stream = nullptr) {                                                \
    return pairs<K, V>(temp, bytes, in, out, values, values_out, n, {descending, begin_bit, end_bit}, stream);         \
  }                                                                                                                    \
  template <class K, class V, class N>                                                                                 \
  static cudaError_t SortPairs##suffix(void* temp, std::size_t& bytes, DoubleBuffer<K>& buffers,                       \
                                       DoubleBuffer<V>& values, N n, int begin_bit = 0, int end_bit = 8 * sizeof(K),   \
                                       cudaStream_t stream = nullptr) {                                                \
    const cudaError_t error =                                                                                          \
        SortPairs##suffix(temp, bytes, static_cast<const K*>(buffers.Current()), buffers.Alternate(),                  \
                          static_cast<const V*>(values.Current()), values.Alternate(), n, begin_bit, end_bit, stream); \
    if (temp && error == cudaSuccess) buffers.selector ^= 1, values.selector ^= 1;                                     \
    return error;                                                                                                      \
  }
  SIMT_SORT(, false)
  SIMT_SORT(Descending, true)
#undef SIMT_SORT

 private:
  template <class K, class N>
  static cudaError_t keys(void* temp, std::size_t& bytes, const K* in, K* out, N n, detail::BitsLess<K> less,
                          cudaStream_t stream) {
    return detail::run(temp, bytes, "cub::DeviceRadixSort", stream, [=] {
      auto sorted = detail::Serial::copied(in, in + n);
      std::stable_sort(sorted.begin(), sorted.end(), less);
      detail::Serial::written(sorted, out);
    });
  }
  template <class K, class V, class N>
  static cudaError_t pairs(void* temp, std::size_t& bytes, const K* in, K* out, const V* values, V* values_out, N n,
                           detail::BitsLess<K> less, cudaStream_t stream) {
    return detail::run(temp, bytes, "cub::DeviceRadixSort", stream, [=] {
      const auto keys = detail::Serial::copied(in, in + n);
      const auto given = detail::Serial::copied(values, values + n);
      detail::Serial::written(keys, out);
      detail::Serial::written(given, values_out);
      detail::Serial::sort_by_key(out, out + n, values_out, less);
    });
  }
};

}  // namespace cub
