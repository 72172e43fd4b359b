// Arrays that Python passes: what is wrong with them is raised as TypeError or ValueError with a sentence.
#pragma once
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/dtype.h>
#include <tvm/ffi/optional.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "call.h"

namespace rms_norm_binding {

#ifdef __SIMT__
constexpr DLDeviceType kDevice = kDLCPU;
constexpr const char* kDeviceName = "the CPU device, which takes arrays in host memory";
#else
constexpr DLDeviceType kDevice = kDLCUDA;
constexpr const char* kDeviceName = "NVIDIA GPUs";
#endif

// What Python passes: an array, or None.
using Given = tvm::ffi::Optional<DLTensor*>;
inline const DLTensor* tensor_of(const Given& given) { return given.has_value() ? given.value() : nullptr; }

struct Array {
  const char* name;
  const DLTensor* tensor;  // nullptr for None

  int last() const { return tensor->ndim - 1; }
  int64_t cols() const { return tensor->shape[last()]; }
  void* data() const { return tensor ? static_cast<char*>(tensor->data) + tensor->byte_offset : nullptr; }
  int64_t stride(int dimension) const { return tensor ? tensor->strides[dimension] : 0; }  // always given, by tvm-ffi
  std::string shape() const {
    std::ostringstream out;
    for (int i = 0; i < tensor->ndim; ++i) out << (i > 0 ? ", " : "") << tensor->shape[i];
    return "(" + out.str() + (tensor->ndim == 1 ? ",)" : ")");
  }
};

// Whether two tensors are one: neither None, with the same elements in the same order.
inline bool are_same(const DLTensor* a, const DLTensor* b) {
  return a != nullptr && b != nullptr && Array{"", a}.data() == Array{"", b}.data() && a->ndim == b->ndim &&
         std::equal(a->shape, a->shape + a->ndim, b->shape) && std::equal(a->strides, a->strides + a->ndim, b->strides);
}

// A type by its name. tvm-ffi throws for those that it has no name for, which must not happen while a sentence is made.
inline std::string name_of(const DLDataType& t) {
  if (t.lanes == 1 && t.code == kDLComplex) return "complex" + std::to_string(t.bits);
  if (t.lanes == 0) return "number " + std::to_string(t.code) + " of PyTorch's";
  try {
    return tvm::ffi::DLDataTypeToString(t);
  } catch (const tvm::ffi::Error&) {
    return "code " + std::to_string(t.code) + " of " + std::to_string(t.bits) + " bits";
  }
}

// The type of the elements; those of `bfloat16_code` with 16 bits are bfloat16.
inline Type type_of(const Array& a, DLDataTypeCode bfloat16_code = kDLBfloat) {
  if (a.tensor == nullptr) return kNone;
  const DLDataType t = a.tensor->dtype;
  const bool is_float = t.lanes == 1 && t.code == kDLFloat;
  if (is_float && t.bits == 32) return kFloat32;
  if (is_float && t.bits == 16) return kFloat16;
  if (t.lanes == 1 && t.bits == 16 && t.code == bfloat16_code) return kBFloat16;
  const std::string name = name_of(t);
  TVM_FFI_THROW(TypeError) << a.name << " has elements of type " << name << "; float32, float16 and bfloat16 are known";
  return kNone;
}
inline const char* name_of(Type type) {
  return type == kFloat32 ? "float32" : type == kFloat16 ? "float16" : type == kBFloat16 ? "bfloat16" : "none";
}

inline void check_place(const Array& a, const Array& x) {
  const DLDevice device = a.tensor->device, other = x.tensor->device;
  if (device.device_type != kDevice)
    TVM_FFI_THROW(ValueError) << a.name << " lies " << (device.device_type == kDLCPU ? "in host memory" : "on a GPU")
                              << ", and this build of rms_norm is for " << kDeviceName;
  if (device.device_id != other.device_id)
    TVM_FFI_THROW(ValueError) << a.name << " lies on GPU " << device.device_id << " and " << x.name << " on GPU "
                              << other.device_id << "; move one of them";
  const int64_t *const shape = a.tensor->shape, *const end = shape + a.tensor->ndim;
  if (std::find(shape, end, 0) == end && a.tensor->ndim > 0 && a.cols() > 1 && a.stride(a.last()) != 1)
    TVM_FFI_THROW(ValueError) << "the last dimension of " << a.name << " is not contiguous (its stride is "
                              << a.stride(a.last()) << " elements); make a contiguous copy first";
}

inline void check_contiguous(const Array& a) {
  int64_t stride = 1;
  for (int i = a.last(); i >= 0; stride *= a.tensor->shape[i--])
    if (a.tensor->shape[i] > 1 && a.stride(i) != stride)
      TVM_FFI_THROW(ValueError) << a.name << " is not contiguous; make a contiguous copy first";
}

inline void check_weight(const Array& weight, const Array& x) {
  if (weight.tensor == nullptr) return;
  check_place(weight, x);
  if (weight.data() == nullptr)  // which would mean that there is none
    TVM_FFI_THROW(ValueError) << weight.name << " has no memory, as a fake tensor or a DTensor of PyTorch has none";
  if (weight.tensor->ndim != 1 || weight.cols() != x.cols())
    TVM_FFI_THROW(ValueError) << weight.name << " has the shape " << weight.shape() << ", and " << x.name
                              << " has the shape " << x.shape() << "; (" << x.cols() << ",) is wanted";
}

// The leading dimensions of arrays of one shape, in any order, as rows, or as heads within rows. Two dimensions count
// as one if, in every array, a step in the outer one is as long as all steps in the inner one. The second array is
// written, so that its strides say which is the inner one. Returns how many rows there are.
template <size_t count_of_arrays>
int64_t find_rows(const Array (&arrays)[count_of_arrays], Tensor* const (&found)[count_of_arrays]) {
  const Array& x = arrays[0];
  if (x.tensor == nullptr || x.tensor->ndim == 0)
    TVM_FFI_THROW(ValueError) << x.name << " has no dimension; the last one is normalized";
  if (x.cols() == 0) TVM_FFI_THROW(ValueError) << "the last dimension of " << x.name << " is empty";
  for (const Array& a : arrays) {
    if (a.tensor == nullptr) continue;
    if (a.tensor->ndim != x.tensor->ndim ||
        !std::equal(x.tensor->shape, x.tensor->shape + x.tensor->ndim, a.tensor->shape))
      TVM_FFI_THROW(ValueError) << a.name << " has the shape " << a.shape() << ", and " << x.name << " has the shape "
                                << x.shape() << "; they must be the same";
    check_place(a, x);
  }
  int64_t rows = 1;
  std::vector<int> order;  // from the innermost one
  for (int i = x.last() - 1; i >= 0; --i) {
    rows *= x.tensor->shape[i];
    if (x.tensor->shape[i] > 1) order.push_back(i);
  }
  if (rows == 0) return 0;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return std::abs(arrays[1].stride(a)) < std::abs(arrays[1].stride(b)); });
  int64_t sizes[] = {1, 1}, strides[count_of_arrays][2] = {};  // of the joined dimensions
  int count = 0, before = 0;
  for (const int i : order) {
    const bool joins = count > 0 && std::all_of(std::begin(arrays), std::end(arrays), [&](const Array& a) {
                         return a.stride(i) == x.tensor->shape[before] * a.stride(before);
                       });
    if (!joins && ++count > 2)
      TVM_FFI_THROW(ValueError)
          << "the leading dimensions of the arrays of shape " << x.shape()
          << " cannot be walked with two strides, as the kernels do; make a contiguous copy first";
    sizes[count - 1] *= x.tensor->shape[i];
    before = i;
    if (!joins)
      for (size_t k = 0; k < count_of_arrays; ++k) strides[k][count - 1] = arrays[k].stride(i);
  }
  for (size_t k = 0; k < count_of_arrays; ++k) {
    found[k]->data = arrays[k].data();
    if (count == 1) found[k]->layout = {strides[k][0]};
    if (count == 2) found[k]->layout = {strides[k][1], sizes[0], strides[k][0]};
  }
  return rows;
}

// Elements from one of the leading dimensions' rows to the next, in the order of the dimensions.
inline int64_t row_stride(const Array& a) {
  int64_t stride = 0, count = 1;
  for (int i = a.last() - 1; i >= 0; --i) {
    const int64_t length = a.tensor->shape[i];
    if (length == 1) continue;
    if (count > 1 && a.stride(i) != count * stride)
      TVM_FFI_THROW(ValueError) << "the leading dimensions of " << a.name << ", of shape " << a.shape()
                                << ", cannot be walked with one stride, as the kernel does; make a contiguous copy "
                                   "first";
    if (count == 1) stride = a.stride(i);
    count *= length;
  }
  return stride;
}

// The options of a call from Python, which has checked them.
inline rms_norm::Options options_of(double eps, double weight_offset, bool llama, bool dependent_launch, int cache,
                                    bool batch_invariant) {
  rms_norm::Options options;
  options.eps = static_cast<float>(eps), options.weight_offset = static_cast<float>(weight_offset);
  options.rounding = llama ? rms_norm::Rounding::llama : rms_norm::Rounding::gemma;
  options.dependent_launch = dependent_launch, options.cache = static_cast<rms_norm::Cache>(cache);
  options.batch_invariant = batch_invariant;
  return options;
}

// The arrays of a norm, nullptr where there is none, and what sentences call them.
struct Arrays {
  const DLTensor *x, *residual, *residual_out, *weight, *y;
  rms_norm::Names names = {"x", "residual", "residual_out", "weight", "out"};
  float* rstd = nullptr;  // memory for that of each row, in the order of the rows, where it is to be stored
};

// y = the norm of x, or with a residual of residual_out = x + residual. Finds the workspace by itself. Throws a
// tvm::ffi::Error with a sentence for what is refused. Elements of `bfloat16_code` with 16 bits are bfloat16.
void norm(const Arrays& arrays, rms_norm::Options options, cudaStream_t stream,
          DLDataTypeCode bfloat16_code = kDLBfloat);

}  // namespace rms_norm_binding
