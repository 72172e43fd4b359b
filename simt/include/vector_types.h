// CUDA's vector types: plain aggregates with CUDA's alignment, so that a 16-byte vector moves in one access.
#pragma once

// Pairs and quadruples are aligned to their size, but to no more than 16 bytes; singles and triples like their element.
#define SIMT_VECTOR_TYPES(name, T)                             \
  struct name##1 {                                             \
    T x;                                                       \
  };                                                           \
  struct alignas(2 * sizeof(T)) name##2 {                      \
    T x, y;                                                    \
  };                                                           \
  struct name##3 {                                             \
    T x, y, z;                                                 \
  };                                                           \
  struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) name##4 { \
    T x, y, z, w;                                              \
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
  };                                    \
  struct alignas(32) name##4_32a {      \
    T x, y, z, w;                       \
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
