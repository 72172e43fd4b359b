// The norms that end in 8 bits as a function of Python. Numbers of 8 bits come in as bytes, since not every library
// lets DLPack describe float8.
#include <tvm/ffi/function.h>

#include <functional>
#include <numeric>

#include "arrays.h"
#include "quantized_call.h"
#include "stream.h"

namespace rms_norm_binding {

QuantizedInstance& quantized_instance(Type x, bool adds, Code code) {
  static QuantizedInstance all[kTypes][2][kCodes];
  return all[x][adds][code];
}

namespace {

constexpr const char* kNamesOfCodes[] = {"float8_e4m3fn", "float8_e5m2", "int8"};

int64_t count_of(const Array& a) {
  return std::accumulate(a.tensor->shape, a.tensor->shape + a.tensor->ndim, int64_t{1}, std::multiplies<>());
}
void check_floats(const Array& a, const Array& x) {
  const DLDataType type = a.tensor->dtype;
  if (type.lanes != 1 || type.code != kDLFloat || type.bits != 32)
    TVM_FFI_THROW(TypeError) << a.name << " has elements of type " << name_of(type) << "; float32 is known";
  if (a.data() == nullptr && count_of(a) > 0)
    TVM_FFI_THROW(ValueError) << a.name << " has no memory, as a fake tensor or a DTensor of PyTorch has none";
  if (a.tensor->device.device_type != x.tensor->device.device_type ||
      a.tensor->device.device_id != x.tensor->device.device_id)
    TVM_FFI_THROW(ValueError) << a.name << " and " << x.name << " lie on different devices; move one of them";
}
// Rows are walked in the order that out has in memory, and scales are in that of the dimensions.
bool is_transposed(const Array& a) {
  int64_t outer = INT64_MAX;
  for (int i = 0; i < a.last(); ++i) {
    if (a.tensor->shape[i] <= 1) continue;
    if (std::abs(a.stride(i)) > outer) return true;
    outer = std::abs(a.stride(i));
  }
  return false;
}
const float* number(const Array& a, const Array& x) {
  if (a.tensor == nullptr) return nullptr;
  if (count_of(a) != 1)
    TVM_FFI_THROW(ValueError) << a.name << " has the shape " << a.shape() << "; it must be one number";
  check_floats(a, x);
  return static_cast<const float*>(a.data());
}

template <DLDataTypeCode kBFloat16Code>
void quantized(DLTensor* x_given, Given residual_given, Given residual_out_given, Given weight_given, DLTensor* q_given,
               Given y_given, Given scale_given, Given scales_given, Given upper_bound_given, int code, int64_t block,
               double eps, double weight_offset, bool llama, bool dependent_launch, int cache, bool batch_invariant) {
  const Array x{"x", x_given}, residual{"residual", tensor_of(residual_given)},
      weight{"weight", tensor_of(weight_given)};
  const Array residual_out{"residual_out", tensor_of(residual_out_given)}, q{"out", q_given},
      y{"y", tensor_of(y_given)};
  const Array scale{"scale", tensor_of(scale_given)}, scales{"scales", tensor_of(scales_given)};
  const Array upper_bound{"upper_bound", tensor_of(upper_bound_given)};
  QuantizedCall call;
  call.rows =
      find_rows({x, q, residual, residual_out, y}, {&call.x, &call.q, &call.residual, &call.residual_out, &call.y});
  check_weight(weight, x);
  const auto type = [&](const Array& a) { return type_of(a, kBFloat16Code); };
  const Type own = type(x);
  for (const Array* a : {&residual, &residual_out, &weight, &y})
    if (a->tensor != nullptr && type(*a) != own)
      TVM_FFI_THROW(TypeError) << a->name << " is " << name_of(type(*a)) << " and x is " << name_of(own)
                               << "; a norm that ends in 8 bits takes arrays of one type";
  const QuantizedInstance run = quantized_instance(own, residual.tensor != nullptr, static_cast<Code>(code));
  if (run == nullptr)
    TVM_FFI_THROW(TypeError) << "norms of " << name_of(own) << " that end in " << kNamesOfCodes[code]
                             << " are not among those that this build has; build it with RMS_NORM_TYPES="
                             << (code == kE5m2 ? "all" : "usual or all");
  call.how.scale = number(scale, x), call.how.upper_bound = number(upper_bound, x), call.how.block = block;
  if (scales.tensor != nullptr) {
    check_floats(scales, x);
    if (call.rows == 0) return;  // PyTorch's empty scales are nullptr, which would mean that there are none
    if (is_transposed(q))
      TVM_FFI_THROW(ValueError) << "the leading dimensions of out are transposed, and scales are found in their order; "
                                   "give an out that is not";
    call.how.scales = static_cast<float*>(scales.data());
    const int64_t row = row_stride(scales), column = scales.stride(scales.last());
    const bool by_columns = block != 0 && scales.cols() > 1 && column != 1;
    if (by_columns && call.rows > 1 && row != 1)
      TVM_FFI_THROW(ValueError) << "scales has the strides " << row << " and " << column << "; one of them must be 1";
    call.how.order = by_columns ? rms_norm::Scales::column_major : rms_norm::Scales::row_major;
    call.how.pitch = by_columns ? column : row;
    if (call.how.pitch == 0 &&
        (by_columns ? scales.cols() : call.rows) > 1)  // the header has a meaning of its own for 0
      TVM_FFI_THROW(ValueError)
          << "scales is expanded: several of its elements are one; give an array of its own memory";
  }
  call.weight = weight.data();
  call.cols = x.cols();
  call.names = {"x", "residual", "residual_out", "weight", "y", "out"};
  if (are_same(residual.tensor, residual_out.tensor)) call.names.residual_out = "residual";
  call.options = options_of(eps, weight_offset, llama, dependent_launch, cache, batch_invariant);
  const CurrentDevice device(x.tensor->device.device_id);
  const char* refusal = nullptr;
  const cudaError_t error = run(call, stream_of(x.tensor->device), &refusal);
  if (refusal != nullptr) TVM_FFI_THROW(ValueError) << refusal;
  check(error);
}

}  // namespace

// As norm and norm_of_numpy: NumPy's bfloat16 comes as unsigned integers.
TVM_FFI_DLL_EXPORT_TYPED_FUNC(quantized, quantized<kDLBfloat>)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(quantized_of_numpy, quantized<kDLUInt>)

}  // namespace rms_norm_binding
