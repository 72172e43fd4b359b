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
#include "gradients.cuh"
#include "launch.cuh"

namespace rms_norm {

namespace detail {

// The most rows of partial sums that a call makes: one for each block or cluster of blocks.
constexpr int64_t kMostPartials = 640, kMostPartialColumns = 160 * 8192;
inline int64_t weight_blocks(int64_t cols) { return (cols + 31) / 32; }  // of weight_gradient()
inline int64_t partials_of(int64_t rows, int64_t cols) {
  return std::min(rows, std::clamp<int64_t>(kMostPartialColumns / cols, 20, kMostPartials));
}

}  // namespace detail

// The bytes that backward() needs for dweight; 0 for a shape that it refuses or that has no rows.
inline size_t backward_workspace_bytes(int64_t rows, int64_t cols) {
  if (rows < 1 || cols < 1 || cols > INT64_MAX / 64 / detail::kMostPartials) return 0;
  return sizeof(float) * static_cast<size_t>(detail::partials_of(rows, cols) * cols);
}

namespace detail {

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
  if (call.cols > INT64_MAX / 64 / std::max<int64_t>(call.rows, kMostPartials))
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

// How many rows of partial sums a launch makes, and its blocks, which are `parts` for each.
struct GradientGrid {
  dim3 threads;
  int64_t partials;
  int parts = 1;
};
constexpr int64_t kGradientsStayBytes = 32 << 20;

template <class Shape, class X, class W, class Y>
cudaError_t launch_rows(BackwardProblem<X, W, Y>& p, const GradientGrid& grid, cudaStream_t stream) {
  const int threads = static_cast<int>(grid.threads.x * grid.threads.y);
  p.parts = grid.parts, p.part_packs = (p.packs + grid.parts - 1) / grid.parts;
  int bytes = Shape::kAligned ? Shape::kStages * Stage<Shape, X, Y>::bytes(threads, p.dsum.data != nullptr) : 0;
  if (grid.threads.y > 1) bytes = std::max<int>(bytes, sizeof(float) * threads * Shape::kVectors * Shape::N);
  if (grid.partials == 1) p.partial = nullptr;
  if (p.partial) p.dweight = nullptr;
  const auto kernel = row_gradients<Shape, X, W, Y>;
  if (bytes > (48 << 10) - 1024) {
    int most_bytes = 0;
    if (const cudaError_t error = most_shared_bytes(most_bytes)) return error;
    if (const cudaError_t error =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most_bytes - 1024))
      return error;
  }
  Grid launched = {dim3(static_cast<unsigned>(grid.partials * grid.parts)), grid.threads, bytes, grid.parts};
  launched.dependent = p.dependent;
  return launch(stream, launched, kernel, p);
}

// The kernel of a row depends on its length alone, so that its sums always have one order.
template <int N, bool kAligned, class X, class W, class Y>
cudaError_t launch_gradients(BackwardProblem<X, W, Y>& p, int64_t& partials, const Device& device, cudaStream_t stream) {
  const int64_t packs = (p.cols + N - 1) / N, processors = device.multiprocessors;
  const auto at_most = [&](int64_t count) { return partials = std::min({count, partials, p.rows}); };
  p.packs = static_cast<int>(std::min<int64_t>(packs, INT32_MAX));
  if (packs <= 32 * 4) {
    const unsigned lanes = static_cast<unsigned>(threads_of(p.packs, 4, 32)), most = 256 / lanes;
    const unsigned least = 32 / lanes;
    const int64_t wanted = (p.rows + 2 * processors - 1) / (2 * processors);
    unsigned teams = least;
    while (teams < most && teams < wanted) teams *= 2;
    return launch_rows<GradientShape<N, 4, 32, 256, 2, 2, kAligned>>(
        p, {dim3(lanes, teams), at_most(std::min<int64_t>(2 * processors, (p.rows + teams - 1) / teams))}, stream);
  }
  const auto threads_for = [](int64_t count) { return static_cast<unsigned>((count + 31) / 32 * 32); };
  if (packs <= 512) {
    const unsigned threads = threads_for(packs);
    return launch_rows<GradientShape<N, 1, 512, 512, 2, 3, kAligned>>(
        p, {dim3(threads), at_most(1024 / threads * processors)}, stream);
  }
  int parts = 1;
  while (parts < kMostParts && packs > parts * 1024) parts *= 2;
  if (packs <= parts * 1024 && (parts == 1 || device.has_clusters)) {
    const unsigned threads = threads_for(((packs + parts - 1) / parts + 1) / 2);
    return launch_rows<GradientShape<N, 2, 512, 512, 1, 3, kAligned>>(
        p, {dim3(threads), at_most(std::max<int64_t>(1, 512 / threads * processors / parts)), parts}, stream);
  }
  Grid grid = {dim3(static_cast<unsigned>(at_most(4 * processors))), dim3(kGradientThreads)};
  grid.dependent = p.dependent;
  if (p.partial) p.dweight = nullptr;
  return launch(stream, grid, long_row_gradients<X, W, Y>, p);
}

// What L2 does with the tensors of a call. Those of a large one do not stay until another kernel reads them.
template <class P>
void set_cache(P& p, Cache cache, int64_t bytes) {
  const bool leaves = cache == Cache::evict_first || (cache == Cache::tuned && bytes > kGradientsStayBytes);
  p.reads = p.writes = property_of(leaves ? Eviction::first : Eviction::normal);
}

template <class X, class W, class Y>
BackwardProblem<X, W, Y> problem_of(const BackwardCall<X, W, Y>& call, const Options& options) {
  const Matrix x = call.matrix(call.x), dy = call.matrix(call.dy), dx = call.matrix(call.dx),
               dsum = call.matrix(call.dsum);
  const Matrix* const tensors[] = {&x, &dy, &dx, call.dsum.data ? &dsum : &x};
  int64_t heads = x.layout.heads;
  const bool fold = std::all_of(std::begin(tensors), std::end(tensors), [&](const Matrix* m) {
    return m->layout.stride == heads * m->layout.head_stride || call.rows == heads;
  });
  const auto rows_of = [&](const auto& tensor, const Matrix& m) {
    return Gradient<std::remove_pointer_t<decltype(tensor.data)>>{
        tensor.data, heads > 1 && fold ? m.layout.head_stride : m.layout.stride, m.layout.head_stride};
  };
  BackwardProblem<X, W, Y> p = {rows_of(call.x, x), rows_of(call.dy, dy), rows_of(call.dx, dx),
                                rows_of(call.dsum, dsum), call.weight, options.rstd,
                                call.dweight ? static_cast<float*>(call.workspace) : nullptr, call.dweight, call.rows,
                                call.cols, fold ? 1 : heads};
  p.inverse_cols = 1.0f / static_cast<float>(p.cols);
  p.eps = options.eps;
  p.weight_offset = call.weight ? options.weight_offset : 1.0f;
  return p;
}

template <class X, class W, class Y>
cudaError_t run_backward(const BackwardCall<X, W, Y>& call, const Options& options, cudaStream_t stream) {
  if (refusal(call, options) != nullptr) return cudaErrorInvalidValue;
  Device device;
  if (const cudaError_t error = query(device)) return error;
  int64_t partials = 0;
  if (call.rows > 0) {
    constexpr int N = 16 / sizeof(X);
    BackwardProblem<X, W, Y> p = problem_of(call, options);
    set_cache(p, options.cache, p.rows * p.cols * static_cast<int64_t>(2 * sizeof(X) + sizeof(Y)));
    p.dependent = options.dependent_launch && device.has_clusters;
    const auto is_row_aligned = [&](const void* row, int64_t element) {
      return is_aligned(Matrix{row, element, {}, 1, p.cols}, N);
    };
    const bool aligned = p.cols % N == 0 && is_aligned(call.matrix(call.x), N) && is_aligned(call.matrix(call.dy), N) &&
                         is_aligned(call.matrix(call.dx), N) &&
                         (!call.dsum.data || is_aligned(call.matrix(call.dsum), N)) &&
                         is_row_aligned(call.weight, sizeof(W)) && is_row_aligned(call.dweight, sizeof(W)) &&
                         is_row_aligned(p.partial, sizeof(float));
    partials = partials_of(p.rows, p.cols);
    const cudaError_t error = aligned ? launch_gradients<N, true>(p, partials, device, stream)
                                      : launch_gradients<N, false>(p, partials, device, stream);
    if (error != cudaSuccess || call.dweight == nullptr || p.partial == nullptr) return error;
  }
  if (call.dweight == nullptr) return cudaSuccess;
  const auto* const partial = static_cast<const float*>(call.workspace);
  const bool aligned = reinterpret_cast<uintptr_t>(partial) % 16 == 0 && call.cols % 4 == 0;
  const WeightProblem<W> w = {partial, partials, call.dweight, call.cols, aligned};
  Grid grid = {dim3(static_cast<unsigned>(weight_blocks(call.cols))), dim3(kWeightLanes, kWeightRows)};
  grid.dependent = device.has_clusters && (call.rows > 0 || options.dependent_launch);
  return launch(stream, grid, weight_gradient<W>, w);
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
