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
  // once, and waits for that kernel before it reads or writes anything else; so that kernel must not write weights. It
  // needs compute capability 9.0; elsewhere the launch is a plain one.
  bool dependent_launch = false;

  // nullptr, or workspace_size(m, n, k) bytes of device memory, aligned to 16 bytes, whose contents do not matter: x is
  // quantized there once, and not again by each thread block. A product of two columns and more needs it to be fast, if
  // the weights are Repacked; from 17 columns on, one for sm_90a with tensor cores does. Calls that may run at the same
  // time need a workspace each.
  void* workspace = nullptr;
};

struct NormOptions {
  float eps = 1e-6f;           // added to the mean of squares; finite, >= 0
  float weight_offset = 0.0f;  // 1 for Gemma's 1 + weight; has no effect without a weight
  int64_t x_stride = kContiguous, residual_stride = kContiguous, residual_out_stride = kContiguous;
  bool dependent_launch = false;  // as in Options: the weight of the norm is what is read at once
};

// The bytes of n columns of k numbers that are quantized.
constexpr size_t quantized_size(int64_t n, int64_t k) {
  if (n < 1 || k < 1) return 0;
  return static_cast<size_t>(n * detail::chunks_of(k)) * (kChunk + 2 * detail::kChunkBlocks);
}

namespace detail {

constexpr int64_t kMostRows = int64_t{1} << 31, kMostNumbers = int64_t{1} << 30;  // of a column

// A bias or a weight of nullptr has some type.
inline const float* typed(std::nullptr_t) { return nullptr; }
template <class T>
const T* typed(T* data) {
  return data;
}

// --- What is refused -------------------------------------------------------------------------------------------------

struct Range {
  uintptr_t begin, end;

  Range(const void* data, int64_t bytes)
      : begin(reinterpret_cast<uintptr_t>(data)), end(begin + static_cast<uintptr_t>(bytes)) {}
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

constexpr int64_t stride_of(int64_t stride, int64_t size) { return stride == kContiguous ? size : stride; }

// Columns of `size` elements of T.
template <class T>
Range range_of(const T* data, int64_t columns, int64_t size, int64_t stride) {
  return {data, static_cast<int64_t>(sizeof(T)) * ((columns - 1) * stride_of(stride, size) + size)};
}
// A bias or a weight, or nullptr, of which there is nothing.
template <class T>
Range range_of_vector(const T* data, int64_t size) {
  return range_of(data, data == nullptr ? 0 : 1, size, size);
}
inline bool is_aligned(const void* data, uintptr_t bytes) { return reinterpret_cast<uintptr_t>(data) % bytes == 0; }

inline const char* refusal_of_columns(int64_t n, int64_t k) {
  if (n < 0) return "n is negative";
  if (k < kBlock || k % kBlock != 0) return "k is not a multiple of 32, the numbers of a block, or less than 32";
  if (k > kMostNumbers) return "k is more than 2^30";
  return nullptr;
}
inline const char* refusal_of_weights(const Repacked& w) {
  if (w.data == nullptr) return "the weights are nullptr";
  return is_aligned(w.data, 16) ? nullptr : "repacked weights are not aligned to 16 bytes";
}
inline const char* refusal_of_weights(const Blocks& w) {
  if (w.data == nullptr) return "the weights are nullptr";
  return is_aligned(w.data, 2) ? nullptr : "blocks are not aligned to 2 bytes";
}
template <class T>
const char* refusal_of_x(const T* x, int64_t k, int64_t stride) {
  if (x == nullptr) return "x is nullptr";
  return stride_of(stride, k) < k ? "x_stride is less than k" : nullptr;
}
inline const char* refusal_of_x(const Quantized& x, int64_t, int64_t) {
  if (x.data == nullptr) return "x is nullptr";
  return is_aligned(x.data, 16) ? nullptr : "quantized x is not aligned to 16 bytes";
}
inline Range range_of_weights(const Repacked& w, int64_t m, int64_t k) {
  return {w.data, static_cast<int64_t>(packed_size(m, k))};
}
inline Range range_of_weights(const Blocks& w, int64_t m, int64_t k) {
  return {w.data, m * (k / kBlock) * kBlockBytes};
}
template <class T>
Range range_of_x(const T* x, int64_t n, int64_t k, int64_t stride) {
  return range_of(x, n, k, stride);
}
inline Range range_of_x(const Quantized& x, int64_t n, int64_t k, int64_t) {
  return {x.data, static_cast<int64_t>(quantized_size(n, k))};
}

template <class W, class X, class Y, class B>
const char* refusal(const W& w, const X& x, const Y* y, int64_t m, int64_t n, int64_t k, const B* bias,
                    const Options& options, size_t workspace_bytes) {
  if (m < 0) return "m is negative";
  if (m > kMostRows) return "m is more than 2^31";
  if (const char* reason = refusal_of_columns(n, k)) return reason;
  if (m == 0 || n == 0) return nullptr;
  if (const char* reason = refusal_of_weights(w)) return reason;
  if (const char* reason = refusal_of_x(x, k, options.x_stride)) return reason;
  if (y == nullptr) return "y is nullptr";
  if (stride_of(options.y_stride, m) < m) return "y_stride is less than m";
  const Range to = range_of(y, n, m, options.y_stride), of_weights = range_of_weights(w, m, k),
              of_x = range_of_x(x, n, k, options.x_stride), of_bias = range_of_vector(bias, m);
  if (to.overlaps(of_weights)) return "y overlaps the weights";
  if (to.overlaps(of_x)) return "y overlaps x";
  if (to.overlaps(of_bias)) return "y overlaps bias";
  if (workspace_bytes == 0 || options.workspace == nullptr) return nullptr;
  if (!is_aligned(options.workspace, 16)) return "workspace is not aligned to 16 bytes";
  const Range workspace(options.workspace, static_cast<int64_t>(workspace_bytes));
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
  if (const char* reason = refusal_of_x(x, k, x_stride)) return reason;
  if (quantized == nullptr) return "quantized is nullptr";
  if (!is_aligned(quantized, 16)) return "quantized is not aligned to 16 bytes";
  const Range to(quantized, static_cast<int64_t>(quantized_size(n, k)));
  return to.overlaps(range_of(x, n, k, x_stride)) ? "quantized overlaps x" : nullptr;
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
  const Range to(call.quantized, static_cast<int64_t>(quantized_size(call.n, call.k)));
  const Range of_weight = range_of_vector(typed(weight), call.k);
  if (to.overlaps(of_weight)) return "quantized overlaps weight";
  if constexpr (!std::is_void_v<R>) {
    if (call.residual == nullptr) return "residual is nullptr";
    if (call.residual_out == nullptr) return "residual_out is nullptr";
    const int64_t strides[] = {stride_of(options.x_stride, call.k), stride_of(options.residual_stride, call.k),
                               stride_of(options.residual_out_stride, call.k)};
    if (strides[1] < call.k) return "residual_stride is less than k";
    if (strides[2] < call.k) return "residual_out_stride is less than k";
    const Range x = range_of(call.x, call.n, call.k, strides[0]);
    const Range residual = range_of(call.residual, call.n, call.k, strides[1]);
    const Range out = range_of(call.residual_out, call.n, call.k, strides[2]);
    if (to.overlaps(residual)) return "quantized overlaps residual";
    if (to.overlaps(out)) return "quantized overlaps residual_out";
    const bool is_x = std::is_same_v<X, R> && x.begin == out.begin && strides[0] == strides[2];
    if (out.overlaps(x) && !is_x) return "residual_out overlaps x, and is not the same tensor";
    if (out.overlaps(residual) && !(residual.begin == out.begin && strides[1] == strides[2]))
      return "residual_out overlaps residual, and is not the same tensor";
    if (out.overlaps(of_weight)) return "residual_out overlaps weight";
  }
  return nullptr;
}

}  // namespace detail
}  // namespace q4_gemm
