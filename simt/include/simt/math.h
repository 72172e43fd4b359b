// CUDA's device math: what <math.h> lacks or names differently, in the global namespace as CUDA has it.
// Where CUDA states a bound on the error (__expf, rsqrtf, ...) these are at least as close to the exact value.
#pragma once
#include <math.h>
#include <stdlib.h>

#include <cfenv>

#include "integer.h"
#include "packed.h"
#include "rounding.h"
#include "special_functions.h"

// --- Bits of floating-point numbers --------------------------------------------------------------------------------
inline int __float_as_int(float x) { return simt::bit_cast<int>(x); }
inline unsigned int __float_as_uint(float x) { return simt::bit_cast<unsigned int>(x); }
inline float __int_as_float(int x) { return simt::bit_cast<float>(x); }
inline float __uint_as_float(unsigned int x) { return simt::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return simt::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return simt::bit_cast<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(simt::bit_cast<uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(simt::bit_cast<uint64_t>(x)); }
inline double __hiloint2double(int high, int low) {
  return simt::bit_cast<double>(static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 | static_cast<uint32_t>(low));
}

// --- Arithmetic with the rounding in the name ----------------------------------------------------------------------
namespace simt {

// Volatile accesses and calls keep their order, so the operation happens between the changes of the rounding mode.
template <class Real>
Real opaque(Real x) {
  volatile Real v = x;
  return v;
}
template <class Operation, class... Reals>
auto rounded(int mode, Operation operation, Reals... operands) {
  const int before = std::fegetround();
  std::fesetround(mode);
  volatile auto result = operation(opaque(operands)...);
  std::fesetround(before);
  return result;
}

}  // namespace simt

// The barrier keeps the compiler from fusing a product and a sum, as __fmul_rn and __fadd_rn promise.
#define SIMT_ROUNDINGS(name, Real, expression, parameters, ...)                    \
  inline Real name##_rn parameters { return __builtin_assoc_barrier(expression); } \
  inline Real name##_rz parameters {                                               \
    return ::simt::rounded(                                                        \
        FE_TOWARDZERO, [] parameters { return expression; }, __VA_ARGS__);         \
  }                                                                                \
  inline Real name##_ru parameters {                                               \
    return ::simt::rounded(                                                        \
        FE_UPWARD, [] parameters { return expression; }, __VA_ARGS__);             \
  }                                                                                \
  inline Real name##_rd parameters {                                               \
    return ::simt::rounded(                                                        \
        FE_DOWNWARD, [] parameters { return expression; }, __VA_ARGS__);           \
  }
#define SIMT_ARITHMETIC(prefix, Real)                                \
  SIMT_ROUNDINGS(prefix##add, Real, x + y, (Real x, Real y), x, y)   \
  SIMT_ROUNDINGS(prefix##sub, Real, x - y, (Real x, Real y), x, y)   \
  SIMT_ROUNDINGS(prefix##mul, Real, (x * y), (Real x, Real y), x, y) \
  SIMT_ROUNDINGS(prefix##div, Real, x / y, (Real x, Real y), x, y)   \
  SIMT_ROUNDINGS(prefix##rcp, Real, 1 / x, (Real x), x)              \
  SIMT_ROUNDINGS(prefix##sqrt, Real, std::sqrt(x), (Real x), x)
SIMT_ARITHMETIC(__f, float)
SIMT_ARITHMETIC(__d, double)
SIMT_ROUNDINGS(__fmaf, float, std::fma(x, y, z), (float x, float y, float z), x, y, z)
SIMT_ROUNDINGS(__fmaf_ieee, float, std::fma(x, y, z), (float x, float y, float z), x, y, z)
SIMT_ROUNDINGS(__fma, double, std::fma(x, y, z), (double x, double y, double z), x, y, z)
#undef SIMT_ARITHMETIC
#undef SIMT_ROUNDINGS
// No float's root is so close to a tie that the error of the double could change its rounding: all 2^24 mantissas were
// tried.
inline float __frsqrt_rn(float x) { return static_cast<float>(1 / std::sqrt(static_cast<double>(x))); }

// --- Conversions with the rounding in the name ---------------------------------------------------------------------
namespace simt {
template <Round mode, class Number>
float to_float(Number x) {
  if (mode == Round::nearest) return static_cast<float>(x);
  return bit_cast<float>(static_cast<uint32_t>(Format<23, 8>::round(x, mode)));
}
}  // namespace simt

#define SIMT_EACH_ROUNDING(define, ...)                                                      \
  define(rn, nearest, __VA_ARGS__) define(rz, zero, __VA_ARGS__) define(ru, up, __VA_ARGS__) \
      define(rd, down, __VA_ARGS__)
#define SIMT_TO_INTEGER(suffix, mode, name, Real, Integer) \
  inline Integer __##name##_##suffix(Real x) { return ::simt::to_integer<Integer>(x, ::simt::Round::mode); }
SIMT_EACH_ROUNDING(SIMT_TO_INTEGER, float2int, float, int)
SIMT_EACH_ROUNDING(SIMT_TO_INTEGER, float2uint, float, unsigned int)
SIMT_EACH_ROUNDING(SIMT_TO_INTEGER, float2ll, float, long long)
SIMT_EACH_ROUNDING(SIMT_TO_INTEGER, float2ull, float, unsigned long long)
SIMT_EACH_ROUNDING(SIMT_TO_INTEGER, double2int, double, int)
SIMT_EACH_ROUNDING(SIMT_TO_INTEGER, double2uint, double, unsigned int)
SIMT_EACH_ROUNDING(SIMT_TO_INTEGER, double2ll, double, long long)
SIMT_EACH_ROUNDING(SIMT_TO_INTEGER, double2ull, double, unsigned long long)
#define SIMT_TO_FLOAT(suffix, mode, name, Number) \
  inline float __##name##_##suffix(Number x) { return ::simt::to_float<::simt::Round::mode>(x); }
SIMT_EACH_ROUNDING(SIMT_TO_FLOAT, int2float, int)
SIMT_EACH_ROUNDING(SIMT_TO_FLOAT, uint2float, unsigned int)
SIMT_EACH_ROUNDING(SIMT_TO_FLOAT, ll2float, long long)
SIMT_EACH_ROUNDING(SIMT_TO_FLOAT, ull2float, unsigned long long)
SIMT_EACH_ROUNDING(SIMT_TO_FLOAT, double2float, double)
#define SIMT_TO_DOUBLE(suffix, mode, name, Integer)                                         \
  inline double __##name##_##suffix(Integer x) {                                            \
    return ::simt::bit_cast<double>(::simt::Format<52, 11>::round(x, ::simt::Round::mode)); \
  }
SIMT_EACH_ROUNDING(SIMT_TO_DOUBLE, ll2double, long long)
SIMT_EACH_ROUNDING(SIMT_TO_DOUBLE, ull2double, unsigned long long)
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned int x) { return x; }
#undef SIMT_TO_DOUBLE
#undef SIMT_TO_FLOAT
#undef SIMT_TO_INTEGER
#undef SIMT_EACH_ROUNDING

// --- Fast functions ------------------------------------------------------------------------------------------------
// The C library declares some of these names for itself, as C functions that do not throw.
extern "C" {
inline float __expf(float x) noexcept { return expf(x); }
inline float __exp10f(float x) noexcept { return exp10f(x); }
inline float __logf(float x) noexcept { return logf(x); }
inline float __log2f(float x) noexcept { return log2f(x); }
inline float __log10f(float x) noexcept { return log10f(x); }
inline float __sinf(float x) noexcept { return sinf(x); }
inline float __cosf(float x) noexcept { return cosf(x); }
inline float __tanf(float x) noexcept { return tanf(x); }
inline float __tanhf(float x) noexcept { return tanhf(x); }
inline void __sincosf(float x, float* sine, float* cosine) noexcept { sincosf(x, sine, cosine); }
// By its definition through the logarithm, so that a negative x gives a NaN here too.
inline float __powf(float x, float y) noexcept { return static_cast<float>(exp2(y * log2(static_cast<double>(x)))); }
}
inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline double fdivide(double x, double y) { return x / y; }
inline float __saturatef(float x) { return simt::saturate(x); }

// --- Minimum and maximum of any two numbers of like kind -------------------------------------------------------------
#define SIMT_EXTREMES(Result, A, B) \
  inline Result min(A a, B b) {     \
    const Result x = a, y = b;      \
    return x < y ? x : y;           \
  }                                 \
  inline Result max(A a, B b) {     \
    const Result x = a, y = b;      \
    return x > y ? x : y;           \
  }
#define SIMT_EXTREMES_OF(Integer, Unsigned)   \
  SIMT_EXTREMES(Integer, Integer, Integer)    \
  SIMT_EXTREMES(Unsigned, Unsigned, Unsigned) \
  SIMT_EXTREMES(Unsigned, Integer, Unsigned)  \
  SIMT_EXTREMES(Unsigned, Unsigned, Integer)
SIMT_EXTREMES_OF(int, unsigned int)
SIMT_EXTREMES_OF(long, unsigned long)
SIMT_EXTREMES_OF(long long, unsigned long long)
#undef SIMT_EXTREMES_OF
#undef SIMT_EXTREMES
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(double a, float b) { return fmax(a, b); }
inline unsigned int umin(unsigned int a, unsigned int b) { return min(a, b); }
inline unsigned int umax(unsigned int a, unsigned int b) { return max(a, b); }
inline long long llmin(long long a, long long b) { return min(a, b); }
inline long long llmax(long long a, long long b) { return max(a, b); }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
