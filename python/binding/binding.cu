// The header as a function of Python, through apache-tvm-ffi: arrays of any library come in through DLPack, and the
// kernels go to the stream that the caller uses. What is refused raises TypeError or ValueError with a sentence.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <string>
#include <vector>

#include "arrays.h"
#include "stream.h"

namespace rms_norm_binding {

Instance& instance(Type x, Type residual, Type weight, Type y, bool stores_rstd) {
  static Instance all[2][kTypes][kTypes + 1][kTypes][kTypes];
  return all[stores_rstd][x][residual][weight][y];
}

void norm(const Arrays& arrays, rms_norm::Options options, cudaStream_t stream, DLDataTypeCode bfloat16_code) {
  // A result of the fused call that overwrites an array is called as that is, which the caller has given.
  rms_norm::Names names = arrays.names;
  if (arrays.residual != nullptr && are_same(arrays.y, arrays.x)) names.y = names.x;
  if (are_same(arrays.residual_out, arrays.residual)) names.residual_out = names.residual;
  const Array x{names.x, arrays.x}, weight{names.weight, arrays.weight}, y{names.y, arrays.y};
  const Array residual{names.residual, arrays.residual}, residual_out{names.residual_out, arrays.residual_out};
  Call call;
  call.rows = find_rows({x, y, residual, residual_out}, {&call.x, &call.y, &call.residual, &call.residual_out});
  check_weight(weight, x);
  const auto type = [&](const Array& a) { return type_of(a, bfloat16_code); };
  const Type types[] = {type(x), type(residual), type(weight.tensor ? weight : y), type(y)};
  const Type sum = type(residual_out);
  if (sum != types[1])
    TVM_FFI_THROW(TypeError) << "residual is " << name_of(types[1]) << " and residual_out is " << name_of(sum)
                             << "; they must have the same type";
  const Instance run = instance(types[0], types[1], types[2], types[3], arrays.rstd != nullptr);
  if (run == nullptr)
    TVM_FFI_THROW(TypeError) << x.name << " in " << name_of(types[0]) << ", "
                             << (residual.tensor ? std::string("residual in ") + name_of(types[1]) + ", " : "")
                             << weight.name << " in " << name_of(types[2]) << " and " << y.name << " in "
                             << name_of(types[3])
                             << " are not among the types that this build has; build it with RMS_NORM_TYPES=all";
  call.weight = weight.data(), call.rstd = arrays.rstd;
  call.cols = x.cols();
  call.options = options;
  call.names = names;
  const CurrentDevice device(x.tensor->device.device_id);
  Workspace workspace;
  if (rms_norm::detail::may_use_workspace(call.rows, call.cols * (types[0] == kFloat32 ? 4 : 2)))
    check(workspace.find(stream));
  call.options.workspace = workspace.memory;
  const char* refusal = nullptr;
  const cudaError_t error = run(call, stream, &refusal);
  if (refusal != nullptr) TVM_FFI_THROW(ValueError) << refusal;
  check(error);
}

namespace {

// The names are what sentences call x, residual, residual_out, weight and out, if not that.
using GivenNames = tvm::ffi::Optional<tvm::ffi::Array<tvm::ffi::String>>;

template <DLDataTypeCode kBFloat16Code>
void norm_of_python(DLTensor* x, Given residual, Given residual_out, Given weight, DLTensor* y, double eps,
                    double weight_offset, bool llama, bool dependent_launch, int cache, bool batch_invariant,
                    GivenNames names) {
  Arrays arrays = {x, tensor_of(residual), tensor_of(residual_out), tensor_of(weight), y};
  std::vector<tvm::ffi::String> called;
  if (names.has_value()) {
    called.assign(names.value().begin(), names.value().end());
    arrays.names = {called.at(0).c_str(), called.at(1).c_str(), called.at(2).c_str(), called.at(3).c_str(),
                    called.at(4).c_str()};
  }
  norm(arrays, options_of(eps, weight_offset, llama, dependent_launch, cache, batch_invariant), stream_of(x->device),
       kBFloat16Code);
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
