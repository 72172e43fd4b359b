// forward() and fused_add_rms_norm() that end in 8 bits, as the matrix products of serving engines take them.
//
//   y = the norm of x, or of residual_out                 as in rms_norm.cuh
//   q = y / scale, rounded to nearest even                what is too large becomes the largest number of its sign
//
// q is __nv_fp8_e4m3 (up to 448), __nv_fp8_e5m2 (57344) or int8_t (from -128 to 127). y itself is a second output, if
// it is wanted. One kernel reads x once, up to rows of 32 KB, and writes q: y makes no way through memory.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "arguments.cuh"
#include "launch.cuh"
#include "quantized_rows.cuh"

namespace rms_norm {

// Which numbers share a scale, and where the scales are: float32, in device memory, aligned to 4 bytes.
//
// One scale of the whole tensor, which is given:          {scale}
// A scale of each row, which the kernel finds:            {nullptr, scales}
// A scale of each 128 columns of a row:                   {nullptr, scales, 128}
//
// The last block of a row may be shorter. A scale that the kernel finds is max(m / largest, least): m is the largest
// |y|, or upper_bound if that is less; largest is 448, 57344 or 127; and least is 1 / (512 · largest), or 2^-23 for
// int8_t. So a block of zeros has the scale `least`. NaN does not count as the largest |y|.
enum class Scales {
  row_major,     // row r, block b: scales[r · pitch + b]; pitch 0 stands for the blocks of a row
  column_major,  // scales[b · pitch + r]; pitch 0 stands for the rows, rounded up to a multiple of 4, as block-scaled
                 // products of CUTLASS and DeepGEMM read them; the places beyond the rows are not written
};
struct Quantization {
  const float* scale = nullptr;
  float* scales = nullptr;
  int64_t block = 0;  // 0, 64 or 128 columns
  Scales order = Scales::row_major;
  int64_t pitch = 0;                   // with block = 0, from one row's scale to the next; 0 stands for 1
  const float* upper_bound = nullptr;  // one number
};

namespace detail {

template <class X, class R, class W, class Q>
struct QuantizeCall {
  Call<X, R, W, X> norm;
  Tensor<Q> q;
  Quantization how;

  int64_t blocks() const { return how.block == 0 ? 1 : (norm.cols + how.block - 1) / how.block; }
  bool by_columns() const { return how.order == Scales::column_major && how.block != 0; }
  int64_t least_pitch() const { return by_columns() ? norm.rows : blocks(); }
  int64_t pitch() const { return how.pitch != 0 ? how.pitch : by_columns() ? (norm.rows + 3) / 4 * 4 : blocks(); }
  Matrix codes() const { return {q.data, 1, with_strides(q.layout, norm.rows, norm.cols), norm.rows, norm.cols}; }
};

template <class X, class R, class W, class Q>
QuantizeCall<X, R, W, Q> with_codes(const Call<X, R, W, X>& norm, const Tensor<Q>& q, const Quantization& how) {
  static_assert(is_code<Q>, "q has elements of __nv_fp8_e4m3, __nv_fp8_e5m2 or int8_t");
  return {norm, q, how};
}
template <class X, class R, class RO, class W, class Q, class Y>
auto quantize_call_of(const X& x, const R& residual, const RO& residual_out, W weight, const Q& q,
                      const Quantization& how, const Y& y, int64_t rows, int64_t cols) {
  Tensor<Element<X>> norm = {nullptr};
  if constexpr (!std::is_null_pointer_v<Y>) {
    static_assert(std::is_same_v<Element<Y>, Element<X>>, "y has the element type of x");
    norm = as_tensor(y);
  }
  if (norm.data == nullptr) norm.layout = {kContiguous, as_tensor(x).layout.heads, cols};
  return with_codes(call_of(x, residual, residual_out, weight, norm, rows, cols), as_tensor(q), how);
}

template <class X, class R, class W, class Q>
Refusal refusal(const QuantizeCall<X, R, W, Q>& call, const Options& options, const Names& names = {}) {
  const Quantization& how = call.how;
  if ((how.scale == nullptr) == (how.scales == nullptr)) return {"scale or scales is to be given, and not both"};
  if (how.scale && how.block != 0) return {"block is given, and scale is one number for all"};
  if (how.scale && how.upper_bound) return {"upper_bound is given, and scale is not found by the kernel"};
  if (how.block != 0 && how.block != 64 && how.block != 128) return {"block is not 0, 64 or 128"};
  for (const float* pointer : {how.scale, static_cast<const float*>(how.scales), how.upper_bound})
    if (reinterpret_cast<uintptr_t>(pointer) % sizeof(float) != 0) return {"a scale is not aligned to 4 bytes"};
  if (const Refusal wrong = refusal(call.norm, options, names, false)) return wrong;
  if (call.norm.rows == 0) return {};
  if (how.pitch < 0 || how.pitch > INT64_MAX / 64 / std::max(call.norm.rows, call.blocks()))
    return {"pitch is negative or too large for 64-bit addresses"};
  if (call.pitch() < call.least_pitch()) return {"pitch is smaller than what it is to step over"};

  const Matrices<X, R, W, X> m(call.norm);
  const Matrix q = call.codes();
  if (q.data == nullptr) return {names.q, " is nullptr"};
  if (const char* wrong = refusal_of_layout(q, call.norm.x.layout.heads)) return {wrong};
  if (!rows_are_apart(q)) return {"rows of ", names.q, " overlap each other"};
  const Region weight(call.norm.weight, call.norm.cols * static_cast<int64_t>(sizeof(W)));
  if (q.region().overlaps(weight)) return {names.q, " overlaps ", names.weight};
  if (const char* name = m.first([&](const Matrix& t) { return q.region().overlaps(t.region()); }, names))
    return {names.q, " overlaps ", name};
  const int64_t lines = call.by_columns() ? call.blocks() : call.norm.rows;
  const auto bytes = [](int64_t floats) { return floats * static_cast<int64_t>(sizeof(float)); };
  const Region scales(how.scales, bytes(call.least_pitch()), lines, bytes(call.pitch()));
  const Region scale(how.scale, sizeof(float)), bound(how.upper_bound, sizeof(float));
  const auto is_written = [&](const Region& r) {
    return r.overlaps(q.region()) || r.overlaps(m.y.region()) || (m.kCount == 4 && r.overlaps(m.residual_out.region()));
  };
  if (is_written(scale) || is_written(bound) || bound.overlaps(scales)) return {"a scale overlaps what is written"};
  if (scales.overlaps(weight) || scales.overlaps(q.region()) ||
      m.any([&](const Matrix& t) { return scales.overlaps(t.region()); }))
    return {"scales overlaps a tensor"};
  return {};
}

template <int N, int kVectors, int kTeam, Access access, Fit fit, Rounded rounded, class X, class R, class W, class Q>
auto kernel_of(const QuantizeProblem<X, R, W, Q>& p) {
  return p.scale              ? quantized_rows<N, kVectors, kTeam, access, fit, Scaling::tensor, rounded, X, R, W, Q>
         : p.block_packs == 0 ? quantized_rows<N, kVectors, kTeam, access, fit, Scaling::row, rounded, X, R, W, Q>
                              : quantized_rows<N, kVectors, kTeam, access, fit, Scaling::block, rounded, X, R, W, Q>;
}
// At most as many rows at once as a grid may have blocks.
template <int N, int kVectors, int kTeam, Access access, bool kWhole, class X, class R, class W, class Q>
cudaError_t launch_quantized(QuantizeProblem<X, R, W, Q> p, cudaStream_t stream) {
  const int most_packs = kVectors * kTeam, packs = static_cast<int>(std::min<int64_t>(p.packs, most_packs));
  const int threads = threads_of(packs, kVectors, kTeam, std::max(1, p.block_packs));
  const int rows_of_block = kTeam == 32 ? std::max(1, 128 / threads) : 1;
  const auto with_fit = [&](auto fit) {
    return p.round_first ? kernel_of<N, kVectors, kTeam, access, fit.value, Rounded::twice>(p)
                         : kernel_of<N, kVectors, kTeam, access, fit.value, Rounded::once>(p);
  };
  constexpr Fit kFit = kWhole ? Fit::whole : Fit::longer;
  constexpr Fit kBest = access == Access::contiguous && kTeam > 32 ? Fit::full : kFit;
  const auto kernel = packs == kVectors * threads ? with_fit(std::integral_constant<Fit, kBest>())
                                                  : with_fit(std::integral_constant<Fit, kFit>());
  for (p.end = 0; p.end < p.rows;) {
    p.first = p.end;
    p.end = std::min(p.rows, p.first + int64_t{INT32_MAX} * rows_of_block);
    Grid grid = {dim3(static_cast<unsigned>((p.end - p.first + rows_of_block - 1) / rows_of_block)),
                 dim3(static_cast<unsigned>(threads), static_cast<unsigned>(rows_of_block))};
    grid.dependent = p.dependent;
    if (const cudaError_t error = launch(stream, grid, kernel, p)) return error;
  }
  return cudaSuccess;
}

constexpr int64_t kMostContiguousBytes = 64 << 20;  // of a problem that L2 mostly holds until it is read

// A row's sum has an order that depends on its length alone. A problem that does not stay in L2 gets half the threads
// with twice the packs each, which keep that order.
template <int N, Access access, class P>
cudaError_t launch_quantized(const P& p, int64_t packs, int64_t bytes, cudaStream_t stream) {
  if constexpr (access != Access::unaligned && N == 8 && !P::kAdds) {
    constexpr int64_t kLargeBytes = 16 << 20;
    const bool halves =
        packs > 2 * 32 && packs <= 4 * 512 && threads_of(static_cast<int>(packs), 2, kMostThreads) % 64 == 0;
    if (halves && bytes > kLargeBytes)
      return packs <= 4 * 256 ? launch_quantized<N, 4, 256, access, true>(p, stream)
                              : launch_quantized<N, 4, 512, access, true>(p, stream);
  }
  const bool fits = packs <= 2 * kMostThreads;
  if constexpr (access == Access::contiguous)
    if (!fits || bytes > kMostContiguousBytes) return launch_quantized<N, Access::strided>(p, packs, bytes, stream);
  if (packs <= 2 * 32) return launch_quantized<N, 2, 32, access, true>(p, stream);
  if (packs <= 2 * 256) return launch_quantized<N, 2, 256, access, true>(p, stream);
  if (fits) return launch_quantized<N, 2, kMostThreads, access, true>(p, stream);
  if constexpr (access != Access::contiguous) return launch_quantized<N, 2, kMostThreads, access, false>(p, stream);
  return cudaErrorInvalidValue;  // not reached
}

template <class Policy, class X, class R, class W, class Q>
cudaError_t run_quantized(const QuantizeCall<X, R, W, Q>& call, const Options& options, cudaStream_t stream) {
  if (refusal(call, options)) return cudaErrorInvalidValue;
  const auto& norm = call.norm;
  if (norm.rows == 0) return cudaSuccess;
  Device device;
  if (const cudaError_t error = query(device)) return error;
  constexpr int N = 16 / sizeof(X);
  const Matrices<X, R, W, X> m(norm);
  const Matrix q = call.codes();
  const auto steps = [](const Matrix& t) { return Steps{t.layout.stride, t.layout.head_stride}; };

  QuantizeProblem<X, R, W, Q> p;
  p.x = norm.x.data, p.weight = norm.weight, p.y = norm.y.data, p.q = call.q.data;
  p.x_steps = steps(m.x), p.y_steps = steps(m.y), p.q_steps = steps(q);
  if constexpr (p.kAdds) {
    p.residual = norm.residual.data, p.residual_out = norm.residual_out.data;
    p.residual_steps = steps(m.residual), p.residual_out_steps = steps(m.residual_out);
  }
  p.rows = norm.rows, p.cols = norm.cols;
  p.heads = static_cast<unsigned>(m.x.layout.heads);
  p.inverse_cols = 1.0f / static_cast<float>(p.cols);
  p.eps = options.eps;
  p.weight_offset = norm.weight ? options.weight_offset : 1.0f;
  p.round_first = options.rounding == Rounding::llama;
  p.scale = call.how.scale, p.scales = call.how.scales, p.upper_bound = call.how.upper_bound;
  p.block_packs = static_cast<int>(call.how.block / N);
  while (p.block_packs >> p.block_log > 1) ++p.block_log;
  p.scales_row = call.by_columns() ? 1 : call.pitch();
  p.scales_block = call.by_columns() ? call.pitch() : 1;

  const int64_t packs = (p.cols + N - 1) / N;
  p.packs = static_cast<int>(std::min<int64_t>(packs, INT32_MAX));
  const int64_t y_bytes = p.y ? sizeof(X) : 0;
  const int64_t bytes = p.rows * p.cols * (static_cast<int64_t>(sizeof(X)) + 1 + y_bytes + 2 * element_bytes<R>);
  p.dependent = options.dependent_launch && device.has_clusters && bytes <= Policy::kDependentKilobytes * int64_t{1024};
  set_cache(p, options.cache, bytes <= kMostContiguousBytes ? Access::contiguous : Access::strided,
            bytes <= kMostContiguousBytes ? Eviction::normal : Eviction::last);
  const bool aligned =
      p.cols % N == 0 && m.all_aligned(N) && is_aligned(q, N) && is_aligned({norm.weight, sizeof(W), {}, 1, p.cols}, N);
  const auto is_dense = [&](const Matrix& t) { return t.layout.stride == p.cols || p.rows == 1; };
  const bool stores_norm = p.kAdds && p.block_packs != 0 && is_dense(m.y);  // as the kernel of such rows can
  bool contiguous =
      aligned && p.heads == 1 && p.rows <= INT32_MAX && is_dense(m.x) && is_dense(q) && (p.y == nullptr || stores_norm);
  if constexpr (p.kAdds) contiguous = contiguous && is_dense(m.residual) && is_dense(m.residual_out);
  return contiguous ? launch_quantized<N, Access::contiguous>(p, packs, bytes, stream)
         : aligned  ? launch_quantized<N, Access::strided>(p, packs, bytes, stream)
                    : launch_quantized<N, Access::unaligned>(p, packs, bytes, stream);
}

}  // namespace detail

// q, and y if it is not nullptr, from x.
//
//   x, weight, rows, cols   as for forward()
//   q        a pointer or Tensor of __nv_fp8_e4m3, __nv_fp8_e5m2 or int8_t, of rows × cols
//   how      the scale, or where the scales go: see Quantization
//   y        nullptr; or where the norm goes, of x's type. It may be x, if the layouts are the same
//
// Rounding says what is quantized: gemma, the norm in float32; llama, the norm rounded to x's type before the weight
// and after it, as vLLM does. Given the sum of squares, the results are then those of these functions:
//
//   llama    vLLM's rms_norm_static_fp8_quant, rms_norm_dynamic_per_token_quant, rms_norm_per_block_quant: e4m3 with a
//            given scale and int8_t multiply by 1 / scale; e4m3 with a scale that the kernel finds divides by it
//   gemma    FlashInfer's rmsnorm_quant, but for the order of its products: x · rstd · weight · (1 / scale) there, and
//            x · weight · (rstd · (1 / scale)) here
//
// NaN becomes NaN (both of them write the largest number instead), or 0 as int8_t. A row with an infinite number
// becomes zeros, and NaN in its place. With a scale of 0, numbers become the largest of their sign, and zeros NaN. A
// row's numbers do not depend on the rows beside it, nor on where tensors lie. Everything else is as for forward().
template <class Policy = DefaultPolicy, class X, class W, class Q, class Y = std::nullptr_t>
cudaError_t forward_quantized(const X& x, W weight, const Q& q, const Quantization& how, const Y& y, int64_t rows,
                              int64_t cols, const Options& options = {}, cudaStream_t stream = nullptr) {
  return detail::run_quantized<Policy>(detail::quantize_call_of(x, nullptr, nullptr, weight, q, how, y, rows, cols),
                                       options, stream);
}

// The same of residual_out = x + residual, rounded to the residual's type, as fused_add_rms_norm() computes it; so does
// vLLM's fused_add_rms_norm_static_fp8_quant. (Its functions that find scales normalize the sum before it is rounded.)
template <class Policy = DefaultPolicy, class X, class R, class RO, class W, class Q, class Y = std::nullptr_t>
cudaError_t fused_add_rms_norm_quantized(const X& x, const R& residual, const RO& residual_out, W weight, const Q& q,
                                         const Quantization& how, const Y& y, int64_t rows, int64_t cols,
                                         const Options& options = {}, cudaStream_t stream = nullptr) {
  return detail::run_quantized<Policy>(
      detail::quantize_call_of(x, residual, residual_out, weight, q, how, y, rows, cols), options, stream);
}

// Why a call with these arguments is refused, as explain() says it; nullptr if it is not refused.
template <class X, class W, class Q, class Y>
const char* explain_quantized(const X& x, W weight, const Q& q, const Quantization& how, const Y& y, int64_t rows,
                              int64_t cols, const Options& options = {}, const Names& names = {}) {
  return detail::refusal(detail::quantize_call_of(x, nullptr, nullptr, weight, q, how, y, rows, cols), options, names)
      .text();
}
template <class X, class R, class RO, class W, class Q, class Y>
const char* explain_quantized(const X& x, const R& residual, const RO& residual_out, W weight, const Q& q,
                              const Quantization& how, const Y& y, int64_t rows, int64_t cols,
                              const Options& options = {}, const Names& names = {}) {
  return detail::refusal(detail::quantize_call_of(x, residual, residual_out, weight, q, how, y, rows, cols), options,
                         names)
      .text();
}

}  // namespace rms_norm
