// RMS_NORM_GRADIENTS(X, W, Y) compiles the gradients of a norm of X with a weight of W and a result of Y.
#pragma once
#include "gradients_call.h"

namespace rms_norm_binding {

template <class X, class W, class Y, bool reads_rstd = false>
cudaError_t run_gradients(const GradientsCall& c, cudaStream_t stream, const char** refusal) {
  const auto x = with_rstd<reads_rstd>(of_type<const X>(c.x), c.rstd);
  const auto with_arguments = [&](const auto& function) {
    return function(of_type<const Y>(c.dy), of_type<const X>(c.dsum), x, static_cast<const W*>(c.weight),
                    of_type<X>(c.dx), static_cast<W*>(c.dweight), c.workspace, c.rows, c.cols, c.options);
  };
  const cudaError_t error =
      with_arguments([&](const auto&... arguments) { return rms_norm::backward(arguments..., stream); });
  if (error == cudaErrorInvalidValue)
    *refusal = with_arguments([](const auto&... arguments) { return rms_norm::explain_backward(arguments...); });
  return error;
}

}  // namespace rms_norm_binding

#define RMS_NORM_GRADIENTS(X, W, Y)                                                          \
  namespace rms_norm_binding {                                                               \
  static const GradientsInstance gradients_##X##_##W##_##Y =                                 \
      gradients_instance(number_of<X>, number_of<W>, number_of<Y>) = run_gradients<X, W, Y>; \
  }
