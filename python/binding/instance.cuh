// RMS_NORM_INSTANCE(X, R, W, Y) compiles the header for these types; R is void without a residual.
#pragma once
#include <rms_norm/rms_norm.cuh>
#include <type_traits>

#include "instances.h"
#include "types.cuh"

namespace rms_norm_binding {

template <class T>
constexpr Type type_of = std::is_void_v<T>            ? kNone
                         : std::is_same_v<T, float32> ? kFloat32
                         : std::is_same_v<T, float16> ? kFloat16
                                                      : kBFloat16;

// function(arguments of the header's functions...), with their types.
template <class X, class R, class W, class Y, class Function>
auto with_arguments(const Call& c, const Function& function) {
  ::rms_norm::Options options;
  options.eps = c.eps;
  options.weight_offset = c.weight_offset;
  options.rounding = c.llama ? ::rms_norm::Rounding::llama : ::rms_norm::Rounding::gemma;
  options.dependent_launch = c.dependent_launch;
  options.workspace = c.workspace;
  options.cache = static_cast<::rms_norm::Cache>(c.cache);
  const auto x = tensor_of<const X>(c.x);
  const auto y = tensor_of<Y>(c.y);
  const auto* weight = static_cast<const W*>(c.weight);
  if constexpr (std::is_void_v<R>)
    return function(x, weight, y, c.rows, c.cols, options);
  else
    return function(x, tensor_of<const R>(c.residual), tensor_of<R>(c.residual_out), weight, y, c.rows, c.cols,
                    options);
}

template <class X, class R, class W, class Y>
cudaError_t run(const Call& c, cudaStream_t stream) {
  return with_arguments<X, R, W, Y>(c, [&](const auto&... arguments) {
    if constexpr (std::is_void_v<R>)
      return ::rms_norm::forward(arguments..., stream);
    else
      return ::rms_norm::fused_add_rms_norm(arguments..., stream);
  });
}

template <class X, class R, class W, class Y>
const char* explain(const Call& c) {
  return with_arguments<X, R, W, Y>(c, [](const auto&... arguments) { return ::rms_norm::explain(arguments...); });
}

template <class X, class R, class W, class Y>
struct Added {
  Added() { instance(type_of<X>, type_of<R>, type_of<W>, type_of<Y>) = {explain<X, R, W, Y>, run<X, R, W, Y>}; }
};

}  // namespace rms_norm_binding

#define RMS_NORM_INSTANCE(X, R, W, Y)                         \
  namespace rms_norm_binding {                                \
  static const Added<X, R, W, Y> added_##X##_##R##_##W##_##Y; \
  }
