// RMSNorm of the rows of a matrix whose elements have type T, with sums in the type Sum:
//   y = x / sqrt(mean(x²) + eps) · weight.
// T stands first and Sum second, as in the names of the kernels: rms_norm_f16_f32 stores float16 and adds up in
// float32.
#pragma once
#include "common/stage.h"

struct __half;
struct __nv_bfloat16;

namespace ladder {

template <class T, class Sum = float>
struct RmsNormPrecision {
  // x and y: rows × cols elements, contiguous, aligned to an element and no more; weight: cols elements or nullptr.
  using Launch = void (*)(const T* x, const T* weight, T* y, int64_t rows, int64_t cols, float eps,
                          cudaStream_t stream);
  static const Operator& get();

  // Which shapes a kernel with one block per row accepts. Sums of 16 bits set a second limit.
  static const char* refuses(const Shape& shape);
};

using RmsNormF32 = RmsNormPrecision<float>;
using RmsNormF16 = RmsNormPrecision<__half>;
using RmsNormF16F16 = RmsNormPrecision<__half, __half>;
using RmsNormBf16 = RmsNormPrecision<__nv_bfloat16>;
using RmsNormBf16Bf16 = RmsNormPrecision<__nv_bfloat16, __nv_bfloat16>;

template <class T, class Sum>
const char* RmsNormPrecision<T, Sum>::refuses(const Shape& shape) {
  return shape[0] > INT32_MAX ? "more rows than a grid has blocks for; give fewer rows" : nullptr;
}
template <>
inline const char* RmsNormF16F16::refuses(const Shape& shape) {
  if (shape[1] > 65504) return "float16 has no number above 65504, so it cannot divide by cols; give fewer cols";
  return RmsNormF16::refuses(shape);
}
// Below, float16 sums have no limit but 65504; here additions() times the unit roundoff 2^-8 must stay below 1.
template <>
inline const char* RmsNormBf16Bf16::refuses(const Shape& shape) {
  if (shape[1] > 65536) return "a thread would add more numbers than a bfloat16 sum can hold apart; give fewer cols";
  return RmsNormBf16::refuses(shape);
}

}  // namespace ladder
