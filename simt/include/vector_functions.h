// make_float4() and the like, for every vector type.
#pragma once
#include "vector_types.h"

#define SIMT_MAKE_QUADRUPLE(name, T) \
  inline name make_##name(T x, T y, T z, T w) { return name{x, y, z, w}; }
#define SIMT_MAKE(name, T)                                                   \
  inline name##1 make_##name##1(T x) { return name##1 {x}; }                 \
  inline name##2 make_##name##2(T x, T y) { return name##2 {x, y}; }         \
  inline name##3 make_##name##3(T x, T y, T z) { return name##3 {x, y, z}; } \
  SIMT_MAKE_QUADRUPLE(name##4, T)

SIMT_MAKE(char, signed char)
SIMT_MAKE(uchar, unsigned char)
SIMT_MAKE(short, short)
SIMT_MAKE(ushort, unsigned short)
SIMT_MAKE(int, int)
SIMT_MAKE(uint, unsigned int)
SIMT_MAKE(long, long)
SIMT_MAKE(ulong, unsigned long)
SIMT_MAKE(longlong, long long)
SIMT_MAKE(ulonglong, unsigned long long)
SIMT_MAKE(float, float)
SIMT_MAKE(double, double)

SIMT_MAKE_QUADRUPLE(long4_16a, long)
SIMT_MAKE_QUADRUPLE(long4_32a, long)
SIMT_MAKE_QUADRUPLE(ulong4_16a, unsigned long)
SIMT_MAKE_QUADRUPLE(ulong4_32a, unsigned long)
SIMT_MAKE_QUADRUPLE(longlong4_16a, long long)
SIMT_MAKE_QUADRUPLE(longlong4_32a, long long)
SIMT_MAKE_QUADRUPLE(ulonglong4_16a, unsigned long long)
SIMT_MAKE_QUADRUPLE(ulonglong4_32a, unsigned long long)
SIMT_MAKE_QUADRUPLE(double4_16a, double)
SIMT_MAKE_QUADRUPLE(double4_32a, double)
#undef SIMT_MAKE
#undef SIMT_MAKE_QUADRUPLE
