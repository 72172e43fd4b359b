// 06_registers: 05_partial_sums with the row in registers. A thread reads its eight elements of dy and of x once, and
// the weight once for all rows.
//
// It removes the second reading of dy and x, and the weight's for each row (counters: bytes that loads ask for; global
// load requests). All sixteen loads of a thread are issued before the first sum needs one.
// It leaves: an element of 16 bits per lane and load (counter: instructions executed).
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/backward/shared.cuh"

namespace ladder::backward::registers {

template <class T>
__global__ void __launch_bounds__(kMostThreads) gradients_kernel(const Tensors<T> t) {
  __shared__ float2 warp_sums[2][32];
  float partial[kColumns] = {}, factor[kColumns];
#pragma unroll
  for (int k = 0; k < kColumns; ++k) {
    const int64_t col = threadIdx.x + k * blockDim.x;
    factor[k] = col < t.cols ? weight_factor(t, col) : 0.0f;
  }
  int turn = 0;
  for (int64_t row = blockIdx.x; row < t.rows; row += gridDim.x, turn ^= 1) {
    const int64_t begin = row * t.cols;
    float dy[kColumns] = {}, x[kColumns] = {};
#pragma unroll
    for (int k = 0; k < kColumns; ++k)
      if (const int64_t col = threadIdx.x + k * blockDim.x; col < t.cols) {
        dy[k] = static_cast<float>(t.dy[begin + col]);
        x[k] = static_cast<float>(t.x[begin + col]);
      }
    float2 sums = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      sums.x += x[k] * x[k];
      sums.y += dy[k] * factor[k] * x[k];
    }
    const RowFactors row_is = row_factors(t, row, block_sums(sums, warp_sums[turn]));
#pragma unroll
    for (int k = 0; k < kColumns; ++k)
      if (const int64_t col = threadIdx.x + k * blockDim.x; col < t.cols) {
        partial[k] += dy[k] * (x[k] * row_is.rstd);
        const float dx = row_is.rstd * (dy[k] * factor[k] - x[k] * row_is.slope);
        t.dx[begin + col] = static_cast<T>(t.dsum == nullptr ? dx : dx + static_cast<float>(t.dsum[begin + col]));
      }
  }
#pragma unroll
  for (int k = 0; k < kColumns; ++k)
    if (const int64_t col = threadIdx.x + k * blockDim.x; t.dweight != nullptr && col < t.cols)
      t.partial[blockIdx.x * t.cols + col] = partial[k];
}

inline void launch(const BackwardCall& call, cudaStream_t stream) {
  dispatch(call.dtype, [&](auto* type) {
    const auto t = tensors_of(call, type);
    const unsigned threads = threads_for(t.cols);
    const int64_t most = resident_blocks(gradients_kernel<std::decay_t<decltype(*type)>>, static_cast<int>(threads));
    const auto blocks = static_cast<unsigned>(std::min({t.rows, most, kMostPartials}));
    if (blocks > 0) gradients_kernel<<<blocks, threads, 0, stream>>>(t);
    if (t.dweight == nullptr) return;
    partial_sums_kernel<<<static_cast<unsigned>(blocks_for(t.cols, kTile)), dim3(kTile, kTile), 0, stream>>>(t, blocks);
  });
}

inline const Stage<RmsNormBackward> stage{
    "06_registers", "the row stays in registers: one reading", launch, {0, RmsNormBackward::refuses_beyond_8192}};

}  // namespace ladder::backward::registers
