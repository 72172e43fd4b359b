// include/q4_gemm behind a C ABI: what a language without C++ templates calls, and what is timed beside its peers.
// Functions that return an int return a cudaError_t; types that are not named here are cudaErrorInvalidValue.
//
//   nvcc -t 0 -std=c++17 -O3 -arch=native -shared -Xcompiler -fPIC -Iinclude bench/abi/q4_gemm/*.cu -o libq4_gemm.so
#include "q4_abi.h"

#include <q4_gemm/q4_gemm.cuh>

extern "C" {

enum q4_gemm_dtype { Q4_GEMM_FLOAT32 = 0, Q4_GEMM_FLOAT16 = 1, Q4_GEMM_BFLOAT16 = 2, Q4_GEMM_QUANTIZED = 3 };

size_t q4_gemm_packed_size(int64_t m, int64_t k) { return q4_gemm::packed_size(m, k); }
size_t q4_gemm_quantized_size(int64_t n, int64_t k) { return q4_gemm::quantized_size(n, k); }
size_t q4_gemm_workspace_size(int64_t m, int64_t n, int64_t k) { return q4_gemm::workspace_size(m, n, k); }

// From how many columns on the policy whose scales are rounded rounds them. With fewer it is as exact as the other one.
int64_t q4_gemm_rounded_from(void) { return q4_gemm::policies::H200Rounded::kManyFrom; }

int q4_gemm_repack(const void* blocks, void* packed, int64_t m, int64_t k, void* stream) {
  return q4_gemm::repack(blocks, packed, m, k, static_cast<cudaStream_t>(stream));
}

}  // extern "C"

namespace {

// function(X()) for the type of a code.
template <class Function>
int with_type(int dtype, const Function& function) {
  switch (dtype) {
    case Q4_GEMM_FLOAT32:
      return function(float());
    case Q4_GEMM_FLOAT16:
      return function(__half());
    case Q4_GEMM_BFLOAT16:
      return function(__nv_bfloat16());
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

extern "C" {

int q4_gemm_quantize(int dtype, const void* x, void* quantized, int64_t n, int64_t k, int dependent_launch,
                     void* stream) {
  q4_gemm::Options options;
  options.dependent_launch = dependent_launch != 0;
  return with_type(dtype, [&](auto of_type) -> int {
    return q4_gemm::quantize(static_cast<const decltype(of_type)*>(x), quantized, n, k, options,
                             static_cast<cudaStream_t>(stream));
  });
}

// residual and residual_out, of x's type, may be null, and so may weight, which is of x's type too.
int q4_gemm_rms_norm_quantize(int dtype, const void* x, const void* residual, void* residual_out, const void* weight,
                              void* quantized, int64_t n, int64_t k, float eps, int dependent_launch, void* stream) {
  q4_gemm::NormOptions options;
  options.eps = eps;
  options.dependent_launch = dependent_launch != 0;
  return with_type(dtype, [&](auto of_type) -> int {
    using T = decltype(of_type);
    const auto *typed_x = static_cast<const T*>(x), *typed_weight = static_cast<const T*>(weight);
    const auto on = static_cast<cudaStream_t>(stream);
    if (residual == nullptr) return q4_gemm::rms_norm_quantize(typed_x, typed_weight, quantized, n, k, options, on);
    return q4_gemm::add_rms_norm_quantize(typed_x, static_cast<const T*>(residual), static_cast<T*>(residual_out),
                                          typed_weight, quantized, n, k, options, on);
  });
}

// y = W · x. Weights are repacked, or blocks of q4_0, and `rounded` is the policy whose scales are rounded to float16.
// x is of a type of above, which is y's too, or quantized. workspace has q4_gemm_workspace_size bytes, or is null.
int q4_gemm_multiply(int repacked, int rounded, const void* weights, int x_dtype, const void* x, int y_dtype, void* y,
                     int64_t m, int64_t n, int64_t k, int dependent_launch, int batch_invariant, void* workspace,
                     void* stream) {
  if (x_dtype != y_dtype && x_dtype != Q4_GEMM_QUANTIZED) return cudaErrorInvalidValue;
  q4_abi::Product product = {
      repacked != 0, rounded != 0, weights, x, y, m, n, k, {}, static_cast<cudaStream_t>(stream)};
  product.options.dependent_launch = dependent_launch != 0;
  product.options.batch_invariant = batch_invariant != 0;
  product.options.workspace = workspace;
  return with_type(y_dtype, [&](auto of_type) -> int {
    using T = decltype(of_type);
    if (x_dtype == Q4_GEMM_QUANTIZED) return q4_abi::multiply<q4_gemm::Quantized, T>(product);
    return q4_abi::multiply<T, T>(product);
  });
}

const char* q4_gemm_error(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

}  // extern "C"
