// The gradients as a function of Python, for every mixture of types: their kernels are small.
#include <tvm/ffi/function.h>

#include <rms_norm/backward.cuh>

#include "arrays.h"
#include "stream.h"

namespace rms_norm_binding {
namespace {

// dx, and dweight unless it is None, for the norm of x.
void backward(DLTensor* dy_given, Given dsum_given, DLTensor* x_given, Given weight_given, DLTensor* dx_given,
              Given dweight_given, Given workspace_given, double eps, double weight_offset) {
  const Array dy{"dy", dy_given}, dsum{"dsum", tensor_of(dsum_given)}, x{"x", x_given}, dx{"dx", dx_given};
  const Array weight{"weight", tensor_of(weight_given)}, dweight{"dweight", tensor_of(dweight_given)};
  const Array workspace{"workspace", tensor_of(workspace_given)};
  Tensor dy_rows{}, dsum_rows{}, x_rows{}, dx_rows{};
  const int64_t rows = find_rows({x, dy, dx, dsum}, {&x_rows, &dy_rows, &dx_rows, &dsum_rows});
  if (dsum.tensor == nullptr) dsum_rows.layout = x_rows.layout;
  check_weight(weight, x), check_weight(dweight, x);
  if (type_of(dx) != type_of(x) || (dsum.tensor && type_of(dsum) != type_of(x)) ||
      (dweight.tensor && weight.tensor && type_of(dweight) != type_of(weight)))
    TVM_FFI_THROW(TypeError) << "dx and dsum must have the type of x, and dweight that of weight";
  rms_norm::Options options;
  options.eps = static_cast<float>(eps), options.weight_offset = static_cast<float>(weight_offset);

  const auto call = [&](auto x_type, auto weight_type, auto y_type) {
    using X = decltype(x_type);
    using W = decltype(weight_type);
    using Y = decltype(y_type);
    const auto with_arguments = [&](const auto& function) {
      return function(of_type<const Y>(dy_rows), of_type<const X>(dsum_rows), of_type<const X>(x_rows),
                      static_cast<const W*>(weight.data()), of_type<X>(dx_rows), static_cast<W*>(dweight.data()),
                      workspace.data(), rows, x.cols(), options);
    };
    const auto explain = [](const auto&... arguments) { return rms_norm::explain_backward(arguments...); };
    if (const char* refusal = with_arguments(explain)) TVM_FFI_THROW(ValueError) << refusal;
    const CurrentDevice device(x.tensor->device.device_id);
    const cudaStream_t stream = stream_of(x.tensor->device);
    return with_arguments([&](const auto&... arguments) { return rms_norm::backward(arguments..., stream); });
  };
  check(with_type(type_of(x), [&](auto x_type) {
    return with_type(type_of(weight.tensor ? weight : x), [&](auto weight_type) {
      return with_type(type_of(dy), [&](auto y_type) { return call(x_type, weight_type, y_type); });
    });
  }));
}
int64_t workspace_bytes(int64_t rows, int64_t cols) {
  return static_cast<int64_t>(rms_norm::backward_workspace_bytes(rows, cols));
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(backward, backward)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(backward_workspace_bytes, workspace_bytes)

}  // namespace rms_norm_binding
