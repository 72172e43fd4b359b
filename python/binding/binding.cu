// The header as a function of Python, through apache-tvm-ffi: arrays of any library come in through DLPack, and the
// kernels go to the stream that the caller uses. What is refused raises TypeError or ValueError with a sentence.
#include <tvm/ffi/function.h>

#include <regex>
#include <string>

#include "norm.h"
#include "stream.h"
#include "workspace.h"

namespace rms_norm_binding {

Instance& instance(Type x, Type residual, Type weight, Type y) {
  static Instance all[kTypes][kTypes + 1][kTypes][kTypes];
  return all[x][residual][weight][y];
}

void norm(const Tensors& tensors, rms_norm::Options options, cudaStream_t stream, DLDataTypeCode bfloat16_code) {
  const Array x("x", tensors.x), residual("residual", tensors.residual), weight("weight", tensors.weight);
  const Array residual_out("residual_out", tensors.residual_out), y("out", tensors.y);
  Call call;
  call.rows = find_rows({x, y, residual, residual_out}, {&call.x, &call.y, &call.residual, &call.residual_out});
  check_weight(weight, x);
  const auto type = [&](const Array& a) { return type_of(a, bfloat16_code); };
  const Type types[] = {type(x), type(residual), type(weight.tensor ? weight : y), type(y)};
  const Type sum = type(residual_out);
  if (sum != types[1])
    TVM_FFI_THROW(TypeError) << "residual is " << name_of(types[1]) << " and residual_out is " << name_of(sum)
                             << "; they must have the same type";
  const Instance run = instance(types[0], types[1], types[2], types[3]);
  if (run == nullptr)
    TVM_FFI_THROW(TypeError) << "x in " << name_of(types[0]) << ", "
                             << (residual.tensor ? std::string("residual in ") + name_of(types[1]) + ", " : "")
                             << "weight in " << name_of(types[2]) << " and out in " << name_of(types[3])
                             << " are not among the types that this build has; build it with RMS_NORM_TYPES=all";
  call.weight = weight.data();
  call.cols = x.cols();
  call.options = options;
  const CurrentDevice device(x.tensor->device.device_id);
  if (rms_norm::detail::may_use_workspace(call.rows, call.cols * (types[0] == kFloat32 ? 4 : 2)))
    check(find_workspace(stream, &call.options.workspace));
  const char* refusal = nullptr;
  const cudaError_t error = run(call, stream, &refusal);
  if (refusal != nullptr)  // a sentence, in which y needs the name that it has in Python
    TVM_FFI_THROW(ValueError) << std::regex_replace(refusal, std::regex("\\by\\b"), "out");
  check(error);
}

namespace {

template <DLDataTypeCode kBFloat16Code>
void norm_of_python(DLTensor* x, Given residual, Given residual_out, Given weight, DLTensor* y, double eps,
                    double weight_offset, bool llama, bool dependent_launch, int cache) {
  rms_norm::Options options;
  options.eps = static_cast<float>(eps), options.weight_offset = static_cast<float>(weight_offset);
  options.rounding = llama ? rms_norm::Rounding::llama : rms_norm::Rounding::gemma;
  options.dependent_launch = dependent_launch, options.cache = static_cast<rms_norm::Cache>(cache);
  const Tensors tensors = {x, tensor_of(residual), tensor_of(residual_out), tensor_of(weight), y};
  norm(tensors, options, stream_of(x->device), kBFloat16Code);
}

// Waits for what was launched on the stream of x's device.
void synchronize(DLTensor* x) {
  const CurrentDevice device(x->device.device_id);
  check(cudaStreamSynchronize(stream_of(x->device)));
}

}  // namespace

// NumPy's bfloat16, that of ml_dtypes, is not known to DLPack: Python hands over its bits as unsigned integers.
TVM_FFI_DLL_EXPORT_TYPED_FUNC(norm, norm_of_python<kDLBfloat>)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(norm_of_numpy, norm_of_python<kDLUInt>)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(synchronize, synchronize)

}  // namespace rms_norm_binding
