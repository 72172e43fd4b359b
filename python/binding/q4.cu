// include/q4_gemm as functions of Python: weights in q4_0 are repacked and multiplied, and norms end in quantized
// numbers. An array of shape (..., k) is the header's columns of k numbers. What is refused raises TypeError or
// ValueError with a sentence.
#include <tvm/ffi/function.h>

#include <string>

#include "q4_arrays.h"
#include "q4_call.h"
#include "stream.h"

namespace rms_norm_binding {

ProductInstance& product_instance(Type type) {
  static ProductInstance all[kTypes];
  return all[type];
}

namespace {

// Raises what the launch returned, or why it was refused. What the header says of y is said of Python's out.
template <class Explain>
void check_or_explain(cudaError_t error, const Explain& explain) {
  const char* const refusal = error == cudaErrorInvalidValue ? explain() : nullptr;
  if (refusal == nullptr) return check(error);
  const std::string sentence = refusal;
  TVM_FFI_THROW(ValueError) << (sentence.rfind("y ", 0) == 0 ? "out" + sentence.substr(1) : sentence);
}

DLDataTypeCode code_of(bool bits) { return bits ? kDLUInt : kDLBfloat; }  // as in binding.cu

void repack(DLTensor* blocks_given, DLTensor* packed_given) {
  const Array blocks{"blocks", blocks_given}, packed{"packed", packed_given};
  if (!is_bytes(blocks) || blocks.tensor->ndim != 2 || blocks.cols() % q4_gemm::kBlockBytes != 0)
    TVM_FFI_THROW(ValueError) << "blocks has the shape " << blocks.shape() << " and elements of type "
                              << name_of(blocks.tensor->dtype)
                              << "; (m, k / 32 * 18) of uint8 is wanted, as gguf stores q4_0";
  check_place(blocks, blocks);
  const int64_t m = blocks.tensor->shape[0], k = blocks.cols() / q4_gemm::kBlockBytes * q4_gemm::kBlock;
  if (m > 1 && blocks.stride(0) != blocks.cols())
    TVM_FFI_THROW(ValueError) << "the rows of blocks do not follow each other without gaps; make a contiguous copy "
                                 "first";
  const CurrentDevice device(blocks.tensor->device.device_id);
  void* const to = bytes_of(packed, q4_gemm::packed_size(m, k), blocks);
  check_or_explain(q4_gemm::repack(blocks.data(), to, m, k, stream_of(blocks.tensor->device)),
                   [&] { return q4_gemm::explain_repack(blocks.data(), to, m, k); });
}

// x is bytes, if it is quantized, of n columns.
void multiply(DLTensor* packed_given, int64_t m, int64_t k, DLTensor* x_given, bool is_quantized, Given bias_given,
              DLTensor* y_given, Given workspace_given, bool dependent_launch, bool batch_invariant, bool bits) {
  const Array packed{"weights", packed_given}, x{"x", x_given}, y{"out", y_given};
  const Array bias{"bias", tensor_of(bias_given)}, workspace{"workspace", tensor_of(workspace_given)};
  const Columns to = columns_of(y);
  Product p{bytes_of(packed, q4_gemm::packed_size(m, k), y)};
  p.is_quantized = is_quantized, p.y = y.data(), p.m = m, p.n = to.n, p.k = k;
  p.options.y_stride = to.stride;
  p.options.dependent_launch = dependent_launch, p.options.batch_invariant = batch_invariant;
  check_place(y, y);
  const Type type = type_of(y, code_of(bits));
  if (y.cols() != m) TVM_FFI_THROW(ValueError) << "out has the shape " << y.shape() << "; (..., " << m << ") is wanted";
  if (is_quantized) {
    p.x = bytes_of(x, q4_gemm::quantized_size(to.n, k), y);
  } else {
    const Columns from = columns_of(x);
    check_same_shape(x, y, y.last());
    if (x.cols() != k) TVM_FFI_THROW(ValueError) << "x has the shape " << x.shape() << "; (..., " << k << ") is wanted";
    if (type_of(x, code_of(bits)) != type)
      TVM_FFI_THROW(TypeError) << "x is " << name_of(type_of(x, code_of(bits))) << " and out is " << name_of(type)
                               << "; they must have the same type, or x be quantized";
    p.x = x.data(), p.options.x_stride = from.stride;
  }
  if (bias.tensor != nullptr) {
    check_weight(bias, y);
    if (type_of(bias, code_of(bits)) != type)
      TVM_FFI_THROW(TypeError) << "bias is " << name_of(type_of(bias, code_of(bits))) << " and out is " << name_of(type)
                               << "; they must have the same type";
    p.bias = bias.data();
  }
  if (workspace.tensor != nullptr) p.options.workspace = bytes_of(workspace, q4_gemm::workspace_size(p.m, p.n, p.k), y);
  const ProductInstance run = product_instance(type);
  if (run == nullptr)
    TVM_FFI_THROW(TypeError) << "this build has no products of " << name_of(type)
                             << "; RMS_NORM_TYPES=usual builds those of all types";
  const CurrentDevice device(y.tensor->device.device_id);
  const char* refusal = nullptr;
  const cudaError_t error = run(p, stream_of(y.tensor->device), &refusal);
  check_or_explain(error, [&] { return refusal; });
}

void quantize(DLTensor* x_given, DLTensor* quantized_given, bool dependent_launch, bool bits) {
  const Array x{"x", x_given}, quantized{"quantized", quantized_given};
  const Columns from = columns_of(x);
  check_place(x, x);
  void* const to = bytes_of(quantized, q4_gemm::quantized_size(from.n, x.cols()), x);
  q4_gemm::Options options;
  options.x_stride = from.stride, options.dependent_launch = dependent_launch;
  const CurrentDevice device(x.tensor->device.device_id);
  with_type(type_of(x, code_of(bits)), [&](auto type) {
    const auto* const data = static_cast<const decltype(type)*>(x.data());
    check_or_explain(q4_gemm::quantize(data, to, from.n, x.cols(), options, stream_of(x.tensor->device)),
                     [&] { return q4_gemm::explain_quantize(data, to, from.n, x.cols(), options); });
  });
}

// The weight has the type of x or is float32, and so is the residual.
void norm_quantize(DLTensor* x_given, Given residual_given, Given residual_out_given, Given weight_given,
                   DLTensor* quantized_given, double eps, double weight_offset, bool dependent_launch, bool bits) {
  const Array x{"x", x_given}, weight{"weight", tensor_of(weight_given)}, quantized{"quantized", quantized_given};
  const Array residual{"residual", tensor_of(residual_given)};
  const Array residual_out{"residual_out", tensor_of(residual_out_given)};
  const Columns from = columns_of(x);
  const int64_t n = from.n, k = x.cols();
  check_place(x, x), check_weight(weight, x);
  void* const to = bytes_of(quantized, q4_gemm::quantized_size(n, k), x);
  q4_gemm::NormOptions options;
  options.eps = static_cast<float>(eps), options.weight_offset = static_cast<float>(weight_offset);
  options.dependent_launch = dependent_launch, options.x_stride = from.stride;
  const Type x_type = type_of(x, code_of(bits));
  const auto checked = [&](const Array& a) {
    const Type type = type_of(a, code_of(bits));
    if (type != kNone && type != x_type && type != kFloat32)
      TVM_FFI_THROW(TypeError) << a.name << " is " << name_of(type) << " and x is " << name_of(x_type) << "; " << a.name
                               << " must have the type of x or be float32";
    return type;
  };
  const bool wide_weight = checked(weight) == kFloat32, wide_residual = checked(residual) == kFloat32;
  if (residual.tensor != nullptr) {
    check_same_shape(residual, x, x.tensor->ndim), check_same_shape(residual_out, x, x.tensor->ndim);
    if (type_of(residual_out, code_of(bits)) != type_of(residual, code_of(bits)))
      TVM_FFI_THROW(TypeError) << "residual and residual_out must have the same type";
    options.residual_stride = columns_of(residual).stride;
    options.residual_out_stride = columns_of(residual_out).stride;
  }
  const CurrentDevice device(x.tensor->device.device_id);
  const cudaStream_t stream = stream_of(x.tensor->device);
  const auto run = [&](auto x_element, auto residual_element, auto weight_element) {
    const auto* const data = static_cast<const decltype(x_element)*>(x.data());
    const auto* const factors = static_cast<const decltype(weight_element)*>(weight.data());
    if (residual.tensor == nullptr)
      return check_or_explain(q4_gemm::rms_norm_quantize(data, factors, to, n, k, options, stream),
                              [&] { return q4_gemm::explain_norm(data, factors, to, n, k, options); });
    using R = decltype(residual_element);
    const R* const addend = static_cast<const R*>(residual.data());
    R* const sum = static_cast<R*>(residual_out.data());
    check_or_explain(q4_gemm::add_rms_norm_quantize(data, addend, sum, factors, to, n, k, options, stream),
                     [&] { return q4_gemm::explain_norm(data, addend, sum, factors, to, n, k, options); });
  };
  with_type(x_type, [&](auto x_element) {
    const auto with_residual = [&](auto residual_element) {
      return wide_weight ? run(x_element, residual_element, float32{}) : run(x_element, residual_element, x_element);
    };
    return wide_residual ? with_residual(float32{}) : with_residual(x_element);
  });
}

int64_t packed_size(int64_t m, int64_t k) { return static_cast<int64_t>(q4_gemm::packed_size(m, k)); }
int64_t workspace_size(int64_t m, int64_t n, int64_t k) {
  return static_cast<int64_t>(q4_gemm::workspace_size(m, n, k));
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(q4_repack, repack)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(q4_multiply, multiply)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(q4_quantize, quantize)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(q4_norm, norm_quantize)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(q4_packed_size, packed_size)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(q4_workspace_size, workspace_size)

}  // namespace rms_norm_binding
