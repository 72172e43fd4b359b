// CUDA's complex numbers: pairs with the real part in x. Names end in f for float and in nothing for double.
#pragma once
#include <cmath>

#include "vector_types.h"

using cuFloatComplex = float2;
using cuDoubleComplex = double2;
using cuComplex = cuFloatComplex;

#define SIMT_COMPLEX(Complex, Real, f)                                                                      \
  inline Complex make_##Complex(Real x, Real y) { return {x, y}; }                                          \
  inline Real cuCreal##f(Complex a) { return a.x; }                                                         \
  inline Real cuCimag##f(Complex a) { return a.y; }                                                         \
  inline Complex cuConj##f(Complex a) { return {a.x, -a.y}; }                                               \
  inline Complex cuCadd##f(Complex a, Complex b) { return {a.x + b.x, a.y + b.y}; }                         \
  inline Complex cuCsub##f(Complex a, Complex b) { return {a.x - b.x, a.y - b.y}; }                         \
  inline Complex cuCmul##f(Complex a, Complex b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; } \
  inline Complex cuCdiv##f(Complex a, Complex b) {                                                          \
    /* scaled by b's size, so that its square neither overflows nor underflows */                           \
    const Real scale = std::fabs(b.x) + std::fabs(b.y), x = b.x / scale, y = b.y / scale;                   \
    const Real square = (x * x + y * y) * scale;                                                            \
    return {(a.x * x + a.y * y) / square, (a.y * x - a.x * y) / square};                                    \
  }                                                                                                         \
  inline Real cuCabs##f(Complex a) { return std::hypot(a.x, a.y); }                                         \
  inline Complex cuCfma##f(Complex a, Complex b, Complex c) { return cuCadd##f(cuCmul##f(a, b), c); }
SIMT_COMPLEX(cuFloatComplex, float, f)
SIMT_COMPLEX(cuDoubleComplex, double, )
#undef SIMT_COMPLEX

inline cuComplex make_cuComplex(float x, float y) { return {x, y}; }
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return {a.x, a.y}; }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return {static_cast<float>(a.x), static_cast<float>(a.y)};
}
