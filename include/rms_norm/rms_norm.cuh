// RMSNorm for NVIDIA GPUs, forward, with or without a residual addition.
//
//   y = x / sqrt(mean(x²) + eps) · (weight_offset + weight)          for each row of `cols` elements
//
//   #include <rms_norm/rms_norm.cuh>
//   cudaError_t error = rms_norm::forward(x, weight, y, rows, cols, {}, stream);
//
// x, weight and y point to device memory of float, __half or __nv_bfloat16, and each may have a type of its own. Sums
// are computed in float32. A call launches on the stream, allocates nothing, waits for nothing, and may be captured
// into a graph. The same call gives the same bits in every run; with Options::batch_invariant, the bits of a row do not
// depend on the rows beside it. The header needs CUDA 12 or newer, C++17, and no other
// file than those beside it, and nvcc to compile it. The formula is that of Zhang and Sennrich, "Root Mean Square Layer
// Normalization", 2019. The repository's ladder explains the kernels, one idea per stage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arguments.cuh"
#include "launch.cuh"
#include "policy.cuh"

#define RMS_NORM_VERSION CUDA_BITS_VERSION  // 10203 is 1.2.3

namespace rms_norm {

// A tensor is a device pointer, if its rows follow each other without gaps, or a Tensor, which also says where each row
// begins:
//
//   rms_norm::forward(Tensor{x, {stride}}, weight, y, rows, cols);
//
// Row r begins (r / heads) · stride + (r % heads) · head_stride elements after `data`. A matrix whose rows are `stride`
// elements apart has the layout {stride}. The query heads within packed rows [tokens, all_heads · cols] have the layout
// {all_heads * cols, query_heads, cols}. Strides may be negative.
//
//   struct Layout { int64_t stride = kContiguous, heads = 1, head_stride = 0; };
//   template <class T> struct Tensor { T* data; Layout layout = {}; };
//
// Where rstd = 1 / sqrt(mean(x²) + eps) is wanted for the backward pass, WithRstd{y, rstd} takes the place of y. rstd
// points to a float for each row, in the order of the rows, which no other memory of the call may overlap. The other
// results keep their bits.
//
//   template <class T, class F> struct WithRstd { T tensor; F* rstd; };
//
// See arguments.cuh for all of them, and for Options.

// y = the norm of x. x and y are tensors of rows × cols; weight is a pointer to cols elements, or nullptr for none.
//
//   rows >= 0, cols >= 1; heads and rows / heads are not both above 65535
//   pointers may have any alignment that suits their type
//   y may be x, if types and layouts are the same; no other memory may overlap y
//
// Returns what the launch returns; or cudaErrorInvalidValue, with nothing launched, for arguments that break these
// rules, and then explain(), given the same arguments, says which. Memory that is too small is not detected. Strided
// tensors may lie in the gaps of each other; a few that do so without overlapping are refused, too, if their strides
// have no large common divisor.
//
// A row whose squares add up to more than float32 holds (magnitudes from about 1.8e19 / sqrt(cols) on) becomes zeros,
// since their root mean square is infinite. An output whose x · weight is beyond 2e31 may become infinite or NaN. With
// eps = 0, or an eps that is 0 in float32, a row of zeros becomes NaN, and so small a row that its squares are 0 in
// float32 (magnitudes below 2.6e-23) becomes infinite and, where it has zeros, NaN. An eps of 1e-38 prevents both.
//
// Policy is the table that chooses the kernel, measured on one GPU: policy.cuh.
template <class Policy = DefaultPolicy, class X, class W, class Y>
cudaError_t forward(const X& x, W weight, const Y& y, int64_t rows, int64_t cols, const Options& options = {},
                    cudaStream_t stream = nullptr) {
  return detail::run<Policy, detail::has_rstd<Y>>(detail::call_of(x, nullptr, nullptr, weight, y, rows, cols), options,
                                                  stream);
}

// residual_out = x + residual, rounded to the residual's type; y = the norm of what residual_out then holds.
// residual_out may be residual or x, and y may be x or residual, if types and layouts are the same. y and residual_out
// are different tensors. Everything else is as above. Serving engines call it in place:
//
//   rms_norm::fused_add_rms_norm(x, residual, /*residual_out=*/residual, weight, /*y=*/x, rows, cols);
template <class Policy = DefaultPolicy, class X, class R, class RO, class W, class Y>
cudaError_t fused_add_rms_norm(const X& x, const R& residual, const RO& residual_out, W weight, const Y& y,
                               int64_t rows, int64_t cols, const Options& options = {}, cudaStream_t stream = nullptr) {
  return detail::run<Policy, detail::has_rstd<Y>>(detail::call_of(x, residual, residual_out, weight, y, rows, cols),
                                                  options, stream);
}

// Why a call with these arguments is refused: one sentence, which stands until the thread asks again. nullptr if it is
// not refused. Names are what the sentence calls the tensors, if not by the names here.
template <class X, class W, class Y>
const char* explain(const X& x, W weight, const Y& y, int64_t rows, int64_t cols, const Options& options = {},
                    const Names& names = {}) {
  return detail::refusal(detail::call_of(x, nullptr, nullptr, weight, y, rows, cols), options, names).text();
}
template <class X, class R, class RO, class W, class Y>
const char* explain(const X& x, const R& residual, const RO& residual_out, W weight, const Y& y, int64_t rows,
                    int64_t cols, const Options& options = {}, const Names& names = {}) {
  return detail::refusal(detail::call_of(x, residual, residual_out, weight, y, rows, cols), options, names).text();
}

// Prepares memory for Options::workspace: kWorkspaceBytes at a device address that is a multiple of 16 are set to zero
// on the stream. Once is enough, since every call leaves the workspace as it needs to find it. It must be done again
// after a kernel was aborted while it used the workspace. Returns cudaErrorInvalidValue for nullptr or another
// alignment.
inline cudaError_t init_workspace(void* workspace, cudaStream_t stream = nullptr) {
  if (workspace == nullptr || reinterpret_cast<uintptr_t>(workspace) % 16 != 0) return cudaErrorInvalidValue;
  return cudaMemsetAsync(workspace, 0, kWorkspaceBytes, stream);
}

}  // namespace rms_norm
