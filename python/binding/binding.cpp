// The header as a function of Python, through apache-tvm-ffi: arrays of any library come in through DLPack, and the
// kernels go to the stream that the caller uses. What is refused raises TypeError or ValueError with a sentence.
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <sstream>
#include <string>

#include "arrays.h"
#include "instances.h"
#include "workspace.h"

namespace rms_norm_binding {
namespace {

// Makes a device the current one, for as long as it lives.
struct CurrentDevice {
  int device, before = 0;
  explicit CurrentDevice(int device) : device(device) {
    cudaGetDevice(&before);
    if (before != device) cudaSetDevice(device);
  }
  ~CurrentDevice() {
    if (before != device) cudaSetDevice(before);
  }
};
cudaStream_t stream_of(const DLDevice& device) {
  return static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
}
void check(cudaError_t error) {
  if (error != cudaSuccess) TVM_FFI_THROW(RuntimeError) << "the launch failed: " << cudaGetErrorString(error);
}

// The header's sentence, with the name that y has in Python.
std::string in_python(const std::string& sentence) {
  std::istringstream words(sentence);
  std::string result;
  for (std::string word; words >> word;) result += (result.empty() ? "" : " ") + (word == "y" ? "out" : word);
  return result;
}

// y = the norm of x, or with a residual of residual_out = x + residual.
void norm(DLTensor* x_given, Given residual_given, Given residual_out_given, Given weight_given, DLTensor* y_given,
          double eps, double weight_offset, bool llama, bool dependent_launch, int cache) {
  const Array x("x", x_given), residual("residual", residual_given), residual_out("residual_out", residual_out_given);
  const Array weight("weight", weight_given), y("out", y_given);
  Call call;
  call.rows = find_rows<4>({x, y, residual, residual_out}, {&call.x, &call.y, &call.residual, &call.residual_out});
  check_weight(weight, x);
  const Type types[] = {type_of(x), type_of(residual), type_of(weight.tensor ? weight : y), type_of(y)};
  if (type_of(residual) != type_of(residual_out))
    TVM_FFI_THROW(TypeError) << "residual is " << name_of(types[1]) << " and residual_out is "
                             << name_of(type_of(residual_out)) << "; they must have the same type";
  const Instance& functions = instance(types[0], types[1], types[2], types[3]);
  if (functions.run == nullptr)
    TVM_FFI_THROW(TypeError) << "x in " << name_of(types[0]) << ", "
                             << (residual.tensor ? std::string("residual in ") + name_of(types[1]) + ", " : "")
                             << "weight in " << name_of(types[2]) << " and out in " << name_of(types[3])
                             << " are not among the types that this build has; build it with RMS_NORM_TYPES=all";
  call.weight = weight.tensor ? weight.data() : nullptr;
  call.cols = x.cols();
  call.eps = static_cast<float>(eps), call.weight_offset = static_cast<float>(weight_offset);
  call.llama = llama, call.dependent_launch = dependent_launch, call.cache = cache;
  const CurrentDevice device(x.tensor->device.device_id);
  const cudaStream_t stream = stream_of(x.tensor->device);
  if (call.rows > 0 && call.cols * (types[0] == kFloat32 ? 4 : 2) >= kLongRowBytes)
    check(find_workspace(stream, &call.workspace));
  const cudaError_t error = functions.run(call, stream);
  if (error == cudaErrorInvalidValue)
    if (const char* reason = functions.explain(call)) TVM_FFI_THROW(ValueError) << in_python(reason);
  check(error);
}

// dx, and dweight unless it is None, for the norm of x.
void backward(DLTensor* dy_given, Given dsum_given, DLTensor* x_given, Given weight_given, DLTensor* dx_given,
              Given dweight_given, Given workspace_given, double eps, double weight_offset) {
  const Array dy("dy", dy_given), dsum("dsum", dsum_given), x("x", x_given), dx("dx", dx_given);
  const Array weight("weight", weight_given), dweight("dweight", dweight_given), workspace("", workspace_given);
  BackwardCall call;
  call.rows = find_rows<4>({x, dy, dx, dsum}, {&call.x, &call.dy, &call.dx, &call.dsum});
  if (dsum.tensor == nullptr) call.dsum = call.x, call.dsum.data = nullptr;
  check_weight(weight, x), check_weight(dweight, x);
  if (type_of(dx) != type_of(x) || (dsum.tensor && type_of(dsum) != type_of(x)) ||
      (dweight.tensor && weight.tensor && type_of(dweight) != type_of(weight)))
    TVM_FFI_THROW(TypeError) << "dx and dsum must have the type of x, and dweight that of weight";
  call.weight = weight.tensor ? weight.data() : nullptr;
  call.dweight = dweight.tensor ? dweight.data() : nullptr;
  call.workspace = workspace.tensor ? workspace.data() : nullptr;
  call.cols = x.cols(), call.eps = static_cast<float>(eps), call.weight_offset = static_cast<float>(weight_offset);
  const BackwardInstance& functions = backward_instance(type_of(x), type_of(weight.tensor ? weight : x), type_of(dy));
  if (const char* reason = functions.explain(call)) TVM_FFI_THROW(ValueError) << reason;
  const CurrentDevice device(x.tensor->device.device_id);
  check(functions.run(call, stream_of(x.tensor->device)));
}
int64_t workspace_bytes(int64_t rows, int64_t cols) {
  return static_cast<int64_t>(backward_workspace_bytes(rows, cols));
}

// Waits for what was launched on the stream of x's device.
void synchronize(DLTensor* x) {
  const CurrentDevice device(x->device.device_id);
  check(cudaStreamSynchronize(stream_of(x->device)));
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(norm, norm)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(synchronize, synchronize)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(backward, backward)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(backward_workspace_bytes, workspace_bytes)

}  // namespace rms_norm_binding
