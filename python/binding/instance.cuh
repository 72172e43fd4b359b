// RMS_NORM_INSTANCE(X, R, W, Y) compiles the header for these types; R is void without a residual.
#pragma once
#include "call.h"

namespace rms_norm_binding {

template <class X, class R, class W, class Y, bool stores_rstd = false>
cudaError_t run(const Call& c, cudaStream_t stream, const char** refusal) {
  const auto x = of_type<const X>(c.x);
  const auto residual = of_type<const R>(c.residual);  // of type void, it is none
  const auto residual_out = of_type<R>(c.residual_out);
  const auto* const weight = static_cast<const W*>(c.weight);
  const auto y = with_rstd<stores_rstd>(of_type<Y>(c.y), c.rstd);
  const cudaError_t error =
      rms_norm::fused_add_rms_norm(x, residual, residual_out, weight, y, c.rows, c.cols, c.options, stream);
  if (error == cudaErrorInvalidValue)
    *refusal = rms_norm::explain(x, residual, residual_out, weight, y, c.rows, c.cols, c.options, c.names);
  return error;
}

}  // namespace rms_norm_binding

#define RMS_NORM_INSTANCE(X, R, W, Y)                                                     \
  namespace rms_norm_binding {                                                            \
  static const Instance added_##X##_##R##_##W##_##Y =                                     \
      instance(number_of<X>, number_of<R>, number_of<W>, number_of<Y>) = run<X, R, W, Y>; \
  }
