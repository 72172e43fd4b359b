// Q4_INSTANCE(T) compiles the products of include/q4_gemm whose y and bias have type T, and x too, unless it is
// quantized.
#pragma once
#include "q4_call.h"

namespace rms_norm_binding {

template <class T>
cudaError_t run_product(const Product& p, cudaStream_t stream, const char** refusal) {
  const auto with = [&](const auto& x) {
    const q4_gemm::Repacked weights{p.packed};
    T* const y = static_cast<T*>(p.y);
    const T* const bias = static_cast<const T*>(p.bias);
    const cudaError_t error = q4_gemm::multiply(weights, x, y, p.m, p.n, p.k, bias, p.options, stream);
    if (error == cudaErrorInvalidValue) *refusal = q4_gemm::explain(weights, x, y, p.m, p.n, p.k, bias, p.options);
    return error;
  };
  return p.is_quantized ? with(q4_gemm::Quantized{p.x}) : with(static_cast<const T*>(p.x));
}

}  // namespace rms_norm_binding

#define Q4_INSTANCE(T)                                                                      \
  namespace rms_norm_binding {                                                              \
  static const ProductInstance added_##T = product_instance(number_of<T>) = run_product<T>; \
  }
