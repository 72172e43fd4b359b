// 02_atomics: one kernel over dy and x. Each thread adds its terms of dweight to the columns' sums with atomicAdd.
//
// It removes the second kernel over dy and x, and its few blocks (counters: bytes that loads ask for; global load
// requests). It costs an atomic operation per element, all rows on the same columns (counter: global atomic requests),
// and the order: blocks add in the order in which they arrive, float additions round, so the same call gives other
// bits.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/backward/shared.cuh"
#include "common/cuda_check.h"

namespace ladder::backward::atomics {

constexpr int kBlockSize = 256;

template <class T>
__global__ void __launch_bounds__(kBlockSize) gradients_kernel(const Tensors<T> t) {
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
    const auto x = static_cast<float>(t.x[begin + col]), dy = static_cast<float>(t.dy[begin + col]);
    if (t.dweight != nullptr) atomicAdd(t.partial + col, dy * (x * row_is.rstd));
    const float dx = row_is.rstd * (dy * weight_factor(t, col) - x * row_is.slope);
    t.dx[begin + col] = static_cast<T>(t.dsum == nullptr ? dx : dx + static_cast<float>(t.dsum[begin + col]));
  }
}

template <class T>
__global__ void __launch_bounds__(kBlockSize) rounded_kernel(const Tensors<T> t) {
  const int64_t col = int64_t{blockIdx.x} * kBlockSize + threadIdx.x;
  if (col < t.cols) t.dweight[col] = static_cast<T>(t.partial[col]);
}

inline void launch(const BackwardCall& call, cudaStream_t stream) {
  dispatch(call.dtype, [&](auto* type) {
    const auto t = tensors_of(call, type);
    if (t.dweight != nullptr) CUDA_CHECK(cudaMemsetAsync(t.partial, 0, t.cols * sizeof(float), stream));
    if (t.rows > 0) gradients_kernel<<<static_cast<unsigned>(t.rows), kBlockSize, 0, stream>>>(t);
    if (t.dweight == nullptr) return;
    rounded_kernel<<<static_cast<unsigned>(blocks_for(t.cols, kBlockSize)), kBlockSize, 0, stream>>>(t);
  });
}

inline const Stage<RmsNormBackwardAnyOrder> stage{
    "02_atomics",
    "one kernel, which adds to dweight with atomics: other bits each time",
    launch,
    {0, RmsNormBackwardAnyOrder::refuses}};

}  // namespace ladder::backward::atomics
