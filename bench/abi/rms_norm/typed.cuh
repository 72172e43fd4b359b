// Defines c_abi.h's functions for x of one type: what float32.cu and its neighbours include.
#pragma once
#include <rms_norm/backward.cuh>
#include <rms_norm/quantize.cuh>
#include <rms_norm/rms_norm.cuh>
#include <type_traits>

#include "c_abi.h"

namespace c_abi {

inline ::rms_norm::Options options_of(const rms_norm_options& given) {
  ::rms_norm::Options options;
  options.eps = given.eps;
  options.weight_offset = given.weight_offset;
  options.rounding = given.llama_rounding ? ::rms_norm::Rounding::llama : ::rms_norm::Rounding::gemma;
  options.dependent_launch = given.dependent_launch != 0;
  options.workspace = given.workspace;
  options.cache = static_cast<::rms_norm::Cache>(given.cache);
  options.batch_invariant = given.batch_invariant != 0;
  return options;
}

template <class T>
::rms_norm::Tensor<T> tensor_of(T* data, Layout layout) {
  if (layout == nullptr) return {data};
  return {data, {layout->row_stride, layout->heads, layout->head_stride}};
}

// function(weight) with the weight's type.
template <class X, class Function>
cudaError_t with_weight(bool float_weight, const void* weight, const Function& function) {
  if (float_weight) return function(static_cast<const float*>(weight));
  if constexpr (!std::is_same_v<X, float>) return function(static_cast<const X*>(weight));
  return cudaErrorInvalidValue;
}

template <class X>
cudaError_t forward(bool float_weight, const void* x, Layout x_layout, const void* weight, void* y, Layout y_layout,
                    int64_t rows, int64_t cols, const rms_norm_options& options, void* stream) {
  return with_weight<X>(float_weight, weight, [&](auto* typed_weight) {
    return ::rms_norm::forward(tensor_of(static_cast<const X*>(x), x_layout), typed_weight,
                               tensor_of(static_cast<X*>(y), y_layout), rows, cols, options_of(options),
                               static_cast<cudaStream_t>(stream));
  });
}

template <class X>
cudaError_t fused_add_rms_norm(bool float_weight, const void* x, Layout x_layout, const void* residual,
                               Layout residual_layout, void* residual_out, Layout residual_out_layout,
                               const void* weight, void* y, Layout y_layout, int64_t rows, int64_t cols,
                               const rms_norm_options& options, void* stream) {
  return with_weight<X>(float_weight, weight, [&](auto* typed_weight) {
    return ::rms_norm::fused_add_rms_norm(
        tensor_of(static_cast<const X*>(x), x_layout), tensor_of(static_cast<const X*>(residual), residual_layout),
        tensor_of(static_cast<X*>(residual_out), residual_out_layout), typed_weight,
        tensor_of(static_cast<X*>(y), y_layout), rows, cols, options_of(options), static_cast<cudaStream_t>(stream));
  });
}

template <class X>
cudaError_t backward(bool float_weight, const void* dy, const void* dsum, const void* x, const float* rstd,
                     const void* weight, void* dx, void* dweight, void* workspace, int64_t rows, int64_t cols,
                     const rms_norm_options& options, void* stream) {
  return with_weight<X>(float_weight, weight, [&](auto* typed_weight) {
    using W = std::remove_const_t<std::remove_pointer_t<decltype(typed_weight)>>;
    const auto of = [&](const auto& from) {
      return ::rms_norm::backward(static_cast<const X*>(dy), static_cast<const X*>(dsum), from, typed_weight,
                                  static_cast<X*>(dx), static_cast<W*>(dweight), workspace, rows, cols,
                                  options_of(options), static_cast<cudaStream_t>(stream));
    };
    const auto* const typed_x = static_cast<const X*>(x);
    return rstd == nullptr ? of(typed_x) : of(::rms_norm::WithRstd{typed_x, rstd});
  });
}

template <class X, class Q>
cudaError_t quantized(const void* x, const void* residual, void* residual_out, const void* weight, void* q,
                      const rms_norm_quantization& given, void* y, int64_t rows, int64_t cols,
                      const rms_norm_options& options, void* stream) {
  const ::rms_norm::Quantization how = {
      given.scale, given.scales,
      given.block, given.column_major ? ::rms_norm::Scales::column_major : ::rms_norm::Scales::row_major,
      given.pitch, given.upper_bound,
  };
  const auto typed = [](auto* pointer) { return static_cast<const X*>(pointer); };
  const auto codes = static_cast<Q*>(q);
  const auto norm = static_cast<X*>(y);
  const auto stream_of = static_cast<cudaStream_t>(stream);
  if (residual == nullptr)
    return ::rms_norm::forward_quantized(typed(x), typed(weight), codes, how, norm, rows, cols, options_of(options),
                                         stream_of);
  return ::rms_norm::fused_add_rms_norm_quantized(typed(x), typed(residual), static_cast<X*>(residual_out),
                                                  typed(weight), codes, how, norm, rows, cols, options_of(options),
                                                  stream_of);
}

}  // namespace c_abi

#define C_ABI_OF(X)                                                                                                \
  template cudaError_t c_abi::forward<X>(bool, const void*, Layout, const void*, void*, Layout, int64_t, int64_t,  \
                                         const rms_norm_options&, void*);                                          \
  template cudaError_t c_abi::fused_add_rms_norm<X>(bool, const void*, Layout, const void*, Layout, void*, Layout, \
                                                    const void*, void*, Layout, int64_t, int64_t,                  \
                                                    const rms_norm_options&, void*);

#define C_ABI_OF_GRADIENTS(X)                                                                                     \
  template cudaError_t c_abi::backward<X>(bool, const void*, const void*, const void*, const float*, const void*, \
                                          void*, void*, void*, int64_t, int64_t, const rms_norm_options&, void*);

#define C_ABI_OF_CODES(X, Q)                                                                         \
  template cudaError_t c_abi::quantized<X, Q>(const void*, const void*, void*, const void*, void*,   \
                                              const rms_norm_quantization&, void*, int64_t, int64_t, \
                                              const rms_norm_options&, void*);
