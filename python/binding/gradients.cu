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

// The memory of rstd, of which each row of a tensor has one; nullptr for None. find_rows() walks rows in the order in
// which this tensor lies in memory, so that must be the order of its dimensions.
float* rstd_of(const DLTensor* given, const Array& walked) {
  const Array rstd{"rstd", given};
  if (rstd.tensor == nullptr) return nullptr;
  check_contiguous(walked), check_contiguous(rstd), check_place(rstd, walked);
  if (type_of(rstd) != kFloat32) TVM_FFI_THROW(TypeError) << "rstd is " << name_of(type_of(rstd)) << ", not float32";
  const int64_t* const shape = walked.tensor->shape;
  if (rstd.tensor->ndim != walked.last() || !std::equal(shape, shape + walked.last(), rstd.tensor->shape))
    TVM_FFI_THROW(ValueError) << "rstd has the shape " << rstd.shape() << ", and " << walked.name << " has the shape "
                              << walked.shape() << "; the same without the last dimension is wanted";
  return static_cast<float*>(rstd.data());
}

// As norm(), with the memory of each row's rstd.
void norm_with_rstd(DLTensor* x, Given residual, Given residual_out, Given weight, DLTensor* y, DLTensor* rstd,
                    double eps, double weight_offset, bool llama, bool dependent_launch, int cache,
                    bool batch_invariant) {
  Arrays arrays = {x, tensor_of(residual), tensor_of(residual_out), tensor_of(weight), y};
  arrays.rstd = rstd_of(rstd, {"out", y});
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
  call.rstd = rstd_of(tensor_of(rstd), dy);
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
