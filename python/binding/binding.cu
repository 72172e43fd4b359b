// The header as a function of Python, through apache-tvm-ffi: arrays of any library come in through DLPack, and the
// kernels go to the stream that the caller uses. What is refused raises TypeError or ValueError with a sentence.
#include <tvm/ffi/function.h>

#include <regex>
#include <string>

#include "arrays.h"
#include "stream.h"
#include "workspace.h"

namespace rms_norm_binding {

Instance& instance(Type x, Type residual, Type weight, Type y) {
  static Instance all[kTypes][kTypes + 1][kTypes][kTypes];
  return all[x][residual][weight][y];
}

namespace {

// y = the norm of x, or with a residual of residual_out = x + residual.
template <DLDataTypeCode kBFloat16Code>
void norm(DLTensor* x_given, Given residual_given, Given residual_out_given, Given weight_given, DLTensor* y_given,
          double eps, double weight_offset, bool llama, bool dependent_launch, int cache) {
  const Array x("x", x_given), residual("residual", residual_given), residual_out("residual_out", residual_out_given);
  const Array weight("weight", weight_given), y("out", y_given);
  Call call;
  call.rows = find_rows({x, y, residual, residual_out}, {&call.x, &call.y, &call.residual, &call.residual_out});
  check_weight(weight, x);
  const auto type = [](const Array& a) { return type_of(a, kBFloat16Code); };
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
  call.options.eps = static_cast<float>(eps), call.options.weight_offset = static_cast<float>(weight_offset);
  call.options.rounding = llama ? rms_norm::Rounding::llama : rms_norm::Rounding::gemma;
  call.options.dependent_launch = dependent_launch, call.options.cache = static_cast<rms_norm::Cache>(cache);
  const CurrentDevice device(x.tensor->device.device_id);
  const cudaStream_t stream = stream_of(x.tensor->device);
  if (call.rows > 0 && call.cols * (types[0] == kFloat32 ? 4 : 2) > rms_norm::detail::kSplitBytes)
    check(find_workspace(stream, &call.options.workspace));
  const char* refusal = nullptr;
  const cudaError_t error = run(call, stream, &refusal);
  if (refusal != nullptr)  // a sentence, in which y needs the name that it has in Python
    TVM_FFI_THROW(ValueError) << std::regex_replace(refusal, std::regex("\\by\\b"), "out");
  check(error);
}

// Waits for what was launched on the stream of x's device.
void synchronize(DLTensor* x) {
  const CurrentDevice device(x->device.device_id);
  check(cudaStreamSynchronize(stream_of(x->device)));
}

}  // namespace

// NumPy's bfloat16, that of ml_dtypes, is not known to DLPack: Python hands over its bits as unsigned integers.
TVM_FFI_DLL_EXPORT_TYPED_FUNC(norm, norm<kDLBfloat>)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(norm_of_numpy, norm<kDLUInt>)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(synchronize, synchronize)

}  // namespace rms_norm_binding
