// The gradients, for every mixture of types: their kernels are small.
#include <rms_norm/backward.cuh>

#include "instances.h"
#include "types.cuh"

namespace rms_norm_binding {
namespace {

// function(arguments of the header's functions...), with their types.
template <class X, class W, class Y, class Function>
auto with_arguments(const BackwardCall& c, const Function& function) {
  ::rms_norm::Options options;
  options.eps = c.eps;
  options.weight_offset = c.weight_offset;
  return function(tensor_of<const Y>(c.dy), tensor_of<const X>(c.dsum), tensor_of<const X>(c.x),
                  static_cast<const W*>(c.weight), tensor_of<X>(c.dx), static_cast<W*>(c.dweight), c.workspace, c.rows,
                  c.cols, options);
}
template <class X, class W, class Y>
const char* explain(const BackwardCall& c) {
  return with_arguments<X, W, Y>(c,
                                 [](const auto&... arguments) { return ::rms_norm::explain_backward(arguments...); });
}
template <class X, class W, class Y>
cudaError_t run(const BackwardCall& c, cudaStream_t stream) {
  return with_arguments<X, W, Y>(c,
                                 [&](const auto&... arguments) { return ::rms_norm::backward(arguments..., stream); });
}

template <class X, class W>
constexpr BackwardInstance of_y[] = {{explain<X, W, float32>, run<X, W, float32>},
                                     {explain<X, W, float16>, run<X, W, float16>},
                                     {explain<X, W, bfloat16>, run<X, W, bfloat16>}};
template <class X>
constexpr const BackwardInstance* of_weight_and_y[] = {of_y<X, float32>, of_y<X, float16>, of_y<X, bfloat16>};

}  // namespace

const BackwardInstance& backward_instance(Type x, Type weight, Type y) {
  const auto* const of_x = x == kFloat32   ? of_weight_and_y<float32>
                           : x == kFloat16 ? of_weight_and_y<float16>
                                           : of_weight_and_y<bfloat16>;
  return of_x[weight][y];
}

size_t backward_workspace_bytes(int64_t rows, int64_t cols) { return ::rms_norm::backward_workspace_bytes(rows, cols); }

}  // namespace rms_norm_binding
