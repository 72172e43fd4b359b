// The production header behind a C ABI: what a language without C++ templates calls, and what make peers times.
// Every function returns a cudaError_t as an int; types that c_abi.h does not name, or a weight that is neither of x's
// type nor float32, are cudaErrorInvalidValue.
//
//   nvcc -t 0 -std=c++17 -O3 -shared -Xcompiler -fPIC -Iinclude bench/abi/rms_norm/*.cu -o librms_norm.so
#include "c_abi.h"

#include <rms_norm/backward.cuh>
#include <rms_norm/rms_norm.cuh>

namespace {

// The ceiling: one 16-byte vector a thread; the last bytes one by one.
__global__ void copy_kernel(const char* from, char* to, int64_t bytes) {
  const int64_t first = 16 * (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
  if (first + 16 <= bytes)
    *reinterpret_cast<int4*>(to + first) = *reinterpret_cast<const int4*>(from + first);
  else
    for (int64_t i = first; i < bytes; ++i) to[i] = from[i];
}

// function(X()) for x's type X, where the weight is of the same type or float32.
template <class Function>
cudaError_t with_type(int dtype, int weight_dtype, const Function& function) {
  if (weight_dtype != dtype && weight_dtype != RMS_NORM_FLOAT32) return cudaErrorInvalidValue;
  switch (dtype) {
    case RMS_NORM_FLOAT32:
      return function(float());
    case RMS_NORM_FLOAT16:
      return function(__half());
    case RMS_NORM_BFLOAT16:
      return function(__nv_bfloat16());
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

extern "C" {

// y = x / sqrt(mean(x²) + eps) · (weight_offset + weight). A null weight counts as ones, a null layout as contiguous.
int rms_norm_forward(int dtype, int weight_dtype, const void* x, const rms_norm_layout* x_layout, const void* weight,
                     void* y, const rms_norm_layout* y_layout, int64_t rows, int64_t cols,
                     const rms_norm_options* options, void* stream) {
  return with_type(dtype, weight_dtype, [&](auto of_type) {
    return c_abi::forward<decltype(of_type)>(weight_dtype == RMS_NORM_FLOAT32, x, x_layout, weight, y, y_layout, rows,
                                             cols, *options, stream);
  });
}

// residual_out = x + residual, y = the norm of residual_out; residual_out may be residual, and y may be x.
int rms_norm_fused_add(int dtype, int weight_dtype, const void* x, const rms_norm_layout* x_layout,
                       const void* residual, const rms_norm_layout* residual_layout, void* residual_out,
                       const rms_norm_layout* residual_out_layout, const void* weight, void* y,
                       const rms_norm_layout* y_layout, int64_t rows, int64_t cols, const rms_norm_options* options,
                       void* stream) {
  return with_type(dtype, weight_dtype, [&](auto of_type) {
    return c_abi::fused_add_rms_norm<decltype(of_type)>(weight_dtype == RMS_NORM_FLOAT32, x, x_layout, residual,
                                                        residual_layout, residual_out, residual_out_layout, weight, y,
                                                        y_layout, rows, cols, *options, stream);
  });
}

// The gradients of contiguous tensors of x's type: dx, and dweight of weight's type unless it is null. dsum, the
// gradient of residual_out, may be null; so may the rows' rstd, which is then computed. The workspace has
// rms_norm_backward_workspace_bytes(rows, cols).
int rms_norm_backward(int dtype, int weight_dtype, const void* dy, const void* dsum, const void* x, const float* rstd,
                      const void* weight, void* dx, void* dweight, void* workspace, int64_t rows, int64_t cols,
                      const rms_norm_options* options, void* stream) {
  return with_type(dtype, weight_dtype, [&](auto of_type) {
    return c_abi::backward<decltype(of_type)>(weight_dtype == RMS_NORM_FLOAT32, dy, dsum, x, rstd, weight, dx, dweight,
                                              workspace, rows, cols, *options, stream);
  });
}

// q, and y unless it is null, of contiguous tensors of x's type, which is one of 16 bits; so is weight's. With a
// residual: that of residual_out = x + residual.
int rms_norm_quantized(int dtype, int code, const void* x, const void* residual, void* residual_out, const void* weight,
                       void* q, const rms_norm_quantization* how, void* y, int64_t rows, int64_t cols,
                       const rms_norm_options* options, void* stream) {
  const auto run = [&](auto function) {
    return function(x, residual, residual_out, weight, q, *how, y, rows, cols, *options, stream);
  };
  if (code != RMS_NORM_E4M3 && code != RMS_NORM_INT8) return cudaErrorInvalidValue;
  switch (dtype) {
    case RMS_NORM_FLOAT16:
      return code == RMS_NORM_INT8 ? run(c_abi::quantized<__half, int8_t>)
                                   : run(c_abi::quantized<__half, __nv_fp8_e4m3>);
    case RMS_NORM_BFLOAT16:
      return code == RMS_NORM_INT8 ? run(c_abi::quantized<__nv_bfloat16, int8_t>)
                                   : run(c_abi::quantized<__nv_bfloat16, __nv_fp8_e4m3>);
    default:
      return cudaErrorInvalidValue;
  }
}

size_t rms_norm_backward_workspace_bytes(int64_t rows, int64_t cols) {
  return ::rms_norm::backward_workspace_bytes(rows, cols);
}

size_t rms_norm_workspace_bytes(void) { return ::rms_norm::kWorkspaceBytes; }

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

// A workspace, prepared on the stream.
int rms_norm_init_workspace(void* workspace, void* stream) {
  return ::rms_norm::init_workspace(workspace, static_cast<cudaStream_t>(stream));
}

const char* rms_norm_error(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

}  // extern "C"
