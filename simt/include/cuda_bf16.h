// CUDA's bfloat16: __nv_bfloat16 and __nv_bfloat162 with the functions that float16 has. It has float's range, but even
// a result that underflows is exact in float or too far from a tie for the two roundings to differ from one.
#pragma once
#include "cuda_fp16.h"
#define __CUDA_BF16_TYPES_EXIST__

namespace simt::bf16 {
using Code = Format<7, 8>;

inline float widen(unsigned short bits) { return bit_cast<float>(uint32_t{bits} << 16); }
// Adding half a unit less one, plus the bit that decides a tie, carries into the upper half exactly when it must.
inline unsigned short narrow(float x) {
  const uint32_t bits = bit_cast<uint32_t>(x);
  return x != x ? Code::kNan : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline unsigned short narrow(double x) { return narrow(round_to_odd(x)); }
template <class Integer>
unsigned short narrow(Integer x) {
  return Code::round(x);
}
}  // namespace simt::bf16

#define SIMT_T __nv_bfloat16
#define SIMT_T2 __nv_bfloat162
#define SIMT_RAW __nv_bfloat16_raw
#define SIMT_RAW2 __nv_bfloat162_raw
#define SIMT_OTHER __half
#define SIMT_NAME bfloat16
#define SIMT_NAME2 bfloat162
#define SIMT_FORMAT bf16
#if defined(__CUDA_NO_BFLOAT16_CONVERSIONS__)
#define SIMT_NO_CONVERSIONS
#endif
#if defined(__CUDA_NO_BFLOAT16_OPERATORS__)
#define SIMT_NO_OPERATORS
#endif
#if defined(__CUDA_NO_BFLOAT162_OPERATORS__)
#define SIMT_NO_OPERATORS2
#endif
#include "simt/float16_family.h"

#if !defined(__CUDA_NO_HALF_CONVERSIONS__)
inline __half::__half(__nv_bfloat16 x) : __half(__bfloat162float(x)) {}
#endif
#if !defined(__CUDA_NO_BFLOAT16_CONVERSIONS__)
inline __nv_bfloat16::__nv_bfloat16(__half x) : __nv_bfloat16(__half2float(x)) {}
#endif

#if !defined(CUDA_NO_BFLOAT16)
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
#endif

#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7f)
#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
