// Added<X, R, W, Y> makes one instance of the header's templates known to the tests; R is void for forward.
#pragma once
#include <rms_norm/rms_norm.cuh>

#include "tests/header/combination.h"

namespace header_test {

template <class T>
constexpr Type type_of = std::is_same_v<T, float>    ? Type::float32
                         : std::is_same_v<T, __half> ? Type::float16
                                                     : Type::bfloat16;

inline rms_norm::Layout given(const Layout& layout) { return {layout.stride, layout.heads, layout.head_stride}; }
inline rms_norm::Options given(const Options& options) {
  rms_norm::Options result;
  result.eps = options.eps;
  result.weight_offset = options.weight_offset;
  result.rounding = options.llama ? rms_norm::Rounding::llama : rms_norm::Rounding::gemma;
  result.dependent_launch = options.dependent_launch;
  result.workspace = options.workspace;
  return result;
}

template <class X, class R, class W, class Y>
cudaError_t run(const Call& c, cudaStream_t stream) {
  const auto* x = static_cast<const X*>(c.x);
  const auto* weight = static_cast<const W*>(c.weight);
  auto* y = static_cast<Y*>(c.y);
  if constexpr (std::is_void_v<R>)
    return rms_norm::forward(x, given(c.x_layout), weight, y, given(c.y_layout), c.rows, c.cols, given(c.options),
                             stream);
  else
    return rms_norm::forward_add(x, given(c.x_layout), static_cast<const R*>(c.residual), given(c.residual_layout),
                                 static_cast<R*>(c.residual_out), given(c.residual_out_layout), weight, y,
                                 given(c.y_layout), c.rows, c.cols, given(c.options), stream);
}

template <class X, class R, class W, class Y>
struct Added {
  Added() {
    ladder::TypedRmsNorm::Types types = {type_of<X>, type_of<W>, type_of<Y>};
    if constexpr (!std::is_void_v<R>) types.residual = type_of<R>;
    combinations().push_back({types, run<X, R, W, Y>});
  }
};

using bf16 = __nv_bfloat16;
using half = __half;

}  // namespace header_test
