// The vector types in which several items are loaded and stored at once.
#pragma once
#include <type_traits>

#include "vector_types.h"

namespace cub {
namespace detail {

// Up to four items and 16 bytes, a power of two of which the items of a thread are a multiple.
constexpr int vector_bytes(int item_bytes, int items) {
  int bytes = item_bytes;
  for (int factor = 2; factor <= 4 && items % factor == 0 && item_bytes * factor <= 16; factor *= 2)
    bytes = item_bytes * factor;
  return bytes;
}

template <int bytes>
struct Bytes {
  static_assert(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16,
                "vectorized loads and stores take items of 1, 2, 4, 8 or 16 bytes");
  using Small = std::conditional_t<bytes == 1, unsigned char, std::conditional_t<bytes == 2, unsigned short, unsigned>>;
  using type = std::conditional_t<bytes == 16, uint4, std::conditional_t<bytes == 8, uint2, Small>>;
};
template <int bytes>
using VectorOf = typename Bytes<bytes>::type;

}  // namespace detail
}  // namespace cub
