// RMSNorm for NVIDIA GPUs, forward, with or without a residual addition.
//
//   y = x / sqrt(mean(x²) + eps) · (weight_offset + weight)          for each row of `cols` elements
//
//   #include <rms_norm/rms_norm.cuh>
//   cudaError_t error = rms_norm::forward(x, weight, y, rows, cols, {}, stream);
//
// x, weight and y are device pointers to float, __half or __nv_bfloat16, each of a type of its own; sums are float32. A
// call launches on the stream, allocates nothing, waits for nothing, and may be captured into a graph. Results are the
// same in every run. It needs CUDA 12 or newer and C++17, and no other file than those beside it. The formula is that
// of Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019. The repository's ladder explains the kernels,
// one idea a stage.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "launch.cuh"

namespace rms_norm {

// Where the weight comes in: `gemma` computes in float32 and rounds once, at the end; `llama` rounds the normalized
// value to y's type, multiplies, and rounds again. Without a weight the two are the same.
enum class Rounding { gemma, llama };

struct Options {
  float eps = 1e-6f;           // added to the mean of squares: finite, >= 0
  float weight_offset = 0.0f;  // 1 for Gemma's 1 + w; added in float32; has no effect without a weight
  Rounding rounding = Rounding::gemma;

  // Programmatic dependent launch: the kernel starts while the one before it on the stream ends, reads the weight, and
  // only then waits for that kernel, which therefore must not write the weight. Needs compute capability 9.0; elsewhere
  // the launch is a plain one.
  bool dependent_launch = false;

  // Lets many blocks work on one long row. Device memory, kWorkspaceBytes of it, 16-byte aligned, all zero before its
  // first use; calls that may run at the same time need one each. nullptr: long rows take longer.
  void* workspace = nullptr;
};

constexpr size_t kWorkspaceBytes = 128 + 64 * 128 * sizeof(uint64_t);

// Where each row begins, in elements: row r at (r / heads) · stride + (r % heads) · head_stride. A contiguous matrix is
// {cols}; the query heads within a packed [tokens, all_heads · cols] are {all_heads * cols, query_heads, cols}.
struct Layout {
  int64_t stride = 0;
  int64_t heads = 1;
  int64_t head_stride = 0;
};

// x: rows × cols; weight: cols, or nullptr; y: rows × cols. rows >= 0, cols >= 1, any alignment that suits the types;
// heads and rows / heads not both above 65535. y may be x where types and layouts are the same; nothing else may
// overlap an output. Returns cudaErrorInvalidValue, with nothing launched, for arguments that break these rules, else
// what the launch returns. What cannot be noticed: memory that is too small, and tensors that overlap without beginning
// at the same address.
template <class X, class W, class Y>
cudaError_t forward(const X* x, Layout x_layout, const W* weight, Y* y, Layout y_layout, int64_t rows, int64_t cols,
                    const Options& options = {}, cudaStream_t stream = nullptr);

// residual_out = x + residual, rounded to R; y = the norm of what residual_out then holds. residual_out may be residual
// or x, and y may be x or residual, where types and layouts are the same, but y is not residual_out. All else as above.
template <class X, class R, class W, class Y>
cudaError_t forward_add(const X* x, Layout x_layout, const R* residual, Layout residual_layout, R* residual_out,
                        Layout residual_out_layout, const W* weight, Y* y, Layout y_layout, int64_t rows, int64_t cols,
                        const Options& options = {}, cudaStream_t stream = nullptr);

namespace detail {

struct Tensor {
  const void* data;
  size_t element;  // bytes
  Layout layout;
  bool is_output;
};

inline bool operator==(const Layout& a, const Layout& b) {
  return a.stride == b.stride && a.heads == b.heads && a.head_stride == b.head_stride;
}

// Whether no two rows overlap: one stride steps over a row, the other over all that the first one reaches.
inline bool are_apart(const Layout& layout, int64_t rows, int64_t cols) {
  int64_t step = std::abs(layout.head_stride), count = layout.heads, leap = std::abs(layout.stride);
  int64_t leaps = rows / layout.heads;
  if (count == 1 || (leaps > 1 && leap < step)) std::swap(step, leap), std::swap(count, leaps);
  return (count <= 1 || step >= cols) && (leaps <= 1 || leap >= (count - 1) * step + cols);
}

// Whether accesses to packs of n elements, in all rows, begin where they do in a tensor that `other` describes; with
// none, at multiples of their size.
inline bool is_aligned(const Tensor& tensor, int64_t rows, int64_t n, const Tensor& other = {}) {
  const int64_t element = tensor.element, step = std::min<int64_t>(16, n * element) / element;  // of an access
  const auto alike = [&](int64_t here, int64_t there) { return (here - there) % step == 0; };
  const auto place = [](const Tensor& t) {
    return t.data ? static_cast<int64_t>(reinterpret_cast<uintptr_t>(t.data) / t.element) : 0;
  };
  const Layout &layout = tensor.layout, &others = other.layout;
  return alike(place(tensor), place(other)) && (rows <= layout.heads || alike(layout.stride, others.stride)) &&
         (layout.heads == 1 || alike(layout.head_stride, others.head_stride));
}

// From rows to rows a head: heads that follow each other like rows are rows; and what a block has next to each other is
// next to each other in memory, if there is enough of it, or else there are no more heads than rows.
template <class P>
bool split_heads(P& p, const Layout (&layouts)[4]) {
  Steps* const steps[] = {&p.x_steps, &p.y_steps, &p.residual_steps, &p.residual_out_steps};
  for (int i = 0; i < 4; ++i) *steps[i] = {layouts[i].stride, layouts[i].head_stride};
  int64_t heads = layouts[0].heads;
  const bool alike = std::all_of(steps, steps + 4, [&](const Steps* s) { return s->row == heads * s->head; });
  p.rows /= heads;
  if (heads > 1 && (p.rows == 1 || alike)) {
    for (Steps* s : steps) s->row = s->head;
    p.rows *= heads;
    heads = 1;
  }
  const bool near = std::abs(p.x_steps.head) < std::abs(p.x_steps.row) && heads >= 8 && p.rows <= kMostHeads;
  if (p.rows < heads || near) {
    for (Steps* s : steps) std::swap(s->row, s->head);
    std::swap(p.rows, heads);
  }
  p.heads = static_cast<unsigned>(std::min<int64_t>(heads, kMostHeads));
  return heads <= kMostHeads;
}

template <class X, class R, class W, class Y>
cudaError_t check_and_run(Problem<X, R, W, Y> p, const Layout (&layouts)[4], const Options& options,
                          cudaStream_t stream) {
  static_assert(is_element<X> && is_element<W> && is_element<Y> && (std::is_void_v<R> || is_element<R>),
                "elements are float, __half or __nv_bfloat16");
  constexpr int kTensors = p.kAdds ? 4 : 2;
  constexpr size_t kResidual = sizeof(std::conditional_t<p.kAdds, R, char>);
  const Tensor x{p.x, sizeof(X), layouts[0], false}, y{p.y, sizeof(Y), layouts[1], true};
  const Tensor in{p.residual, kResidual, layouts[2], false}, out{p.residual_out, kResidual, layouts[3], true};
  const Tensor* const tensors[] = {&x, &y, &in, &out};
  const int64_t heads = x.layout.heads;
  const auto is_wrong = [&](const Tensor* t) {
    return t->data == nullptr || reinterpret_cast<uintptr_t>(t->data) % t->element != 0 || t->layout.heads != heads ||
           (t->is_output && !are_apart(t->layout, p.rows, p.cols));
  };
  const auto collide = [](const Tensor& a, const Tensor& b, bool same_type) {
    return a.data == b.data && !(same_type && a.layout == b.layout);
  };

  if (p.rows < 0 || p.cols < 1 || heads < 1 || p.rows % heads != 0 || !(options.eps >= 0.0f) ||
      !std::isfinite(options.eps) || !std::isfinite(options.weight_offset))
    return cudaErrorInvalidValue;
  if (p.rows == 0) return cudaSuccess;
  if (p.cols > INT64_MAX / 16 / p.rows || std::any_of(tensors, tensors + kTensors, is_wrong) ||
      collide(x, y, std::is_same_v<X, Y>) || reinterpret_cast<uintptr_t>(p.weight) % sizeof(W) != 0 ||
      reinterpret_cast<uintptr_t>(options.workspace) % 16 != 0)
    return cudaErrorInvalidValue;
  if (p.kAdds && (collide(x, out, std::is_same_v<X, R>) || collide(in, out, true) ||
                  collide(in, y, std::is_same_v<R, Y>) || out.data == y.data))
    return cudaErrorInvalidValue;

  constexpr int kWide = 16 / sizeof(X), kWord = 4 / sizeof(X);
  constexpr int kShifted = sizeof(W) > sizeof(X) ? kWide / 2 : kWide;  // words of the weight cost more than packs of x
  const auto all_aligned = [&](int n, const Tensor& other = {}) {
    const auto is = [&](const Tensor* t) { return is_aligned(*t, p.rows, n, other); };
    return std::all_of(tensors, tensors + kTensors, is);
  };
  const auto are_packs = [&](int n) {
    return p.cols % n == 0 && all_aligned(n) && is_aligned({p.weight, sizeof(W), {}, false}, 1, n);
  };
  const bool wide = are_packs(kWide);
  const bool unaligned = !wide && p.cols >= kUnalignedPacks * kWide && all_aligned(kWide, x);
  const bool word = !wide && !unaligned && are_packs(kWord);

  p.inverse_cols = 1.0f / static_cast<float>(p.cols);
  p.eps = options.eps;
  p.weight_offset = options.weight_offset;
  p.round_first = options.rounding == Rounding::llama;
  p.dependent = options.dependent_launch;
  p.workspace = static_cast<uint64_t*>(options.workspace);
  if (!split_heads(p, layouts)) return cudaErrorInvalidValue;

  if (wide) return dispatch<kWide, true>(p, stream);
  if (unaligned) return dispatch<kShifted, false>(p, stream);
  if (word) return dispatch<kWord, true>(p, stream);
  return dispatch<1, true>(p, stream);
}

}  // namespace detail

template <class X, class W, class Y>
cudaError_t forward(const X* x, Layout x_layout, const W* weight, Y* y, Layout y_layout, int64_t rows, int64_t cols,
                    const Options& options, cudaStream_t stream) {
  detail::Problem<X, void, W, Y> p = {x, weight, y};
  p.rows = rows, p.cols = cols;
  return detail::check_and_run(p, {x_layout, y_layout}, options, stream);
}

template <class X, class R, class W, class Y>
cudaError_t forward_add(const X* x, Layout x_layout, const R* residual, Layout residual_layout, R* residual_out,
                        Layout residual_out_layout, const W* weight, Y* y, Layout y_layout, int64_t rows, int64_t cols,
                        const Options& options, cudaStream_t stream) {
  detail::Problem<X, R, W, Y> p = {x, weight, y};
  p.rows = rows, p.cols = cols;
  p.residual = residual, p.residual_out = residual_out;
  return detail::check_and_run(p, {x_layout, y_layout, residual_layout, residual_out_layout}, options, stream);
}

// The same for contiguous rows.
template <class X, class W, class Y>
cudaError_t forward(const X* x, const W* weight, Y* y, int64_t rows, int64_t cols, const Options& options = {},
                    cudaStream_t stream = nullptr) {
  return forward(x, Layout{cols}, weight, y, Layout{cols}, rows, cols, options, stream);
}
template <class X, class R, class W, class Y>
cudaError_t forward_add(const X* x, const R* residual, R* residual_out, const W* weight, Y* y, int64_t rows,
                        int64_t cols, const Options& options = {}, cudaStream_t stream = nullptr) {
  const Layout layout{cols};
  return forward_add(x, layout, residual, layout, residual_out, layout, weight, y, layout, rows, cols, options, stream);
}

}  // namespace rms_norm
