// 05_partial_sums: one kernel over dy and x again. As many blocks as fit take rows in turn, and each thread adds up its
// own eight columns of dweight in registers, over all rows of its block. A second kernel adds up the blocks' sums.
//
// It removes the second kernel's reading of dy and x: a thread has a row's elements in hand when it writes dx (counter:
// bytes that loads ask for). What goes through memory instead is a row of floats per block, not per row. The order is
// fixed by the number of blocks: the same bits each time on a GPU with so many SMs.
// It leaves: dy and x are read twice in the loop, since the sums of a row come before its dx.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/backward/shared.cuh"

namespace ladder::backward::partial_sums {

template <class T>
__global__ void __launch_bounds__(kMostThreads) gradients_kernel(const Tensors<T> t) {
  // Two arrays in turn: with one barrier per row, a warp may be one row ahead of another, and never two.
  __shared__ float2 warp_sums[2][32];
  float partial[kColumns] = {};
  int turn = 0;
  for (int64_t row = blockIdx.x; row < t.rows; row += gridDim.x, turn ^= 1) {
    const int64_t begin = row * t.cols;
    float2 sums = make_float2(0.0f, 0.0f);
    for (int64_t col = threadIdx.x; col < t.cols; col += blockDim.x) {
      const auto x = static_cast<float>(t.x[begin + col]);
      sums.x += x * x;
      sums.y += static_cast<float>(t.dy[begin + col]) * weight_factor(t, col) * x;
    }
    const RowFactors row_is = row_factors(t, row, block_sums(sums, warp_sums[turn]));
#pragma unroll
    for (int k = 0; k < kColumns; ++k)
      if (const int64_t col = threadIdx.x + k * blockDim.x; col < t.cols) {
        const auto x = static_cast<float>(t.x[begin + col]), dy = static_cast<float>(t.dy[begin + col]);
        partial[k] += dy * (x * row_is.rstd);
        const float dx = row_is.rstd * (dy * weight_factor(t, col) - x * row_is.slope);
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

inline const Stage<RmsNormBackward> stage{"05_partial_sums",
                                          "dweight in registers over a block's rows, then over the blocks",
                                          launch,
                                          {0, RmsNormBackward::refuses_beyond_8192}};

}  // namespace ladder::backward::partial_sums
