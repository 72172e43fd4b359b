// CUDA's float16: __half and __half2 with their conversions, arithmetic, comparisons and functions. Conversions and
// arithmetic give a GPU's bits; functions that CUDA states to a few units in the last place (hexp, hsin, ...) are
// closer to exact. A NaN that is computed is CUDA's canonical one, 0x7fff.
#pragma once
#include "simt/rounding.h"
#include "vector_types.h"
#define __CUDA_FP16_TYPES_EXIST__

namespace simt::fp16 {
using Code = Format<10, 5>;

// Half's exponent field read as float's is too small by the difference of the biases; a multiplication corrects this
// and normalizes subnormals.
inline float widen_by_bits(unsigned short bits) {
  const float magnitude = bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
  const uint32_t sign = (bits & 0x8000u) << 16, special = (bits & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
  return bit_cast<float>(bit_cast<uint32_t>(magnitude) | sign | special);
}
#if defined(__F16C__)
// The processor's own instructions; _Float16 would make g++ go from half to double by a library call.
using Shorts = short __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));
inline float widen(unsigned short bits) { return __builtin_ia32_vcvtph2ps(Shorts{static_cast<short>(bits)})[0]; }
inline unsigned short narrow(float x) {
  constexpr int kNearest = 0;
  if (x != x) return Code::kNan;
  return static_cast<unsigned short>(__builtin_ia32_vcvtps2ph(Floats{x}, kNearest)[0]);
}
#else
inline float widen(unsigned short bits) { return widen_by_bits(bits); }
inline unsigned short narrow(float x) { return Code::round(x); }
#endif
inline unsigned short narrow(double x) { return narrow(round_to_odd(x)); }
template <class Integer>
unsigned short narrow(Integer x) {
  return Code::round(x);
}
}  // namespace simt::fp16

struct __nv_bfloat16;
#define SIMT_T __half
#define SIMT_T2 __half2
#define SIMT_RAW __half_raw
#define SIMT_RAW2 __half2_raw
#define SIMT_OTHER __nv_bfloat16
#define SIMT_NAME half
#define SIMT_NAME2 half2
#define SIMT_FORMAT fp16
#if defined(__CUDA_NO_HALF_CONVERSIONS__)
#define SIMT_NO_CONVERSIONS
#endif
#if defined(__CUDA_NO_HALF_OPERATORS__)
#define SIMT_NO_OPERATORS
#endif
#if defined(__CUDA_NO_HALF2_OPERATORS__)
#define SIMT_NO_OPERATORS2
#endif
#include "simt/float16_family.h"

using __nv_half = __half;
using __nv_half2 = __half2;
using __nv_half_raw = __half_raw;
using __nv_half2_raw = __half2_raw;
using nv_half = __half;
using nv_half2 = __half2;
#if !defined(CUDA_NO_HALF)
using half = __half;
using half2 = __half2;
#endif

#define CUDART_ZERO_FP16 __ushort_as_half(0x0000)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
