// The norm of query and key heads and their rotary embedding as a function of Python. What has the heads' shape was
// checked in Python, where fake tensors are checked too; here it is about types, strides and devices.
#include <tvm/ffi/function.h>

#include <rms_norm/rope.cuh>

#include "arrays.h"
#include "stream.h"

namespace rms_norm_binding {
namespace {

// function(0 of the heads' type, or of float32)
template <class T, class Function>
cudaError_t with_own_or_float(const Array& a, Type given, Type own, const Function& function) {
  if (given == own) return function(T{});
  if (given == kFloat32) return function(float32{});
  TVM_FFI_THROW(TypeError) << a.name << " is " << name_of(given) << " and qkv is " << name_of(own) << "; "
                           << name_of(own) << " and float32 are known";
  return cudaErrorInvalidValue;
}

template <class T, DLDataTypeCode kBFloat16Code>
cudaError_t run(const Array (&arrays)[5], Type own, const rms_norm::Heads<T>& heads, bool neighbours,
                const rms_norm::Options& options, cudaStream_t stream) {
  const auto& [qkv, q_weight, k_weight, cos_sin, positions] = arrays;
  const Type of_q = q_weight.tensor ? type_of(q_weight, kBFloat16Code) : kNone;
  const Type of_k = k_weight.tensor ? type_of(k_weight, kBFloat16Code) : kNone;
  if (of_q != kNone && of_k != kNone && of_q != of_k)
    TVM_FFI_THROW(TypeError) << "q_weight is " << name_of(of_q) << " and k_weight is " << name_of(of_k)
                             << "; they must have the same type";
  const Array& weight = of_q == kNone ? k_weight : q_weight;
  const Type of_weight = of_q != kNone ? of_q : of_k != kNone ? of_k : own;
  return with_own_or_float<T>(weight, of_weight, own, [&](auto weight_type) {
    return with_own_or_float<T>(cos_sin, type_of(cos_sin, kBFloat16Code), own, [&](auto angle_type) {
      using W = decltype(weight_type);
      using C = decltype(angle_type);
      const rms_norm::Rotation<C> rotation = {
          static_cast<const C*>(cos_sin.data()), static_cast<const int64_t*>(positions.data()),
          cos_sin.tensor->shape[0], cos_sin.cols(), neighbours ? rms_norm::Pairs::neighbours : rms_norm::Pairs::halves};
      const auto* const q = static_cast<const W*>(q_weight.data());
      const auto* const k = static_cast<const W*>(k_weight.data());
      if (const char* refusal = rms_norm::explain_qk_norm_rope(heads, q, k, rotation, options))
        TVM_FFI_THROW(ValueError) << refusal;
      return rms_norm::qk_norm_rope(heads, q, k, rotation, options, stream);
    });
  });
}

template <DLDataTypeCode kBFloat16Code>
void qk_norm_rope(DLTensor* qkv_given, Given q_given, Given k_given, DLTensor* cos_sin_given, DLTensor* positions_given,
                  int64_t q_heads, int64_t kv_heads, int64_t head_dim, bool neighbours, double eps,
                  double weight_offset, bool llama, bool dependent_launch, bool batch_invariant) {
  const Array arrays[] = {{"qkv", qkv_given},
                          {"q_weight", tensor_of(q_given)},
                          {"k_weight", tensor_of(k_given)},
                          {"cos_sin", cos_sin_given},
                          {"positions", positions_given}};
  const auto& [qkv, q_weight, k_weight, cos_sin, positions] = arrays;
  const DLDataType of_positions = positions.tensor->dtype;
  if (of_positions.code != kDLInt || of_positions.bits != 64 || of_positions.lanes != 1)
    TVM_FFI_THROW(TypeError) << "positions has elements of type " << name_of(of_positions) << "; int64 is known";
  int64_t tokens = 1;
  for (int i = 0; i < qkv.last(); ++i) tokens *= qkv.tensor->shape[i];
  for (const Array& a : arrays) {
    if (a.tensor == nullptr) continue;
    if (a.tensor != qkv.tensor) check_contiguous(a);
    check_place(a, qkv);
    if (tokens > 0 && a.data() == nullptr)
      TVM_FFI_THROW(ValueError) << a.name << " has no memory, as a fake tensor or a DTensor of PyTorch has none";
  }
  const rms_norm::Options options =
      options_of(eps, weight_offset, llama, dependent_launch, /*cache=*/0, batch_invariant);
  const Type own = type_of(qkv, kBFloat16Code);
  const int64_t stride = row_stride(qkv);
  if (const int64_t heads = (q_heads + kv_heads) * head_dim; tokens > 1 && std::abs(stride) < heads)
    TVM_FFI_THROW(ValueError) << "rows of qkv overlap each other: they are " << stride
                              << " elements apart, and the heads of a row take " << heads;
  const CurrentDevice device(qkv.tensor->device.device_id);
  const cudaStream_t stream = stream_of(qkv.tensor->device);
  const auto call = [&](auto type) {
    using T = decltype(type);
    const rms_norm::Heads<T> heads = {static_cast<T*>(qkv.data()), tokens, q_heads, kv_heads, head_dim, stride};
    return run<T, kBFloat16Code>(arrays, own, heads, neighbours, options, stream);
  };
  check(own == kFloat32 ? call(float32{}) : own == kFloat16 ? call(float16{}) : call(bfloat16{}));
}

}  // namespace

// As norm and norm_of_numpy: NumPy's bfloat16 comes as unsigned integers.
TVM_FFI_DLL_EXPORT_TYPED_FUNC(qk_norm_rope, qk_norm_rope<kDLBfloat>)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(qk_norm_rope_of_numpy, qk_norm_rope<kDLUInt>)

}  // namespace rms_norm_binding
