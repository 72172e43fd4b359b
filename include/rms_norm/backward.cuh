// The gradients of forward() and fused_add_rms_norm().
//
//   g       = dy · (weight_offset + weight)
//   dx      = rstd · (g - x · rstd² · mean(g · x)) + dsum          rstd = 1 / sqrt(mean(x²) + eps)
//   dweight = the sum of dy · x · rstd over all rows
//
// Sums are computed in float32, in an order that depends on rows and cols alone: the same call gives the same bits,
// also on another GPU. That of a row depends on cols alone, so that a row's dx does not depend on the rows beside it,
// nor on where tensors lie. dweight is a sum over all rows. Where forward rounds to llama's rule, the gradient is still
// that of the formula. The kernels are right for every length and alignment, and not tuned: they read x and dy twice,
// one element at a time.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "arguments.cuh"
#include "packs.cuh"
#include "sums.cuh"

namespace rms_norm {

namespace detail {

constexpr int kGradientThreads = 256;
constexpr int kGradientBlocks = 256;  // at most: each has a row of partial sums of dweight in the workspace

inline int64_t gradient_blocks(int64_t rows) { return std::min<int64_t>(rows, kGradientBlocks); }
inline int64_t weight_blocks(int64_t cols) { return (cols + kGradientThreads - 1) / kGradientThreads; }

}  // namespace detail

// The bytes that backward() needs for dweight; 0 for a shape that it refuses or that has no rows.
inline size_t backward_workspace_bytes(int64_t rows, int64_t cols) {
  if (rows < 1 || cols < 1 || cols > INT64_MAX / 64 / detail::kGradientBlocks) return 0;
  return sizeof(float) * static_cast<size_t>(detail::gradient_blocks(rows) * cols);
}

namespace detail {

template <class T>
struct Gradient {
  T* data;
  Layout layout;
  __device__ T* row(int64_t number) const {
    return data + number / layout.heads * layout.stride + number % layout.heads * layout.head_stride;
  }
};
template <class X, class W, class Y>
struct BackwardProblem {
  Gradient<const Y> dy;
  Gradient<const X> dsum, x;  // dsum.data may be nullptr
  const W* weight;            // may be nullptr
  Gradient<X> dx;
  float* partial;  // gridDim.x rows of dweight; nullptr if it is not wanted
  int64_t rows, cols;
  float eps, weight_offset;
};

template <class T>
__device__ float value_of(const T& element) {
  return static_cast<float>(element);
}
template <class T>
__device__ T rounded_to(float value) {
  return static_cast<T>(value);
}

// A block works through the rows number blockIdx.x, blockIdx.x + gridDim.x, … A thread has the same columns in each, so
// that nobody else adds to its partial sums.
template <class X, class W, class Y>
__global__ void __launch_bounds__(kGradientThreads) row_gradients(const BackwardProblem<X, W, Y> p) {
  float* const partial = p.partial ? p.partial + blockIdx.x * p.cols : nullptr;
  const auto factor = [&](int64_t i) { return p.weight ? p.weight_offset + value_of(p.weight[i]) : 1.0f; };
  for (int64_t number = blockIdx.x; number < p.rows; number += gridDim.x) {
    const X* const x = p.x.row(number);
    const Y* const dy = p.dy.row(number);
    float squares = 0.0f, products = 0.0f;
    for (int64_t i = threadIdx.x; i < p.cols; i += kGradientThreads) {
      const float value = value_of(x[i]);
      squares += value * value;
      products += value * (value_of(dy[i]) * factor(i));
    }
    squares = row_sum<kGradientThreads, 1, 0>(squares);
    products = row_sum<kGradientThreads, 1, 1>(products);
    const float rstd = rsqrtf(squares / static_cast<float>(p.cols) + p.eps);
    const float slope = products / static_cast<float>(p.cols) * rstd * rstd;

    const X* const dsum = p.dsum.data ? p.dsum.row(number) : nullptr;
    X* const dx = p.dx.row(number);
    for (int64_t i = threadIdx.x; i < p.cols; i += kGradientThreads) {
      const float value = value_of(x[i]), from_y = value_of(dy[i]);
      float gradient = rstd * (from_y * factor(i) - value * slope);
      if (dsum) gradient += value_of(dsum[i]);
      if (partial) {
        const float before = number == blockIdx.x ? 0.0f : partial[i];
        partial[i] = before + from_y * (value * rstd);
      }
      dx[i] = rounded_to<X>(gradient);
    }
    __syncthreads();  // the next row's sums go where this one's are read
  }
}

// In one structure, as for every kernel here: on the CPU device, a kernel may have host memory there, as NumPy's.
template <class W>
struct WeightProblem {
  const float* partial;
  int64_t count;  // rows of partial
  W* dweight;
  int64_t cols;
};
template <class W>
__global__ void __launch_bounds__(kGradientThreads) weight_gradient(const WeightProblem<W> p) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kGradientThreads + threadIdx.x;
  if (i >= p.cols) return;
  float sum = 0.0f;
  for (int64_t k = 0; k < p.count; ++k) sum += p.partial[k * p.cols + i];
  p.dweight[i] = rounded_to<W>(sum);
}

template <class X, class W, class Y>
struct BackwardCall {
  Tensor<const Y> dy;
  Tensor<const X> dsum, x;
  const W* weight;
  Tensor<X> dx;
  W* dweight;
  void* workspace;
  int64_t rows, cols;

  template <class T>
  Matrix matrix(const Tensor<T>& tensor) const {
    return {tensor.data, sizeof(T), with_strides(tensor.layout, rows, cols), rows, cols};
  }
};

template <class DY, class DS, class X, class W, class DX, class DW>
auto backward_call_of(const DY& dy, const DS& dsum, const X& x, W weight, const DX& dx, DW dweight, void* workspace,
                      int64_t rows, int64_t cols) {
  using XE = Element<X>;
  using YE = Element<DY>;
  using WE = std::conditional_t<std::is_null_pointer_v<W>, XE, Element<W>>;
  static_assert(is_element<XE> && is_element<YE> && is_element<WE>, "elements are float, __half or __nv_bfloat16");
  static_assert(std::is_same_v<Element<DX>, XE>, "dx has the element type of x");
  const auto constant = [](const auto& tensor) {
    return Tensor<std::add_const_t<std::remove_pointer_t<decltype(tensor.data)>>>{tensor.data, tensor.layout};
  };
  Tensor<const XE> other = {nullptr};
  if constexpr (!std::is_null_pointer_v<DS>) other = constant(as_tensor(dsum));
  return BackwardCall<XE, WE, YE>{
      constant(as_tensor(dy)), other, constant(as_tensor(x)), weight, as_tensor(dx), dweight, workspace, rows, cols};
}

template <class X, class W, class Y>
const char* refusal(const BackwardCall<X, W, Y>& call, const Options& options) {
  const int64_t heads = call.x.layout.heads;
  if (const char* wrong = refusal_of_shape(call.rows, call.cols, heads, options)) return wrong;
  if (call.dweight && !call.weight) return "dweight is given, and weight is nullptr";
  if (reinterpret_cast<uintptr_t>(call.weight) % sizeof(W) != 0) return "weight is not aligned to its element type";
  if (reinterpret_cast<uintptr_t>(call.dweight) % sizeof(W) != 0) return "dweight is not aligned to its element type";
  if (call.dweight && weight_blocks(call.cols) > INT32_MAX) return "cols is too large for dweight";
  if (call.rows == 0) return nullptr;
  if (call.cols > INT64_MAX / 64 / std::max<int64_t>(call.rows, kGradientBlocks))
    return "rows * cols is too large for 64-bit addresses";
  const Matrix dy = call.matrix(call.dy), dsum = call.matrix(call.dsum), x = call.matrix(call.x),
               dx = call.matrix(call.dx);
  if (!dy.data) return "dy is nullptr";
  if (!x.data) return "x is nullptr";
  if (!dx.data) return "dx is nullptr";
  const auto is_misaligned = [](const Matrix& m) { return m.address() % m.element != 0; };
  if (is_misaligned(dy)) return "dy is not aligned to its element type";
  if (is_misaligned(x)) return "x is not aligned to its element type";
  if (is_misaligned(dx)) return "dx is not aligned to its element type";
  if (is_misaligned(dsum)) return "dsum is not aligned to its element type";
  const Matrix* const tensors[] = {&dy, &x, &dx, dsum.data ? &dsum : &x};
  for (const Matrix* m : tensors)
    if (const char* wrong = refusal_of_layout(*m, heads)) return wrong;
  if (!rows_are_apart(dx)) return "rows of dx overlap each other";
  if (collide(x, dx, true)) return "dx overlaps x, and is not the same tensor";
  if (collide(dy, dx, std::is_same_v<X, Y>)) return "dx overlaps dy, and is not the same tensor";
  if (dsum.data && collide(dsum, dx, true)) return "dx overlaps dsum, and is not the same tensor";
  if (call.dweight && !call.workspace) return "dweight is wanted, and workspace is nullptr";
  if (reinterpret_cast<uintptr_t>(call.workspace) % sizeof(float) != 0) return "workspace is not aligned to 4 bytes";
  const int64_t weight_bytes = call.cols * static_cast<int64_t>(sizeof(W));
  const Region weight(call.weight, weight_bytes), dweight(call.dweight, weight_bytes);
  const Region workspace(call.dweight ? call.workspace : nullptr, backward_workspace_bytes(call.rows, call.cols));
  if (weight.overlaps(dx.region())) return "dx overlaps weight";
  if (dweight.overlaps(weight)) return "dweight overlaps weight";
  if (workspace.overlaps(weight) || workspace.overlaps(dweight)) return "workspace overlaps weight or dweight";
  for (const Matrix* m : tensors) {
    if (dweight.overlaps(m->region())) return "dweight overlaps a tensor";
    if (workspace.overlaps(m->region())) return "workspace overlaps a tensor";
  }
  return nullptr;
}

template <class P>
cudaError_t launch_gradients(void (*kernel)(P), int64_t blocks, const P& p, cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>(blocks);
  config.blockDim = kGradientThreads;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, p);
}

template <class X, class W, class Y>
cudaError_t run_backward(const BackwardCall<X, W, Y>& call, const Options& options, cudaStream_t stream) {
  if (refusal(call, options) != nullptr) return cudaErrorInvalidValue;
  const int64_t blocks = gradient_blocks(call.rows);
  auto* const partial = call.dweight ? static_cast<float*>(call.workspace) : nullptr;
  const auto given = [&](const auto& tensor) {
    return Gradient<std::remove_pointer_t<decltype(tensor.data)>>{tensor.data, call.matrix(tensor).layout};
  };
  const BackwardProblem<X, W, Y> p = {
      given(call.dy), given(call.dsum), given(call.x), call.weight, given(call.dx),
      partial,        call.rows,        call.cols,     options.eps, options.weight_offset};
  if (blocks > 0)
    if (const cudaError_t error = launch_gradients(row_gradients<X, W, Y>, blocks, p, stream)) return error;
  if (call.dweight == nullptr) return cudaSuccess;
  const WeightProblem<W> w = {partial, blocks, call.dweight, call.cols};
  return launch_gradients(weight_gradient<W>, weight_blocks(call.cols), w, stream);
}

}  // namespace detail

// dx and dweight, from dy, the gradient of y.
//
//   dy        of y's shape and type
//   dsum      for fused_add_rms_norm(): the gradient of residual_out, of x's type; else nullptr
//   x         what was normalized: x of forward(), residual_out of fused_add_rms_norm()
//   weight    as in the forward call, or nullptr
//   dx        of x's type; for fused_add_rms_norm() the gradient of x and of the residual alike. It may be x, dy or
//             dsum, if types and layouts are the same; no other memory may overlap what is written
//   dweight   a pointer to cols elements of weight's type, or nullptr if it is not wanted
//   workspace backward_workspace_bytes(rows, cols) of device memory, aligned to 4 bytes, which need not be prepared;
//             nullptr will do without dweight
//
// Of the options, eps and weight_offset count. Returns what the launches return; or cudaErrorInvalidValue, with nothing
// launched, for what explain_backward() then names.
template <class DY, class DS, class X, class W, class DX, class DW>
cudaError_t backward(const DY& dy, const DS& dsum, const X& x, W weight, const DX& dx, DW dweight, void* workspace,
                     int64_t rows, int64_t cols, const Options& options = {}, cudaStream_t stream = nullptr) {
  return detail::run_backward(detail::backward_call_of(dy, dsum, x, weight, dx, dweight, workspace, rows, cols),
                              options, stream);
}

// Why a call with these arguments is refused: one sentence. nullptr if it is not refused.
template <class DY, class DS, class X, class W, class DX, class DW>
const char* explain_backward(const DY& dy, const DS& dsum, const X& x, W weight, const DX& dx, DW dweight,
                             void* workspace, int64_t rows, int64_t cols, const Options& options = {}) {
  return detail::refusal(detail::backward_call_of(dy, dsum, x, weight, dx, dweight, workspace, rows, cols), options);
}

}  // namespace rms_norm
