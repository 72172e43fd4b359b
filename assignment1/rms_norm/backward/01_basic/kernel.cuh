// 01_basic: the formula as it stands. A block per row computes dx, and a second kernel dweight, a thread per column.
//
// It leaves: both kernels read dy and x, the first of them twice (counter: bytes that loads ask for); and dweight
// occupies one thread per column, which is a block on 16 of the SMs for 4096 columns (counter: blocks).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/backward/shared.cuh"

namespace ladder::backward::basic {

constexpr int kBlockSize = 256;

template <class T>
__global__ void __launch_bounds__(kBlockSize) dx_kernel(const Tensors<T> t) {
  __shared__ float2 warp_sums[32];
  const int64_t row = blockIdx.x, begin = row * t.cols;
  float2 sums = make_float2(0.0f, 0.0f);
  for (int64_t col = threadIdx.x; col < t.cols; col += kBlockSize) {
    const auto x = static_cast<float>(t.x[begin + col]);
    const float g = static_cast<float>(t.dy[begin + col]) * weight_factor(t, col);
    sums.x += x * x;
    sums.y += g * x;
  }
  const RowFactors row_is = row_factors(t, row, block_sums(sums, warp_sums));
  for (int64_t col = threadIdx.x; col < t.cols; col += kBlockSize) {
    const float g = static_cast<float>(t.dy[begin + col]) * weight_factor(t, col);
    const float dx = row_is.rstd * (g - static_cast<float>(t.x[begin + col]) * row_is.slope);
    t.dx[begin + col] = static_cast<T>(t.dsum == nullptr ? dx : dx + static_cast<float>(t.dsum[begin + col]));
  }
  if (threadIdx.x == 0) t.row_scratch[row] = row_is.rstd;
}

template <class T>
__global__ void __launch_bounds__(kBlockSize) dweight_kernel(const Tensors<T> t) {
  const int64_t col = int64_t{blockIdx.x} * kBlockSize + threadIdx.x;
  if (col >= t.cols) return;
  float sum = 0.0f;
  for (int64_t row = 0; row < t.rows; ++row) {
    const int64_t i = row * t.cols + col;
    sum += static_cast<float>(t.dy[i]) * (static_cast<float>(t.x[i]) * t.row_scratch[row]);
  }
  t.dweight[col] = static_cast<T>(sum);
}

inline void launch(const BackwardCall& call, cudaStream_t stream) {
  dispatch(call.dtype, [&](auto* type) {
    const auto t = tensors_of(call, type);
    if (t.rows > 0) dx_kernel<<<static_cast<unsigned>(t.rows), kBlockSize, 0, stream>>>(t);
    if (t.dweight == nullptr) return;
    dweight_kernel<<<static_cast<unsigned>(blocks_for(t.cols, kBlockSize)), kBlockSize, 0, stream>>>(t);
  });
}

inline const Stage<RmsNormBackward> stage{
    "01_basic", "a block per row for dx, a thread per column for dweight", launch, {0, RmsNormBackward::refuses}};

}  // namespace ladder::backward::basic
