// CUDA's vector types: plain aggregates with CUDA's alignment, so that a 16-byte vector moves in one access.
#pragma once

// In an analysis build an assignment is one access, also from braces: v[i] = {a, b, c, d} would otherwise be four.
#ifdef SIMT_ANALYSIS
namespace simt {
__extension__ typedef unsigned __int128 Word16 __attribute__((may_alias));
typedef unsigned long Word8 __attribute__((may_alias));
typedef unsigned int Word4 __attribute__((may_alias));
typedef unsigned short Word2 __attribute__((may_alias));
template <unsigned long size>
__attribute__((always_inline)) inline void assign_whole(void* to, const void* from) {
  if constexpr (size == 2) *static_cast<Word2*>(to) = *static_cast<const Word2*>(from);
  if constexpr (size == 4) *static_cast<Word4*>(to) = *static_cast<const Word4*>(from);
  if constexpr (size == 8) *static_cast<Word8*>(to) = *static_cast<const Word8*>(from);
  if constexpr (size >= 16) *static_cast<Word16*>(to) = *static_cast<const Word16*>(from);
  if constexpr (size == 32) static_cast<Word16*>(to)[1] = static_cast<const Word16*>(from)[1];
}
}  // namespace simt
#define SIMT_WHOLE(type)                                                     \
  __attribute__((always_inline)) inline type& operator=(const type& other) { \
    ::simt::assign_whole<sizeof(type)>(this, &other);                        \
    return *this;                                                            \
  }
#else
#define SIMT_WHOLE(type)
#endif

// Pairs and quadruples are aligned to their size, but to no more than 16 bytes; singles and triples like their element.
#define SIMT_VECTOR_TYPES(name, T)                             \
  struct name##1 {                                             \
    T x;                                                       \
  };                                                           \
  struct alignas(2 * sizeof(T)) name##2 {                      \
    T x, y;                                                    \
    SIMT_WHOLE(name##2)                                        \
  };                                                           \
  struct name##3 {                                             \
    T x, y, z;                                                 \
  };                                                           \
  struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) name##4 { \
    T x, y, z, w;                                              \
    SIMT_WHOLE(name##4)                                        \
  };

SIMT_VECTOR_TYPES(char, signed char)
SIMT_VECTOR_TYPES(uchar, unsigned char)
SIMT_VECTOR_TYPES(short, short)
SIMT_VECTOR_TYPES(ushort, unsigned short)
SIMT_VECTOR_TYPES(int, int)
SIMT_VECTOR_TYPES(uint, unsigned int)
SIMT_VECTOR_TYPES(long, long)
SIMT_VECTOR_TYPES(ulong, unsigned long)
SIMT_VECTOR_TYPES(longlong, long long)
SIMT_VECTOR_TYPES(ulonglong, unsigned long long)
SIMT_VECTOR_TYPES(float, float)
SIMT_VECTOR_TYPES(double, double)
#undef SIMT_VECTOR_TYPES

// CUDA 13's quadruples of 8-byte elements with the alignment in the name.
#define SIMT_ALIGNED_QUADRUPLE(name, T) \
  struct alignas(16) name##4_16a {      \
    T x, y, z, w;                       \
    SIMT_WHOLE(name##4_16a)             \
  };                                    \
  struct alignas(32) name##4_32a {      \
    T x, y, z, w;                       \
    SIMT_WHOLE(name##4_32a)             \
  };

SIMT_ALIGNED_QUADRUPLE(long, long)
SIMT_ALIGNED_QUADRUPLE(ulong, unsigned long)
SIMT_ALIGNED_QUADRUPLE(longlong, long long)
SIMT_ALIGNED_QUADRUPLE(ulonglong, unsigned long long)
SIMT_ALIGNED_QUADRUPLE(double, double)
#undef SIMT_ALIGNED_QUADRUPLE

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};
