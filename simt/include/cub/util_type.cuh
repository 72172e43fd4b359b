// What the memory of CUB's collectives is made of, and its small types.
#pragma once
#include <cstddef>
#include <type_traits>

#include "cub/config.cuh"

namespace cub {

struct NullType {};

// Room for a T that nothing has constructed, so that it may stand in shared memory and in unions.
template <class T>
struct Uninitialized {
  alignas(alignof(T) < 16 ? alignof(T) : 16) unsigned char storage[sizeof(T)];
  T& Alias() { return reinterpret_cast<T&>(*this); }
};

template <class Key_, class Value_>
struct KeyValuePair {
  using Key = Key_;
  using Value = Value_;
  Key key;
  Value value;
  KeyValuePair() = default;
  KeyValuePair(const Key& key, const Value& value) : key(key), value(value) {}
  bool operator!=(const KeyValuePair& other) const { return value != other.value || key != other.key; }
};

template <int N>
struct PowerOfTwo {
  static constexpr bool VALUE = (N & (N - 1)) == 0;
};

// The steps that halve N down to 1, rounded up.
template <int N>
struct Log2 {
  static constexpr int VALUE = N > 1 ? 1 + Log2<(N + 1) / 2>::VALUE : 0;
};
template <>
struct Log2<1> {
  static constexpr int VALUE = 0;
};

}  // namespace cub
