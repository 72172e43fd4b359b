// The arguments of a call: their types, and the rules that they must keep.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "activations.cuh"
#include "elements.cuh"
#include "layout.cuh"

namespace q4_gemm {

// What a pointer to weights points to: what `repack` wrote, or blocks of q4_0 as llama.cpp stores them.
struct Repacked {
  const void* data;
};
struct Blocks {
  const void* data;
};
// What `quantize` and `rms_norm_quantize` write, for any n and k that they were given.
struct Quantized {
  const void* data;
};

// The stride of columns that follow each other without gaps.
constexpr int64_t kContiguous = INT64_MIN;

struct Options {
  int64_t x_stride = kContiguous;  // elements from one column of x to the next; has no effect on Quantized
  int64_t y_stride = kContiguous;

  // Programmatic dependent launch: the kernel starts while the kernel before it on the stream ends. It reads weights at
  // once, and waits for that kernel before it reads or writes anything else; so that kernel must not write weights.
  // Kernels before that one have ended, if it waits before it lets the next kernel start, as all kernels of this header
  // and of rms_norm do. One of your own that is a dependent launch, too, must call cudaGridDependencySynchronize()
  // before cudaTriggerProgrammaticLaunchCompletion(). It needs compute capability 9.0; elsewhere the launch is a plain
  // one.
  bool dependent_launch = false;

  // nullptr, or workspace_size(m, n, k) bytes of device memory, aligned to 16 bytes, whose contents do not matter: x is
  // quantized there once, and not again by each thread block. A product with Repacked weights needs it to be fast, if
  // workspace_size() is not 0; others do not use it. It changes no bit of the result up to 16 columns. From 17 on, in
  // code for sm_90a, it lets another kernel multiply, which adds up the same products in another order. Calls that may
  // run at the same time need a workspace each.
  void* workspace = nullptr;

  // The bits of a column of y depend on that column of x, the weights, bias, m, k and the types alone, and not on n,
  // the other columns, strides, alignment or the workspace. Otherwise n chooses among kernels that add up in other
  // orders. It holds for one policy on GPUs of one kind. README.md says what it costs. (quantize() and the norms need
  // no such option: each column is added up in one order, which depends on k alone.)
  bool batch_invariant = false;
};

struct NormOptions {
  float eps = 1e-6f;           // added to the mean of squares; finite, >= 0
  float weight_offset = 0.0f;  // 1 for Gemma's 1 + weight; has no effect without a weight
  int64_t x_stride = kContiguous, residual_stride = kContiguous, residual_out_stride = kContiguous;
  bool dependent_launch = false;  // as in Options: the weight of the norm is what is read at once
};

// The bytes of n columns of k numbers that are quantized. 0 or SIZE_MAX as packed_size().
constexpr size_t quantized_size(int64_t n, int64_t k) {
  return detail::bytes_of(n, detail::chunks_of(k), kChunk + 2 * detail::kChunkBlocks);
}

namespace detail {

// The most numbers of x: a grid that quantizes it has threads for almost twice as many. The most elements from a
// tensor's first to its last.
constexpr int64_t kMostOfX = int64_t{1} << 40, kMostElements = int64_t{1} << 58;

// A bias or a weight of nullptr has some type.
inline const float* typed(std::nullptr_t) { return nullptr; }
template <class T>
const T* typed(T* data) {
  return data;
}

// --- What is refused -------------------------------------------------------------------------------------------------

constexpr int64_t stride_of(int64_t stride, int64_t size) { return stride == kContiguous ? size : stride; }

// Columns of `size` elements of T.
template <class T>
Region region_of(const T* data, int64_t columns, int64_t size, int64_t stride) {
  static_assert(is_element<T>, "elements are float, __half or __nv_bfloat16");
  constexpr int64_t kBytes = sizeof(T);
  return Region(data, size * kBytes, columns, stride_of(stride, size) * kBytes);
}
// A bias or a weight, or nullptr, of which there is nothing.
template <class T>
Region region_of_vector(const T* data, int64_t size) {
  return region_of(data, 1, data == nullptr ? 0 : size, kContiguous);
}

inline const char* refusal_of_columns(int64_t n, int64_t k) {
  if (n < 0) return "n is negative";
  if (n > INT32_MAX) return "n is more than 2^31 - 1";
  if (const char* reason = refusal_of_k(k)) return reason;
  return n > kMostOfX / k ? "n · k is more than 2^40" : nullptr;
}
inline const char* refusal_of_weights(const Repacked& w) {
  if (w.data == nullptr) return "the weights are nullptr";
  return is_aligned(w.data, 16) ? nullptr : "repacked weights are not aligned to 16 bytes";
}
inline const char* refusal_of_weights(const Blocks& w) {
  if (w.data == nullptr) return "the weights are nullptr";
  return is_aligned(w.data, 2) ? nullptr : "blocks are not aligned to 2 bytes";
}

// What is said of a tensor that is nullptr, whose elements are not aligned, whose columns overlap, that reaches too
// far.
struct Sentences {
  const char *nowhere, *misaligned, *narrow, *far;
};
inline constexpr Sentences kOfX = {"x is nullptr", "x is not aligned to its element type", "x_stride is less than k",
                                   "x is too large for 64-bit addresses"};
inline constexpr Sentences kOfY = {"y is nullptr", "y is not aligned to its element type", "y_stride is less than m",
                                   "y is too large for 64-bit addresses"};
inline constexpr Sentences kOfResidual = {"residual is nullptr", "residual is not aligned to its element type",
                                          "residual_stride is less than k",
                                          "residual is too large for 64-bit addresses"};
inline constexpr Sentences kOfResidualOut = {
    "residual_out is nullptr", "residual_out is not aligned to its element type", "residual_out_stride is less than k",
    "residual_out is too large for 64-bit addresses"};

template <class T>
const char* refusal_of_tensor(const T* data, int64_t columns, int64_t size, int64_t stride,
                              const Sentences& sentences) {
  stride = stride_of(stride, size);
  if (data == nullptr) return sentences.nowhere;
  if (!is_aligned(data, sizeof(T))) return sentences.misaligned;
  if (stride < size) return sentences.narrow;
  return columns > 1 && stride > kMostElements / columns ? sentences.far : nullptr;
}
template <class T>
const char* refusal_of_x(const T* x, int64_t n, int64_t k, int64_t stride) {
  return refusal_of_tensor(x, n, k, stride, kOfX);
}
inline const char* refusal_of_x(const Quantized& x, int64_t, int64_t, int64_t) {
  if (x.data == nullptr) return "x is nullptr";
  return is_aligned(x.data, 16) ? nullptr : "quantized x is not aligned to 16 bytes";
}
inline Region region_of_weights(const Repacked& w, int64_t m, int64_t k) { return Region(w.data, packed_size(m, k)); }
inline Region region_of_weights(const Blocks& w, int64_t m, int64_t k) {
  return Region(w.data, bytes_of(m, k / kBlock, kBlockBytes));
}
template <class T>
Region region_of_x(const T* x, int64_t n, int64_t k, int64_t stride) {
  return region_of(x, n, k, stride);
}
inline Region region_of_x(const Quantized& x, int64_t n, int64_t k, int64_t) {
  return Region(x.data, quantized_size(n, k));
}

template <class W, class X, class Y, class B>
const char* refusal(const W& w, const X& x, const Y* y, int64_t m, int64_t n, int64_t k, const B* bias,
                    const Options& options, size_t workspace_bytes) {
  if (const char* reason = refusal_of_rows(m)) return reason;
  if (const char* reason = refusal_of_columns(n, k)) return reason;
  if (m == 0 || n == 0) return nullptr;
  if (const char* reason = refusal_of_weights(w)) return reason;
  if (const char* reason = refusal_of_x(x, n, k, options.x_stride)) return reason;
  if (const char* reason = refusal_of_tensor(y, n, m, options.y_stride, kOfY)) return reason;
  if (!is_aligned(bias, sizeof(B))) return "bias is not aligned to its element type";
  const Region to = region_of(y, n, m, options.y_stride), of_weights = region_of_weights(w, m, k),
               of_x = region_of_x(x, n, k, options.x_stride), of_bias = region_of_vector(bias, m);
  if (to.overlaps(of_weights)) return "y overlaps the weights";
  if (to.overlaps(of_x)) return "y overlaps x";
  if (to.overlaps(of_bias)) return "y overlaps bias";
  if (workspace_bytes == 0 || options.workspace == nullptr) return nullptr;
  if (!is_aligned(options.workspace, 16)) return "workspace is not aligned to 16 bytes";
  const Region workspace(options.workspace, workspace_bytes);
  if (workspace.overlaps(to)) return "workspace overlaps y";
  if (workspace.overlaps(of_weights)) return "workspace overlaps the weights";
  if (workspace.overlaps(of_x)) return "workspace overlaps x";
  if (workspace.overlaps(of_bias)) return "workspace overlaps bias";
  return nullptr;
}

template <class X>
const char* refusal_of_quantize(const X* x, const void* quantized, int64_t n, int64_t k, int64_t x_stride) {
  if (const char* reason = refusal_of_columns(n, k)) return reason;
  if (n == 0) return nullptr;
  if (const char* reason = refusal_of_x(x, n, k, x_stride)) return reason;
  if (quantized == nullptr) return "quantized is nullptr";
  if (!is_aligned(quantized, 16)) return "quantized is not aligned to 16 bytes";
  const Region to(quantized, quantized_size(n, k));
  return to.overlaps(region_of(x, n, k, x_stride)) ? "quantized overlaps x" : nullptr;
}

// --- Norms -----------------------------------------------------------------------------------------------------------

// R is void if no residual is added.
template <class X, class R>
struct NormCall {
  const X* x;
  const R* residual;
  R* residual_out;
  void* quantized;
  int64_t n, k;
  NormOptions options;
};

template <class X, class R, class W>
const char* refusal_of_norm(const NormCall<X, R>& call, W weight) {
  const NormOptions& options = call.options;
  if (!(options.eps >= 0.0f) || !std::isfinite(options.eps)) return "eps is negative or not finite";
  if (!std::isfinite(options.weight_offset)) return "weight_offset is not finite";
  if (const char* reason = refusal_of_quantize(call.x, call.quantized, call.n, call.k, options.x_stride)) return reason;
  if (call.n == 0) return nullptr;
  const auto* const typed_weight = typed(weight);
  if (!is_aligned(typed_weight, sizeof *typed_weight)) return "weight is not aligned to its element type";
  const Region to(call.quantized, quantized_size(call.n, call.k)), of_weight = region_of_vector(typed_weight, call.k);
  if (to.overlaps(of_weight)) return "quantized overlaps weight";
  if constexpr (!std::is_void_v<R>) {
    const auto refusal_of = [&](const R* data, int64_t stride, const Sentences& sentences) {
      return refusal_of_tensor(data, call.n, call.k, stride, sentences);
    };
    if (const char* reason = refusal_of(call.residual, options.residual_stride, kOfResidual)) return reason;
    if (const char* reason = refusal_of(call.residual_out, options.residual_out_stride, kOfResidualOut)) return reason;
    const Region x = region_of(call.x, call.n, call.k, options.x_stride);
    const Region residual = region_of(call.residual, call.n, call.k, options.residual_stride);
    const Region out = region_of(call.residual_out, call.n, call.k, options.residual_out_stride);
    if (to.overlaps(residual)) return "quantized overlaps residual";
    if (to.overlaps(out)) return "quantized overlaps residual_out";
    if (collide(out, x, std::is_same_v<X, R>)) return "residual_out overlaps x, and is not the same tensor";
    if (collide(out, residual, true)) return "residual_out overlaps residual, and is not the same tensor";
    if (out.overlaps(of_weight)) return "residual_out overlaps weight";
  }
  return nullptr;
}

}  // namespace detail
}  // namespace q4_gemm
