// forward() and fused_add_rms_norm() that end in NVFP4, the 4-bit numbers of GPUs after Hopper.
//
//   y      = the norm of x, or of residual_out             in float32, as with Rounding::gemma
//   scales = largest |y| of 16 columns / 6 / scale         rounded to nearest even, at most 448
//   q      = y / (scales · scale)                          rounded to nearest even, at most 6; zeros where scales is 0
//
// q is e2m1 (0, 0.5, 1, 1.5, 2, 3, 4 or 6, and a sign): two numbers in a byte, the first one in its lower half. `scale`
// is one number of the whole tensor, which is given, and positive: the largest |y| that is to be expected / (448 · 6).
// (vLLM and FlashInfer have its inverse.) NaN becomes 6, and does not count as the largest |y|.
//
// The kernel is right on every GPU; those of compute capability 10.0 and higher have an instruction for e2m1 (in code
// for sm_100a and its like), and matrix products that read it. It was checked on the CPU device, and no such GPU has
// ever measured it: it is written to be short, and reads a row twice.
#pragma once

#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "arguments.cuh"
#include "launch.cuh"

namespace rms_norm {

struct Nvfp4 {
  const float* scale;
  __nv_fp8_e4m3* scales;  // of 16 columns each

  // The order that block-scaled products of cuBLAS and CUTLASS read: tiles of 128 rows × 4 scales, 512 bytes each, one
  // row of tiles after the other. It has nvfp4_scales() places; those that no block has are not written. Otherwise
  // row-major, without gaps.
  bool tiled = false;
};
constexpr int64_t nvfp4_scales(int64_t rows, int64_t cols) { return (rows + 127) / 128 * ((cols + 63) / 64) * 512; }

namespace detail {

constexpr int kNvfp4Threads = 256, kNvfp4Block = 16;

__device__ inline unsigned round_to_e2m1(float value) {
  const float size = fabsf(value);
  const unsigned code = (size > 0.25f) + (size >= 0.75f) + (size > 1.25f) + (size >= 1.75f) + (size > 2.5f) +
                        (size >= 3.5f) + (size > 5.0f);
  return value != value ? 7 : code | __float_as_uint(value) >> 31 << 3;
}
__device__ inline unsigned round_to_e2m1(float low, float high) {
#if __CUDA_ARCH_SPECIFIC__ >= 1000 || __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000
  unsigned short byte;
  asm("{ .reg .b8 both; cvt.rn.satfinite.e2m1x2.f32 both, %1, %2; mov.b16 %0, {both, 0}; }"
      : "=h"(byte)
      : "f"(high), "f"(low));
  return byte;
#else
  return round_to_e2m1(low) | round_to_e2m1(high) << 4;
#endif
}

template <class X, class R, class W>
struct Nvfp4Problem : Problem<X, R, W, X> {
  using Norm = Problem<X, R, W, X>;
  uint2* q = nullptr;
  Nvfp4 how = {};

  __device__ int64_t place_of_scale(int64_t row, int64_t block) const {
    const int64_t blocks = this->cols / kNvfp4Block;
    if (!how.tiled) return row * blocks + block;
    return (row / 128 * ((blocks + 3) / 4) + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
  }
};

// A block of threads per row, and 16 columns per thread at one time.
template <class X, class R, class W>
__global__ void __launch_bounds__(kNvfp4Threads) nvfp4_rows(const Nvfp4Problem<X, R, W> p) {
  constexpr int N = 16 / sizeof(X), kPacks = kNvfp4Block / N;
  using Row = detail::Row<N, Access::strided, typename Nvfp4Problem<X, R, W>::Norm>;
  const Row row(p, blockIdx.x);
  const int64_t blocks = p.cols / kNvfp4Block;
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < blocks * kPacks; i += kNvfp4Threads) {
    const auto input = row.add(row.load_x(i), row.load_residual(i));
    row.template store_sum<false>(i, input);
    sum += sum_of_squares(input);
  }
  // What a thread has written to residual_out, another one reads: the barriers within are before it.
  const float rstd = row.rstd(block_sum<kNvfp4Threads>(sum, [] {}));
  const float scale = *p.how.scale;
  for (int64_t i = threadIdx.x; i < blocks; i += kNvfp4Threads) {
    float y[kNvfp4Block], most = 0.0f;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      float value[N];
      unpack(row.load_again(i * kPacks + k), value);
      const auto factors = row.factors(row.load_weight(i * kPacks + k));
#pragma unroll
      for (int n = 0; n < N; ++n) {
        y[k * N + n] = value[n] * rstd * factors.of[n];
        most = fmaxf(most, fabsf(y[k * N + n]));
      }
    }
    const __nv_fp8_e4m3 rounded(most / 6.0f / scale);
    const float divisor = static_cast<float>(rounded) * scale, inverse = divisor > 0.0f ? 1.0f / divisor : 0.0f;
    unsigned words[2] = {};
#pragma unroll
    for (int k = 0; k < kNvfp4Block; k += 2)
      words[k / 8] |= round_to_e2m1(y[k] * inverse, y[k + 1] * inverse) << (k % 8 * 4);
    p.q[blockIdx.x * blocks + i] = {words[0], words[1]};
    p.how.scales[p.place_of_scale(blockIdx.x, i)] = rounded;
  }
}

template <class X, class R, class RO, class W>
auto nvfp4_call_of(const X& x, const R& residual, const RO& residual_out, W weight, int64_t rows, int64_t cols) {
  Tensor<Element<X>> none = {nullptr, {cols, as_tensor(x).layout.heads, cols}};
  return call_of(x, residual, residual_out, weight, none, rows, cols);
}

template <class X, class R, class W>
Refusal refusal(const Call<X, R, W, X>& call, const uint8_t* q, const Nvfp4& how, const Options& options) {
  if (options.rounding != Rounding::gemma) return {"rounding is not gemma: NVFP4 is rounded from float32 once"};
  if (call.x.layout.heads != 1) return {"rows that end in NVFP4 have no heads"};
  if (const Refusal wrong = refusal(call, options, {}, false)) return wrong;
  if (call.cols % kNvfp4Block != 0) return {"cols is not a multiple of 16"};
  if (call.rows > INT32_MAX) return {"rows is above 2147483647"};
  if (call.rows == 0) return {};
  if (q == nullptr || how.scale == nullptr || how.scales == nullptr) return {"q, scale or scales is nullptr"};
  const Matrices<X, R, W, X> m(call);
  const Matrix weight{call.weight, sizeof(W), {}, 1, call.cols};
  constexpr int N = 16 / sizeof(X);
  const auto is_wide = [](const Matrix& t) { return is_aligned(t, N); };
  bool wide = is_wide(m.x) && is_aligned(weight, N);
  if constexpr (!std::is_void_v<R>) wide = wide && is_wide(m.residual) && is_wide(m.residual_out);
  if (!wide) return {"rows or the weight do not begin on 16-byte boundaries"};
  if (reinterpret_cast<uintptr_t>(q) % 8 != 0) return {"q is not aligned to 8 bytes"};
  if (reinterpret_cast<uintptr_t>(how.scale) % 4 != 0) return {"scale is not aligned to 4 bytes"};

  const int64_t blocks = call.rows * (call.cols / kNvfp4Block);
  const Region written[] = {{q, blocks * 8}, {how.scales, how.tiled ? nvfp4_scales(call.rows, call.cols) : blocks}};
  const Region scale(how.scale, 4), weights(call.weight, call.cols * static_cast<int64_t>(sizeof(W)));
  for (const Region& region : written)
    if (region.overlaps(scale) || region.overlaps(weights) ||
        m.any([&](const Matrix& t) { return region.overlaps(t.region()); }))
      return {"q or scales overlaps another tensor"};
  if (written[0].overlaps(written[1])) return {"q overlaps scales"};
  if (!std::is_void_v<R> && scale.overlaps(m.residual_out.region())) return {"scale overlaps residual_out"};
  return {};
}

template <class X, class R, class W>
cudaError_t run_nvfp4(const Call<X, R, W, X>& call, uint8_t* q, const Nvfp4& how, const Options& options,
                      cudaStream_t stream) {
  if (refusal(call, q, how, options)) return cudaErrorInvalidValue;
  if (call.rows == 0) return cudaSuccess;
  const Matrices<X, R, W, X> m(call);
  Nvfp4Problem<X, R, W> p;
  p.x = call.x.data, p.weight = call.weight, p.y = nullptr;
  if constexpr (p.kAdds) p.residual = call.residual.data, p.residual_out = call.residual_out.data;
  p.rows = call.rows, p.cols = call.cols;
  fold_heads(p, m);
  p.inverse_cols = 1.0f / static_cast<float>(p.cols);
  p.eps = options.eps;
  p.weight_offset = call.weight ? options.weight_offset : 1.0f;
  set_cache(p, options.cache, Access::contiguous, Eviction::normal);
  p.q = reinterpret_cast<uint2*>(q), p.how = how;
  return launch(stream, grid_of(p, p.rows, dim3(kNvfp4Threads)), nvfp4_rows<X, R, W>, p);
}

}  // namespace detail

// q, a pointer to rows · cols / 2 bytes, and how.scales, from x: pointers or Tensors without heads, as for forward(),
// that begin on 16-byte boundaries in every row. cols is a multiple of 16, rounding is gemma, and the launch is a plain
// one.
template <class X, class W>
cudaError_t forward_nvfp4(const X& x, W weight, uint8_t* q, const Nvfp4& how, int64_t rows, int64_t cols,
                          const Options& options = {}, cudaStream_t stream = nullptr) {
  return detail::run_nvfp4(detail::nvfp4_call_of(x, nullptr, nullptr, weight, rows, cols), q, how, options, stream);
}

// The same of residual_out = x + residual, rounded to the residual's type, which is x's.
template <class X, class R, class RO, class W>
cudaError_t fused_add_rms_norm_nvfp4(const X& x, const R& residual, const RO& residual_out, W weight, uint8_t* q,
                                     const Nvfp4& how, int64_t rows, int64_t cols, const Options& options = {},
                                     cudaStream_t stream = nullptr) {
  return detail::run_nvfp4(detail::nvfp4_call_of(x, residual, residual_out, weight, rows, cols), q, how, options,
                           stream);
}

// Why a call with these arguments is refused, as explain() says it; nullptr if it is not refused.
template <class X, class W>
const char* explain_nvfp4(const X& x, W weight, const uint8_t* q, const Nvfp4& how, int64_t rows, int64_t cols,
                          const Options& options = {}) {
  return detail::refusal(detail::nvfp4_call_of(x, nullptr, nullptr, weight, rows, cols), q, how, options).text();
}
template <class X, class R, class RO, class W>
const char* explain_nvfp4(const X& x, const R& residual, const RO& residual_out, W weight, const uint8_t* q,
                          const Nvfp4& how, int64_t rows, int64_t cols, const Options& options = {}) {
  return detail::refusal(detail::nvfp4_call_of(x, residual, residual_out, weight, rows, cols), q, how, options).text();
}

}  // namespace rms_norm
