// CUDA's 8-bit floats: e4m3 (no infinity, largest value 448), e5m2 (float16 with two mantissa bits) and e8m0 (powers of
// two), in ones, twos and fours. Conversions round once, to nearest even; e8m0 rounds in the mode that is given.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "device_types.h"
#include "vector_types.h"
#define __CUDA_FP8_TYPES_EXIST__

using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;
using __nv_fp8x4_storage_t = unsigned int;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace simt::fp8 {
using Code = __nv_fp8_storage_t;

// Without saturation an overflow is e5m2's infinity; e4m3 has none, and there it is NaN.
inline Code narrow(double x, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind) {
  if (x != x) return 0x7f;
  const Parts parts = split(x);
  const uint64_t code = kind == __NV_E4M3 ? Format<3, 4>::encode(parts.significand, parts.exponent, Round::nearest)
                                          : Format<2, 5>::encode(parts.significand, parts.exponent, Round::nearest);
  const uint64_t largest = kind == __NV_E4M3 ? 0x7e : 0x7b;
  const uint64_t overflow = saturation == __NV_SATFINITE ? largest : largest + 1;
  return static_cast<Code>((parts.negative ? 0x80 : 0) | (code > largest ? overflow : code));
}

// Both formats read as float16 after a shift: e5m2 exactly, e4m3 with an exponent short by the biases' difference, 8.
inline float widen(Code code, __nv_fp8_interpretation_t kind) {
  const unsigned magnitude = code & 0x7f, sign = (code & 0x80) << 8;
  if (magnitude > (kind == __NV_E4M3 ? 0x7e : 0x7c)) return fp16::widen(fp16::Code::kNan);
  if (kind == __NV_E5M2) return fp16::widen(static_cast<unsigned short>(sign | magnitude << 8));
  return 256 * fp16::widen(static_cast<unsigned short>(sign | magnitude << 7));
}

// e8m0's code c is 2^(c - 127), 255 is a NaN; a number's sign is dropped.
inline Code narrow(float x, __nv_saturation_t saturation, cudaRoundMode mode) {
  constexpr uint32_t kInfinity = 0x7f800000, kSmallest = 0x00400000;  // 2^-127, below which everything rounds up to it
  const uint32_t magnitude = bit_cast<uint32_t>(x) & 0x7fffffff;
  if (magnitude > kInfinity) return 0xff;
  const bool up = mode == cudaRoundPosInf && magnitude % (1 << 23) != 0 && magnitude > kSmallest;
  const uint32_t code = (magnitude >> 23) + up;
  return static_cast<Code>(code == 0xff && saturation == __NV_SATFINITE ? 0xfe : code);
}

// What the three types differ in. Their constructors saturate, and e8m0's round up.
template <__nv_fp8_interpretation_t kKind>
struct Kind {
  static Code narrow(double x) { return fp8::narrow(x, __NV_SATFINITE, kKind); }
  static float widen(Code code) { return fp8::widen(code, kKind); }
  static bool nonzero(Code code) { return (code & 0x7f) != 0; }
};
struct Scale {
  template <class Number>
  static Code narrow(Number x) {
    // An integer or a double becomes a float no nearer to zero, so that it still rounds up.
    const auto bits = static_cast<uint32_t>(Format<23, 8>::round(x, x < 0 ? Round::down : Round::up));
    return fp8::narrow(bit_cast<float>(bits), __NV_SATFINITE, cudaRoundPosInf);
  }
  static float widen(Code code) { return code == 0xff ? NAN : std::ldexp(1.f, code - 127); }
  static bool nonzero(Code) { return true; }
};

template <class Number>
using IfArithmetic = std::enable_if_t<std::is_arithmetic<Number>::value, int>;

template <class Kind>
struct One {
  __nv_fp8_storage_t __x;
  One() = default;
  explicit One(__half x) : One(__half2float(x)) {}
  explicit One(__nv_bfloat16 x) : One(__bfloat162float(x)) {}
  template <class Number, IfArithmetic<Number> = 0>
  explicit One(Number x) : __x(Kind::narrow(x)) {}

  explicit operator float() const { return Kind::widen(__x); }
  explicit operator double() const { return Kind::widen(__x); }
  explicit operator __half() const { return __float2half(Kind::widen(__x)); }
  explicit operator __nv_bfloat16() const { return __float2bfloat16(Kind::widen(__x)); }
  explicit operator bool() const { return Kind::nonzero(__x); }
  template <class Integer, IfArithmetic<Integer> = 0>
  explicit operator Integer() const {
    return to_integer<Integer>(Kind::widen(__x), Round::zero);
  }
};

template <class Kind>
struct alignas(2) Two {
  __nv_fp8x2_storage_t __x;  // x in the low byte
  Two() = default;
  explicit Two(double2 v) : __x(static_cast<__nv_fp8x2_storage_t>(Kind::narrow(v.x) | Kind::narrow(v.y) << 8)) {}
  explicit Two(float2 v) : Two(double2{v.x, v.y}) {}
  explicit Two(__half2 v) : Two(__half22float2(v)) {}
  explicit Two(__nv_bfloat162 v) : Two(__bfloat1622float2(v)) {}

  explicit operator float2() const { return {Kind::widen(__x & 0xff), Kind::widen(__x >> 8)}; }
  explicit operator __half2() const { return __float22half2_rn(static_cast<float2>(*this)); }
  explicit operator __nv_bfloat162() const { return __float22bfloat162_rn(static_cast<float2>(*this)); }
};

template <class Kind>
struct alignas(4) Four {
  __nv_fp8x4_storage_t __x;  // x in the lowest byte
  Four() = default;
  explicit Four(__half2 low, __half2 high) : Four(Two<Kind>(low), Two<Kind>(high)) {}
  explicit Four(__nv_bfloat162 low, __nv_bfloat162 high) : Four(Two<Kind>(low), Two<Kind>(high)) {}
  explicit Four(float4 v) : Four(Two<Kind>(float2{v.x, v.y}), Two<Kind>(float2{v.z, v.w})) {}
  explicit Four(double4 v) : Four(double4_16a{v.x, v.y, v.z, v.w}) {}
  explicit Four(double4_16a v) : Four(Two<Kind>(double2{v.x, v.y}), Two<Kind>(double2{v.z, v.w})) {}
  explicit Four(const double4_32a& v) : Four(double4_16a{v.x, v.y, v.z, v.w}) {}

  explicit operator float4() const {
    return {Kind::widen(__x & 0xff), Kind::widen(__x >> 8 & 0xff), Kind::widen(__x >> 16 & 0xff),
            Kind::widen(__x >> 24)};
  }

 private:
  Four(Two<Kind> low, Two<Kind> high) : __x(low.__x | __nv_fp8x4_storage_t{high.__x} << 16) {}
};
}  // namespace simt::fp8

#define SIMT_FP8_TYPES(name, Kind)                     \
  struct __nv_fp8_##name : ::simt::fp8::One<Kind> {    \
    using ::simt::fp8::One<Kind>::One;                 \
    __nv_fp8_##name() = default;                       \
  };                                                   \
  struct __nv_fp8x2_##name : ::simt::fp8::Two<Kind> {  \
    using ::simt::fp8::Two<Kind>::Two;                 \
    __nv_fp8x2_##name() = default;                     \
  };                                                   \
  struct __nv_fp8x4_##name : ::simt::fp8::Four<Kind> { \
    using ::simt::fp8::Four<Kind>::Four;               \
    __nv_fp8x4_##name() = default;                     \
  };
SIMT_FP8_TYPES(e4m3, ::simt::fp8::Kind<__NV_E4M3>)
SIMT_FP8_TYPES(e5m2, ::simt::fp8::Kind<__NV_E5M2>)
SIMT_FP8_TYPES(e8m0, ::simt::fp8::Scale)
#undef SIMT_FP8_TYPES

// --- Conversion functions ------------------------------------------------------------------------------------------
#define SIMT_NARROW(kind, Option, name, type, value)                                                           \
  inline __nv_fp8_storage_t __nv_cvt_##name##_to_##kind(type x, __nv_saturation_t saturation, Option option) { \
    return ::simt::fp8::narrow(value, saturation, option);                                                     \
  }
#define SIMT_NARROW_PAIR(kind, Option, name, type, one, one_type)                                                    \
  inline __nv_fp8x2_storage_t __nv_cvt_##name##_to_##kind##x2(type v, __nv_saturation_t saturation, Option option) { \
    const __nv_fp8_storage_t x = __nv_cvt_##one##_to_##kind(one_type{v.x}, saturation, option);                      \
    const __nv_fp8_storage_t y = __nv_cvt_##one##_to_##kind(one_type{v.y}, saturation, option);                      \
    return static_cast<__nv_fp8x2_storage_t>(x | y << 8);                                                            \
  }
SIMT_NARROW(fp8, __nv_fp8_interpretation_t, double, double, x)
SIMT_NARROW(fp8, __nv_fp8_interpretation_t, float, float, x)
SIMT_NARROW(fp8, __nv_fp8_interpretation_t, halfraw, __half_raw, __half2float(x))
SIMT_NARROW(fp8, __nv_fp8_interpretation_t, bfloat16raw, __nv_bfloat16_raw, __bfloat162float(x))
SIMT_NARROW_PAIR(fp8, __nv_fp8_interpretation_t, double2, double2, double, double)
SIMT_NARROW_PAIR(fp8, __nv_fp8_interpretation_t, float2, float2, float, float)
SIMT_NARROW_PAIR(fp8, __nv_fp8_interpretation_t, halfraw2, __half2_raw, halfraw, __half_raw)
SIMT_NARROW_PAIR(fp8, __nv_fp8_interpretation_t, bfloat16raw2, __nv_bfloat162_raw, bfloat16raw, __nv_bfloat16_raw)
SIMT_NARROW(e8m0, cudaRoundMode, double, double, ::simt::round_to_odd(x))
SIMT_NARROW(e8m0, cudaRoundMode, float, float, x)
SIMT_NARROW(e8m0, cudaRoundMode, bfloat16raw, __nv_bfloat16_raw, __bfloat162float(x))
SIMT_NARROW_PAIR(e8m0, cudaRoundMode, double2, double2, double, double)
SIMT_NARROW_PAIR(e8m0, cudaRoundMode, float2, float2, float, float)
SIMT_NARROW_PAIR(e8m0, cudaRoundMode, bfloat162raw, __nv_bfloat162_raw, bfloat16raw, __nv_bfloat16_raw)
#undef SIMT_NARROW
#undef SIMT_NARROW_PAIR

inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
  return __float2half(::simt::fp8::widen(x, kind));
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t v, __nv_fp8_interpretation_t kind) {
  return {__nv_cvt_fp8_to_halfraw(v & 0xff, kind).x, __nv_cvt_fp8_to_halfraw(v >> 8, kind).x};
}
inline __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(__nv_fp8_storage_t x) {
  return __float2bfloat16(::simt::fp8::Scale::widen(x));
}
inline __nv_bfloat162_raw __nv_cvt_e8m0x2_to_bf162raw(__nv_fp8x2_storage_t v) {
  return {__nv_cvt_e8m0_to_bf16raw(v & 0xff).x, __nv_cvt_e8m0_to_bf16raw(v >> 8).x};
}
