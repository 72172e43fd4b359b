// Products of small matrices by a warp, for mma.sync and nvcuda::wmma: every lane holds some elements of each matrix,
// and the last lane to arrive multiplies for all. Products and sums are exact or in the type of the sum, one after the
// other; a GPU adds in an order of its own.
#pragma once
#include <cstdint>
#include <cstring>

#include "simt/rounding.h"
#include "simt/warp.h"

namespace simt {

using Half = Format<10, 5>;
using Bfloat16 = Format<7, 8>;

template <class Format>
float widen_small(uint16_t code) {
  if constexpr (std::is_same_v<Format, Bfloat16>) {
    return bit_cast<float>(static_cast<uint32_t>(code) << 16);
  } else {
    const float magnitude = bit_cast<float>((code & 0x7fffu) << 13) * 0x1p112f;
    const uint32_t special = (code & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
    return bit_cast<float>(bit_cast<uint32_t>(magnitude) | special | (code & 0x8000u) << 16);
  }
}

// Element i of a register of packed elements, as a number that the sum can be formed of.
template <class Sum, class T>
Sum element(uint64_t word, int i) {
  if constexpr (sizeof(T) < 4) word >>= 8 * sizeof(T) * static_cast<unsigned>(i);
  T value;
  std::memcpy(static_cast<void*>(&value), &word, sizeof(T));
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<Sum>(value);
  else if constexpr (sizeof(T) == 4)  // tf32
    return static_cast<Sum>(bit_cast<float>(static_cast<uint32_t>(word) & 0xffffe000u));
  else
    return static_cast<Sum>(static_cast<float>(value));
}

template <class Sum>
struct Factors {
  const uint64_t* a;
  const uint64_t* b;
  Sum* sums;
};

// PTX's layout of rows x 8 = rows x depth by depth x 8. Lane l holds row l / 4 of the first factor, and with 16 rows
// that below by 8; of the second, column l / 4; of the sums, columns l % 4 * 2 and the next.
template <int rows, int depth, class A, class B, class Sum>
void combine_mma(Exchange& exchange, uint32_t) {
  constexpr int kPer = sizeof(A) < 4 ? 4 / static_cast<int>(sizeof(A)) : 1, kHalves = rows / 8;
  const auto lane = [&](int l) -> Factors<Sum>& { return *reinterpret_cast<Factors<Sum>*>(exchange.value[l]); };
  Sum a[rows][depth], b[8][depth];
  for (int l = 0; l < 32; ++l)
    for (int block = 0; block < depth / (4 * kPer); ++block)
      for (int i = 0; i < kPer; ++i) {
        const int k = block * 4 * kPer + l % 4 * kPer + i;
        for (int half = 0; half < kHalves; ++half)
          a[l / 4 + 8 * half][k] = element<Sum, A>(lane(l).a[block * kHalves + half], i);
        b[l / 4][k] = element<Sum, B>(lane(l).b[block], i);
      }
  for (int l = 0; l < 32; ++l)
    for (int half = 0; half < kHalves; ++half)
      for (int j = 0; j < 2; ++j) {
        Sum& sum = lane(l).sums[2 * half + j];
        for (int k = 0; k < depth; ++k) sum += a[l / 4 + 8 * half][k] * b[l % 4 * 2 + j][k];
      }
}

template <int rows, int depth, class A, class B, class Sum>
void multiply(const uint64_t* a, const uint64_t* b, Sum* sums, Site site) {
  Factors<Sum> factors{a, b, sums};
  static constexpr Collective kWhat{&combine_mma<rows, depth, A, B, Sum>, analysis::Operation::other, "mma.sync"};
  warp_collective(kWhat, ~0u, reinterpret_cast<uint64_t>(&factors), 0, site);
}

}  // namespace simt
