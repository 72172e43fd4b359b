// Added<X, R, W, Y> makes one instance of the header's templates known to the tests; R is void for forward.
#pragma once
#include <rms_norm/rms_norm.cuh>

#include "tests/headers/rms_norm/combination.h"

namespace header_test {

template <class T>
constexpr Type type_of = std::is_same_v<T, float>    ? Type::float32
                         : std::is_same_v<T, __half> ? Type::float16
                                                     : Type::bfloat16;

template <class T>
rms_norm::Tensor<T> given(T* data, const Layout& layout) {
  return {data, {layout.stride, layout.heads, layout.head_stride}};
}
inline rms_norm::Options given(const Options& options) {
  rms_norm::Options result;
  result.eps = options.eps;
  result.weight_offset = options.weight_offset;
  result.rounding = options.llama ? rms_norm::Rounding::llama : rms_norm::Rounding::gemma;
  result.dependent_launch = options.dependent_launch;
  result.workspace = options.workspace;
  result.cache = static_cast<rms_norm::Cache>(options.cache);
  result.batch_invariant = options.batch_invariant;
  return result;
}

// function(arguments of the header's functions...), with their types.
template <class X, class R, class W, class Y, class Function>
auto with_arguments(const Call& c, const Function& function) {
  const auto x = given(static_cast<const X*>(c.x), c.x_layout);
  const auto* weight = static_cast<const W*>(c.weight);
  const auto y = given(static_cast<Y*>(c.y), c.y_layout);
  if constexpr (std::is_void_v<R>)
    return function(x, weight, y, c.rows, c.cols, given(c.options));
  else
    return function(x, given(static_cast<const R*>(c.residual), c.residual_layout),
                    given(static_cast<R*>(c.residual_out), c.residual_out_layout), weight, y, c.rows, c.cols,
                    given(c.options));
}

template <class X, class R, class W, class Y>
cudaError_t run(const Call& c, cudaStream_t stream) {
  return with_arguments<X, R, W, Y>(c, [&](const auto&... arguments) {
    if constexpr (std::is_void_v<R>)
      return rms_norm::forward(arguments..., stream);
    else
      return rms_norm::fused_add_rms_norm(arguments..., stream);
  });
}

template <class X, class R, class W, class Y>
const char* explain(const Call& c) {
  return with_arguments<X, R, W, Y>(c, [](const auto&... arguments) { return rms_norm::explain(arguments...); });
}

template <class X, class R, class W, class Y>
struct Added {
  Added() {
    ladder::TypedRmsNorm::Types types = {type_of<X>, type_of<W>, type_of<Y>};
    if constexpr (!std::is_void_v<R>) types.residual = type_of<R>;
    combinations().push_back({types, run<X, R, W, Y>, explain<X, R, W, Y>});
  }
};

using bf16 = __nv_bfloat16;
using half = __half;

}  // namespace header_test
