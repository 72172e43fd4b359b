// The gradients as a function of Python, for the mixtures of types whose norms are compiled; and the norm that stores
// each row's rstd for them.
#include <tvm/ffi/function.h>

#include "arrays.h"
#include "gradients_call.h"
#include "stream.h"

namespace rms_norm_binding {

GradientsInstance& gradients_instance(Type x, Type weight, Type y, bool reads_rstd) {
  static GradientsInstance all[2][kTypes][kTypes][kTypes];
  return all[reads_rstd][x][weight][y];
}

namespace {

// As norm(). rstd is float32 and dense; the rows must be walked in the order of x's dimensions, as they are if the
// arrays are dense.
void norm_with_rstd(DLTensor* x, Given residual, Given residual_out, Given weight, DLTensor* y, DLTensor* rstd,
                    double eps, double weight_offset, bool llama, bool dependent_launch, int cache,
                    bool batch_invariant) {
  Arrays arrays = {x, tensor_of(residual), tensor_of(residual_out), tensor_of(weight), y};
  arrays.rstd = static_cast<float*>(Array{"rstd", rstd}.data());
  norm(arrays, options_of(eps, weight_offset, llama, dependent_launch, cache, batch_invariant), stream_of(x->device));
}

// dx, and dweight unless it is None, for the norm of x, whose rows' rstd may be None.
void backward(DLTensor* dy_given, Given dsum_given, DLTensor* x_given, Given weight_given, Given rstd,
              DLTensor* dx_given, Given dweight_given, Given workspace_given, double eps, double weight_offset) {
  const Array dy{"dy", dy_given}, dsum{"dsum", tensor_of(dsum_given)}, x{"x", x_given}, dx{"dx", dx_given};
  const Array weight{"weight", tensor_of(weight_given)}, dweight{"dweight", tensor_of(dweight_given)};
  const Array workspace{"workspace", tensor_of(workspace_given)};
  GradientsCall call;
  call.rows = find_rows({x, dy, dx, dsum}, {&call.x, &call.dy, &call.dx, &call.dsum});
  if (dsum.tensor == nullptr) call.dsum.layout = call.x.layout;
  check_weight(weight, x), check_weight(dweight, x);
  if (type_of(dx) != type_of(x) || (dsum.tensor && type_of(dsum) != type_of(x)) ||
      (dweight.tensor && weight.tensor && type_of(dweight) != type_of(weight)))
    TVM_FFI_THROW(TypeError) << "dx and dsum must have the type of x, and dweight that of weight";
  const Type types[] = {type_of(x), type_of(weight.tensor ? weight : dy), type_of(dy)};
  call.rstd = static_cast<const float*>(Array{"rstd", tensor_of(rstd)}.data());
  const GradientsInstance run = gradients_instance(types[0], types[1], types[2], call.rstd != nullptr);
  if (run == nullptr)
    TVM_FFI_THROW(TypeError) << "gradients of x in " << name_of(types[0]) << ", weight in " << name_of(types[1])
                             << " and a result in " << name_of(types[2])
                             << " are not among those that this build has; build it with RMS_NORM_TYPES=all";
  call.weight = weight.data(), call.dweight = dweight.data(), call.workspace = workspace.data();
  call.cols = x.cols();
  call.options.eps = static_cast<float>(eps), call.options.weight_offset = static_cast<float>(weight_offset);
  const CurrentDevice device(x.tensor->device.device_id);
  const char* refusal = nullptr;
  const cudaError_t error = run(call, stream_of(x.tensor->device), &refusal);
  if (refusal != nullptr) TVM_FFI_THROW(ValueError) << refusal;
  check(error);
}
int64_t workspace_bytes(int64_t rows, int64_t cols) {
  return static_cast<int64_t>(rms_norm::backward_workspace_bytes(rows, cols));
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(norm_with_rstd, norm_with_rstd)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(backward, backward)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(backward_workspace_bytes, workspace_bytes)

}  // namespace rms_norm_binding
