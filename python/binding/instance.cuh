// RMS_NORM_INSTANCE(X, R, W, Y) compiles the header for these types; R is void without a residual.
#pragma once
#include <type_traits>

#include "call.h"

namespace rms_norm_binding {

template <class T>
constexpr Type type_of = std::is_void_v<T>            ? kNone
                         : std::is_same_v<T, float32> ? kFloat32
                         : std::is_same_v<T, float16> ? kFloat16
                                                      : kBFloat16;

template <class X, class R, class W, class Y>
cudaError_t run(const Call& c, cudaStream_t stream, const char** refusal) {
  const auto x = of_type<const X>(c.x);
  const auto residual = of_type<const R>(c.residual);  // of type void, it is none
  const auto residual_out = of_type<R>(c.residual_out);
  const auto* const weight = static_cast<const W*>(c.weight);
  const auto y = of_type<Y>(c.y);
  const cudaError_t error =
      rms_norm::fused_add_rms_norm(x, residual, residual_out, weight, y, c.rows, c.cols, c.options, stream);
  if (error == cudaErrorInvalidValue)
    *refusal = rms_norm::explain(x, residual, residual_out, weight, y, c.rows, c.cols, c.options, c.names);
  return error;
}

}  // namespace rms_norm_binding

#define RMS_NORM_INSTANCE(X, R, W, Y)                                                                            \
  namespace rms_norm_binding {                                                                                   \
  static const Instance added_##X##_##R##_##W##_##Y = instance(type_of<X>, type_of<R>, type_of<W>, type_of<Y>) = \
      run<X, R, W, Y>;                                                                                           \
  }
