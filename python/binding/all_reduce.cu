// The all-reduce of a group of GPUs with the residual and the norm, as a function of Python, in builds for GPUs. Shapes
// are checked in Python; here it is about types and devices.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>

#include <rms_norm/all_reduce.cuh>

#include "arrays.h"
#include "stream.h"

namespace rms_norm_binding {
namespace {

void all_reduce(DLTensor* x_given, DLTensor* residual_given, DLTensor* residual_out_given, Given weight_given,
                DLTensor* y_given, int64_t rank, const tvm::ffi::Array<int64_t>& regions, int64_t bytes, int64_t groups,
                double eps, double weight_offset, bool llama, bool dependent_launch) {
  const Array x{"x", x_given}, residual{"residual", residual_given}, residual_out{"residual_out", residual_out_given};
  const Array weight{"weight", tensor_of(weight_given)}, y{"out", y_given};
  const Type own = type_of(x), of_weight = weight.tensor ? type_of(weight) : own;
  int64_t rows = 1;
  for (int i = 0; i < x.last(); ++i) rows *= x.tensor->shape[i];
  for (const Array& a : {x, residual, residual_out, y}) {
    check_place(a, x);
    if (type_of(a) != own)
      TVM_FFI_THROW(TypeError) << a.name << " is " << name_of(type_of(a)) << " and x is " << name_of(own)
                               << "; they must have the same type";
    if (a.tensor->ndim != x.tensor->ndim ||
        !std::equal(x.tensor->shape, x.tensor->shape + x.tensor->ndim, a.tensor->shape))
      TVM_FFI_THROW(ValueError) << a.name << " has the shape " << a.shape() << ", and x has the shape " << x.shape();
    if (rows > 1 && row_stride(a) != x.cols()) TVM_FFI_THROW(ValueError) << a.name << " is not contiguous";
  }
  check_weight(weight, x);
  rms_norm::Communicator communicator;
  communicator.rank = static_cast<int>(rank), communicator.ranks = static_cast<int>(regions.size());
  communicator.bytes = static_cast<size_t>(bytes), communicator.groups = static_cast<int>(groups);
  for (int i = 0; i < std::min<int>(communicator.ranks, rms_norm::kMostRanks); ++i)
    communicator.regions[i] = reinterpret_cast<void*>(regions[i]);
  rms_norm::AllReduceOptions options;
  options.eps = static_cast<float>(eps), options.weight_offset = static_cast<float>(weight_offset);
  options.rounding = llama ? rms_norm::Rounding::llama : rms_norm::Rounding::gemma;
  options.dependent_launch = dependent_launch;
  const CurrentDevice device(x.tensor->device.device_id);
  const cudaStream_t stream = stream_of(x.tensor->device);
  rms_norm::Names names;
  names.y = "out";
  const auto run = [&](auto type, auto weight_type) {
    using T = decltype(type);
    using W = decltype(weight_type);
    const T *const from = static_cast<const T*>(x.data()), *const addend = static_cast<const T*>(residual.data());
    T *const sum = static_cast<T*>(residual_out.data()), *const out = static_cast<T*>(y.data());
    const W* const factors = static_cast<const W*>(weight.data());
    if (const char* refusal =
            rms_norm::explain_all_reduce(communicator, from, addend, sum, factors, out, rows, x.cols(), options, names))
      TVM_FFI_THROW(ValueError) << refusal;
    return rms_norm::all_reduce_fused_add_rms_norm(communicator, from, addend, sum, factors, out, rows, x.cols(),
                                                   options, stream);
  };
  if (of_weight != own && of_weight != kFloat32)
    TVM_FFI_THROW(TypeError) << "weight is " << name_of(of_weight) << " and x is " << name_of(own) << "; "
                             << name_of(own) << " and float32 are known";
  check(with_type(own, [&](auto type) { return of_weight == own ? run(type, type) : run(type, float32{}); }));
}

int64_t all_reduce_region_bytes(int64_t ranks, int64_t message_bytes) {
  return static_cast<int64_t>(rms_norm::region_bytes(static_cast<int>(ranks), static_cast<size_t>(message_bytes)));
}
int64_t all_reduce_region_head() { return static_cast<int64_t>(rms_norm::detail::kRegionHead); }

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(all_reduce, all_reduce)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(all_reduce_region_bytes, all_reduce_region_bytes)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(all_reduce_region_head, all_reduce_region_head)

}  // namespace rms_norm_binding
