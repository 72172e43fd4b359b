// CUDA's integer intrinsics: bits, high products, averages and dot products.
#pragma once
#include <cstdint>
#include <type_traits>

#include "../vector_types.h"

// --- Bits ----------------------------------------------------------------------------------------------------------
inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned int>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }

inline unsigned int __brev(unsigned int x) {
  x = (x & 0x55555555) << 1 | (x >> 1 & 0x55555555);
  x = (x & 0x33333333) << 2 | (x >> 2 & 0x33333333);
  x = (x & 0x0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f);
  return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned int>(x))) << 32 |
         __brev(static_cast<unsigned int>(x >> 32));
}
inline unsigned short __nv_bswap16(unsigned short x) { return __builtin_bswap16(x); }
inline unsigned int __nv_bswap32(unsigned int x) { return __builtin_bswap32(x); }
inline unsigned long long __nv_bswap64(unsigned long long x) { return __builtin_bswap64(x); }

// The place of the offset-th set bit counted from bit `base` upwards (offset > 0) or downwards (< 0), that bit
// included; with offset 0, `base` itself if it is set. All ones where there is no such bit.
inline unsigned int __fns(unsigned int mask, unsigned int base, int offset) {
  const int step = offset < 0 ? -1 : 1;
  int wanted = offset == 0 ? 1 : offset < 0 ? -offset : offset;
  for (int bit = static_cast<int>(base); bit >= 0 && bit < 32; bit += step) {
    wanted -= mask >> bit & 1;
    if (wanted == 0) return static_cast<unsigned int>(bit);
    if (offset == 0) break;
  }
  return 0xffffffff;
}

// Bytes 0 to 3 are x's, 4 to 7 are y's; each nibble of the selector picks one (its top bit is ignored).
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned int result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned int chosen = selector >> 4 * i & 7;
    result |= static_cast<unsigned int>(bytes >> 8 * chosen & 0xff) << 8 * i;
  }
  return result;
}

// high:low shifted as one 64-bit word; the c forms stop at 32, the others take the shift modulo 32.
inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
  return static_cast<unsigned int>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
  return static_cast<unsigned int>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

// --- Products and sums ---------------------------------------------------------------------------------------------
inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<int64_t>(x) * y >> 32); }
inline unsigned int __umulhi(unsigned int x, unsigned int y) {
  return static_cast<unsigned int>(static_cast<uint64_t>(x) * y >> 32);
}
namespace simt {
__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;
}  // namespace simt
inline long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<simt::int128>(x) * y >> 64);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<simt::uint128>(x) * y >> 64);
}
// The low 32 bits of the product of the low 24 bits.
inline unsigned int __umul24(unsigned int x, unsigned int y) { return (x & 0xffffff) * (y & 0xffffff); }
inline int __mul24(int x, int y) {
  const int64_t low_x = static_cast<int32_t>(static_cast<unsigned int>(x) << 8) >> 8;
  const int64_t low_y = static_cast<int32_t>(static_cast<unsigned int>(y) << 8) >> 8;
  return static_cast<int>(low_x * low_y);
}
inline unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) { return (x > y ? x - y : y - x) + z; }
inline unsigned int __sad(int x, int y, unsigned int z) {
  const unsigned int a = static_cast<unsigned int>(x), b = static_cast<unsigned int>(y);
  return (x > y ? a - b : b - a) + z;
}
// Averages that cannot overflow; the r forms round up.
inline int __hadd(int x, int y) { return static_cast<int>((static_cast<int64_t>(x) + y) >> 1); }
inline int __rhadd(int x, int y) { return static_cast<int>((static_cast<int64_t>(x) + y + 1) >> 1); }
inline unsigned int __uhadd(unsigned int x, unsigned int y) {
  return static_cast<unsigned int>((static_cast<uint64_t>(x) + y) >> 1);
}
inline unsigned int __urhadd(unsigned int x, unsigned int y) {
  return static_cast<unsigned int>((static_cast<uint64_t>(x) + y + 1) >> 1);
}

// --- Dot products --------------------------------------------------------------------------------------------------
namespace simt {

template <class Sum>
using ByteOf = std::conditional_t<std::is_signed<Sum>::value, signed char, unsigned char>;
template <class Sum>
using ShortOf = std::conditional_t<std::is_signed<Sum>::value, short, unsigned short>;

// Four products of bytes, summed modulo 2^32. SSE has the sums of two neighbouring products in one instruction.
template <class Sum>
Sum dot4(unsigned int a, unsigned int b, Sum c) {
  unsigned int sum = static_cast<unsigned int>(c);
#if defined(__SSE4_1__)
  using Words = int __attribute__((vector_size(16)));
  using Bytes = char __attribute__((vector_size(16)));
  const auto widen = [](unsigned int word) {
    const Bytes bytes = reinterpret_cast<Bytes>(Words{static_cast<int>(word), 0, 0, 0});
    return std::is_signed<Sum>::value ? __builtin_ia32_pmovsxbw128(bytes) : __builtin_ia32_pmovzxbw128(bytes);
  };
  const Words sums = __builtin_ia32_pmaddwd128(widen(a), widen(b));
  sum += static_cast<unsigned int>(sums[0]) + static_cast<unsigned int>(sums[1]);
#else
  for (int i = 0; i < 32; i += 8) {
    sum += static_cast<unsigned int>(static_cast<ByteOf<Sum>>(a >> i) * static_cast<ByteOf<Sum>>(b >> i));
  }
#endif
  return static_cast<Sum>(sum);
}
// Two products of a short and a byte; b's bytes are the two lowest.
template <class Sum>
Sum dot2(unsigned int a, unsigned int b, Sum c) {
  const int low = static_cast<ShortOf<Sum>>(a) * static_cast<ByteOf<Sum>>(b);
  const int high = static_cast<ShortOf<Sum>>(a >> 16) * static_cast<ByteOf<Sum>>(b >> 8);
  return static_cast<Sum>(static_cast<unsigned int>(c) + static_cast<unsigned int>(low) +
                          static_cast<unsigned int>(high));
}
template <class Vector>
unsigned int as_word(Vector v) {
  unsigned int word;
  __builtin_memcpy(&word, &v, sizeof word);
  return word;
}

}  // namespace simt

#define SIMT_DOT(name, A, B, Sum, function, shift) \
  inline Sum name(A a, B b, Sum c) { return ::simt::function(::simt::as_word(a), ::simt::as_word(b) >> shift, c); }
#define SIMT_DOTS(name, A, B, UnsignedA, UnsignedB, function, shift)        \
  SIMT_DOT(name, int, int, int, function, shift)                            \
  SIMT_DOT(name, A, B, int, function, shift)                                \
  SIMT_DOT(name, unsigned int, unsigned int, unsigned int, function, shift) \
  SIMT_DOT(name, UnsignedA, UnsignedB, unsigned int, function, shift)
SIMT_DOTS(__dp4a, char4, char4, uchar4, uchar4, dot4, 0)
SIMT_DOTS(__dp2a_lo, short2, char4, ushort2, uchar4, dot2, 0)
SIMT_DOTS(__dp2a_hi, short2, char4, ushort2, uchar4, dot2, 16)
#undef SIMT_DOTS
#undef SIMT_DOT
