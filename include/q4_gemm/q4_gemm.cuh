// Matrix multiplication with weights in llama.cpp's q4_0, for NVIDIA GPUs.
//
//   y = W · x + bias     W: m rows of k weights; x: n columns of k numbers; y: n columns of m numbers
//
//   #include <q4_gemm/q4_gemm.cuh>
//   cudaMalloc(&packed, q4_gemm::packed_size(m, k));
//   q4_gemm::repack(blocks, packed, m, k, stream);                            // once, when the weights are loaded
//   cudaError_t error = q4_gemm::multiply(q4_gemm::Repacked{packed}, x, y, m, n, k);
//
// x, y and bias point to device memory of float, __half or __nv_bfloat16, and each may have a type of its own. Each
// block of 32 numbers of x becomes what it is in q8_1: whole numbers from -127 to 127, and a scale, a float16. (A
// scale below 2^-14 has fewer bits. It is that of a block without a magnitude above 127 · 2^-14 = 0.0078. Its rounding
// moves numbers by up to 127 · 2^-25 = 3.8e-6, and blocks without a magnitude above that become zero.) From there on
// all is exact, but for the roundings of a float32 sum over the blocks, and one to y's type.
//
// A call launches on the stream, allocates nothing, waits for nothing, and may be captured into a graph. The same call
// gives the same bits in every run; with Options::batch_invariant, the bits of a column of y do not depend on the other
// columns. The header needs CUDA 12 or newer, C++17, compute capability 8.0, and no other file
// than those beside it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arguments.cuh"
#include "launch.cuh"
#include "layout.cuh"
#include "policy.cuh"

#define Q4_GEMM_VERSION CUDA_BITS_VERSION  // 10203 is 1.2.3

namespace q4_gemm {

// The bytes that Options::workspace must have for a product, if it is given; 0 if no product of these sizes uses one:
// of one column, or of up to 16 with no more than 8192 numbers in all. SIZE_MAX as packed_size().
constexpr size_t workspace_size(int64_t m, int64_t n, int64_t k) { return detail::workspace_bytes(m, n, k); }

// y = W · x + bias. See arguments.cuh for the types of weights and x, and for Options.
//
//   weights   Repacked, or Blocks, which take longer
//   x         a pointer to columns of k elements, or Quantized
//   y         a pointer to columns of m elements, which overlap nothing else
//   m, n, k   m from 0 to 2^31, n from 0 to 2^31 - 1, k a multiple of 32 from 32 to 2^30, n · k up to 2^40
//   bias      a pointer to m elements, or nullptr
//
// Elements may have any alignment that suits their type. Tensors with gaps between their columns may have others there.
// Returns what the launch returns; cudaErrorNotSupported on a GPU below compute capability 8.0, or if nvcc compiled for
// less (its -arch); or cudaErrorInvalidValue, with nothing launched, for arguments that break these rules, and then
// explain(), given the same arguments, says which.
//
// Policy is the table that chooses the kernel, measured on one GPU: policy.cuh.
template <class Policy = DefaultPolicy, class W, class X, class Y, class B = std::nullptr_t>
cudaError_t multiply(const W& weights, const X& x, Y* y, int64_t m, int64_t n, int64_t k, B bias = nullptr,
                     const Options& options = {}, cudaStream_t stream = nullptr) {
  return detail::run<Policy>(weights, x, y, m, n, k, detail::typed(bias), options, stream);
}

// Why a call of multiply with these arguments is refused: one sentence. nullptr if it is not refused.
template <class W, class X, class Y, class B = std::nullptr_t>
const char* explain(const W& weights, const X& x, const Y* y, int64_t m, int64_t n, int64_t k, B bias = nullptr,
                    const Options& options = {}) {
  return detail::refusal(weights, x, y, m, n, k, detail::typed(bias), options, workspace_size(m, n, k));
}

// Quantizes n columns of k elements into quantized_size(n, k) bytes, aligned to 16 bytes. For several products with the
// same x; multiply() quantizes by itself. Of the options, x_stride and dependent_launch have an effect.
template <class X>
cudaError_t quantize(const X* x, void* quantized, int64_t n, int64_t k, const Options& options = {},
                     cudaStream_t stream = nullptr) {
  return detail::run_quantize(x, quantized, n, k, options, stream);
}
// Why a call of quantize with these arguments is refused: one sentence. nullptr if it is not refused.
template <class X>
const char* explain_quantize(const X* x, const void* quantized, int64_t n, int64_t k, const Options& options = {}) {
  return detail::refusal_of_quantize(x, quantized, n, k, options.x_stride);
}

// The norm of each column, x / sqrt(mean(x²) + eps) · (weight_offset + weight), quantized: what a layer's products
// read. weight is a pointer to k elements, or nullptr. Nothing is rounded between norm and quantization.
template <class X, class W>
cudaError_t rms_norm_quantize(const X* x, W weight, void* quantized, int64_t n, int64_t k,
                              const NormOptions& options = {}, cudaStream_t stream = nullptr) {
  return detail::run_norm<X, void>({x, nullptr, nullptr, quantized, n, k, options}, weight, stream);
}
// residual_out = x + residual, rounded to the residual's type, and the norm of what residual_out then holds.
// residual_out may be residual, or x if their types are the same, with the same stride.
template <class X, class R, class W>
cudaError_t add_rms_norm_quantize(const X* x, const R* residual, R* residual_out, W weight, void* quantized, int64_t n,
                                  int64_t k, const NormOptions& options = {}, cudaStream_t stream = nullptr) {
  return detail::run_norm<X, R>({x, residual, residual_out, quantized, n, k, options}, weight, stream);
}
// Why a call of rms_norm_quantize, or below of add_rms_norm_quantize, with these arguments is refused: one sentence.
// nullptr if it is not refused.
template <class X, class W>
const char* explain_norm(const X* x, W weight, const void* quantized, int64_t n, int64_t k,
                         const NormOptions& options = {}) {
  return detail::refusal_of_norm<X, void>({x, nullptr, nullptr, const_cast<void*>(quantized), n, k, options}, weight);
}
template <class X, class R, class W>
const char* explain_norm(const X* x, const R* residual, const R* residual_out, W weight, const void* quantized,
                         int64_t n, int64_t k, const NormOptions& options = {}) {
  return detail::refusal_of_norm<X, R>(
      {x, residual, const_cast<R*>(residual_out), const_cast<void*>(quantized), n, k, options}, weight);
}

}  // namespace q4_gemm
