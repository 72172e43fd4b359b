// The production header behind a C ABI: what a language without C++ templates calls, and what bench/peers.py times.
// Every function returns a cudaError_t as an int; a dtype that is not in the table below is cudaErrorInvalidValue.
//
//   nvcc -std=c++17 -O3 -shared -Xcompiler -fPIC -Iinclude bench/c_abi.cu -o librms_norm.so
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "rms_norm/rms_norm.cuh"

extern "C" {

enum rms_norm_dtype { RMS_NORM_FLOAT32 = 0, RMS_NORM_FLOAT16 = 1, RMS_NORM_BFLOAT16 = 2 };

// The header's Options and Layout, whose comments say what they mean.
struct rms_norm_options {
  float eps;
  float weight_offset;
  int32_t llama_rounding;
  int32_t dependent_launch;
  void* workspace;
};

struct rms_norm_layout {
  int64_t row_stride;
  int64_t heads;
  int64_t head_stride;
};

}  // extern "C"

namespace {

rms_norm::Options options_of(const rms_norm_options& given) {
  rms_norm::Options options;
  options.eps = given.eps;
  options.weight_offset = given.weight_offset;
  options.rounding = given.llama_rounding ? rms_norm::Rounding::llama : rms_norm::Rounding::gemma;
  options.dependent_launch = given.dependent_launch != 0;
  options.workspace = given.workspace;
  return options;
}

rms_norm::Layout layout_of(const rms_norm_layout* given, int64_t cols) {
  return given ? rms_norm::Layout{given->row_stride, given->heads, given->head_stride} : rms_norm::Layout{cols};
}

template <class T>
struct Type {
  using type = T;
};

// Calls function(Type<X>, Type<W>) for the input's type and the weight's: the same, or float32.
template <class Function>
cudaError_t with_types(int dtype, int weight_dtype, const Function& function) {
  const auto weighted = [&](auto x) {
    if (weight_dtype == RMS_NORM_FLOAT32) return function(x, Type<float>());
    return weight_dtype == dtype ? function(x, x) : cudaErrorInvalidValue;
  };
  switch (dtype) {
    case RMS_NORM_FLOAT32:
      return weighted(Type<float>());
    case RMS_NORM_FLOAT16:
      return weighted(Type<__half>());
    case RMS_NORM_BFLOAT16:
      return weighted(Type<__nv_bfloat16>());
    default:
      return cudaErrorInvalidValue;
  }
}

// The ceiling: one 16-byte vector a thread; the last bytes one by one.
__global__ void copy_kernel(const char* from, char* to, int64_t bytes) {
  const int64_t first = 16 * (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
  if (first + 16 <= bytes)
    *reinterpret_cast<int4*>(to + first) = *reinterpret_cast<const int4*>(from + first);
  else
    for (int64_t i = first; i < bytes; ++i) to[i] = from[i];
}

}  // namespace

extern "C" {

// y = x / sqrt(mean(x²) + eps) · (weight_offset + weight). A null weight counts as ones, a null layout as contiguous.
int rms_norm_forward(int dtype, int weight_dtype, const void* x, const rms_norm_layout* x_layout, const void* weight,
                     void* y, const rms_norm_layout* y_layout, int64_t rows, int64_t cols,
                     const rms_norm_options* options, void* stream) {
  return with_types(dtype, weight_dtype, [&](auto x_type, auto weight_type) {
    using X = typename decltype(x_type)::type;
    using W = typename decltype(weight_type)::type;
    return rms_norm::forward(static_cast<const X*>(x), layout_of(x_layout, cols), static_cast<const W*>(weight),
                             static_cast<X*>(y), layout_of(y_layout, cols), rows, cols, options_of(*options),
                             static_cast<cudaStream_t>(stream));
  });
}

// residual_out = x + residual, y = the norm of residual_out; residual_out may be residual, and y may be x.
int rms_norm_forward_add(int dtype, int weight_dtype, const void* x, const rms_norm_layout* x_layout,
                         const void* residual, const rms_norm_layout* residual_layout, void* residual_out,
                         const rms_norm_layout* residual_out_layout, const void* weight, void* y,
                         const rms_norm_layout* y_layout, int64_t rows, int64_t cols, const rms_norm_options* options,
                         void* stream) {
  return with_types(dtype, weight_dtype, [&](auto x_type, auto weight_type) {
    using X = typename decltype(x_type)::type;
    using W = typename decltype(weight_type)::type;
    return rms_norm::forward_add(static_cast<const X*>(x), layout_of(x_layout, cols), static_cast<const X*>(residual),
                                 layout_of(residual_layout, cols), static_cast<X*>(residual_out),
                                 layout_of(residual_out_layout, cols), static_cast<const W*>(weight),
                                 static_cast<X*>(y), layout_of(y_layout, cols), rows, cols, options_of(*options),
                                 static_cast<cudaStream_t>(stream));
  });
}

size_t rms_norm_workspace_bytes(void) { return rms_norm::kWorkspaceBytes; }

// A copy of so many bytes, both pointers on 16-byte boundaries.
int rms_norm_copy(const void* from, void* to, int64_t bytes, void* stream) {
  if (bytes < 0) return cudaErrorInvalidValue;
  if (bytes == 0) return cudaSuccess;
  const int64_t blocks = (bytes + 16 * 256 - 1) / (16 * 256);
  if (blocks > INT32_MAX) return cudaErrorInvalidValue;
  copy_kernel<<<static_cast<unsigned>(blocks), 256, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const char*>(from), static_cast<char*>(to), bytes);
  return cudaGetLastError();
}

const char* rms_norm_error(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

}  // extern "C"
