// RMS_NORM_QUANTIZED(X, Q) compiles norms of X that end in Q, without a residual and with one of X.
#pragma once
#include "quantized_call.h"

namespace rms_norm_binding {

template <class X, class Q, bool adds>
cudaError_t run_quantized(const QuantizedCall& c, cudaStream_t stream, const char** refusal) {
  const auto x = of_type<const X>(c.x), residual = of_type<const X>(c.residual);
  const auto residual_out = of_type<X>(c.residual_out), y = of_type<X>(c.y);
  const auto* const weight = static_cast<const X*>(c.weight);
  const auto q = of_type<Q>(c.q);
  cudaError_t error;
  if constexpr (adds)
    error = rms_norm::fused_add_rms_norm_quantized(x, residual, residual_out, weight, q, c.how, y, c.rows, c.cols,
                                                   c.options, stream);
  else
    error = rms_norm::forward_quantized(x, weight, q, c.how, y, c.rows, c.cols, c.options, stream);
  if (error != cudaErrorInvalidValue) return error;
  if constexpr (adds)
    *refusal =
        rms_norm::explain_quantized(x, residual, residual_out, weight, q, c.how, y, c.rows, c.cols, c.options, c.names);
  else
    *refusal = rms_norm::explain_quantized(x, weight, q, c.how, y, c.rows, c.cols, c.options, c.names);
  return error;
}

}  // namespace rms_norm_binding

#define RMS_NORM_QUANTIZED(X, Q)                                                        \
  namespace rms_norm_binding {                                                          \
  static const QuantizedInstance added_##X##_##Q[] = {                                  \
      quantized_instance(number_of<X>, false, code_of<Q>) = run_quantized<X, Q, false>, \
      quantized_instance(number_of<X>, true, code_of<Q>) = run_quantized<X, Q, true>};  \
  }
