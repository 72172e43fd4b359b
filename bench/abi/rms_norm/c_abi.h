// What c_abi.cu calls: the header for x of one type, and a weight of the same or in float32. Each type is compiled in a
// file of its own, so that they compile side by side; so are its gradients and each type of 8 bits.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

extern "C" {

enum rms_norm_dtype { RMS_NORM_FLOAT32 = 0, RMS_NORM_FLOAT16 = 1, RMS_NORM_BFLOAT16 = 2 };
enum rms_norm_code { RMS_NORM_E4M3 = 0, RMS_NORM_INT8 = 1 };

// The header's Options, Layout and Quantization, whose comments say what they mean.
struct rms_norm_options {
  float eps;
  float weight_offset;
  int32_t llama_rounding;
  int32_t dependent_launch;
  void* workspace;
  int32_t cache;  // 0 tuned, 1 normal, 2 evict_first
  int32_t batch_invariant;
};

struct rms_norm_layout {
  int64_t row_stride;
  int64_t heads;
  int64_t head_stride;
};

struct rms_norm_quantization {
  const float* scale;
  float* scales;
  int64_t block;
  int32_t column_major;
  int64_t pitch;
  const float* upper_bound;
};

}  // extern "C"

namespace c_abi {

using Layout = const rms_norm_layout*;

template <class X>
cudaError_t forward(bool float_weight, const void* x, Layout x_layout, const void* weight, void* y, Layout y_layout,
                    int64_t rows, int64_t cols, const rms_norm_options& options, void* stream);
template <class X>
cudaError_t fused_add_rms_norm(bool float_weight, const void* x, Layout x_layout, const void* residual,
                               Layout residual_layout, void* residual_out, Layout residual_out_layout,
                               const void* weight, void* y, Layout y_layout, int64_t rows, int64_t cols,
                               const rms_norm_options& options, void* stream);
template <class X>
cudaError_t backward(bool float_weight, const void* dy, const void* dsum, const void* x, const float* rstd,
                     const void* weight, void* dx, void* dweight, void* workspace, int64_t rows, int64_t cols,
                     const rms_norm_options& options, void* stream);
// With a residual unless it is null.
template <class X, class Q>
cudaError_t quantized(const void* x, const void* residual, void* residual_out, const void* weight, void* q,
                      const rms_norm_quantization& how, void* y, int64_t rows, int64_t cols,
                      const rms_norm_options& options, void* stream);

}  // namespace c_abi
