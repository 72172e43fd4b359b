// 03_block_per_column: 01_basic with a block per column for dweight. Its threads share the rows.
//
// It removes what keeps most SMs idle in 01_basic: there are as many blocks as columns (counter: blocks), and the same
// call gives the same bits, as 02_atomics does not. It costs coalescing: the lanes of a warp read elements that lie a
// whole row apart, 32 sectors for 64 bytes (counter: sectors per load request).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/backward/shared.cuh"

namespace ladder::backward::block_per_column {

constexpr int kBlockSize = 256;

template <class T>
__global__ void __launch_bounds__(kBlockSize) dx_kernel(const Tensors<T> t) {
  write_dx_and_rstd(t, blockIdx.x);
}

template <class T>
__global__ void __launch_bounds__(kBlockSize) dweight_kernel(const Tensors<T> t) {
  const int64_t col = blockIdx.x;
  float sum = 0.0f;
  for (int64_t row = threadIdx.x; row < t.rows; row += kBlockSize) {
    const int64_t i = row * t.cols + col;
    sum += static_cast<float>(t.dy[i]) * (static_cast<float>(t.x[i]) * t.row_scratch[row]);
  }
  sum = block_reduce_sum<kBlockSize>(sum);
  if (threadIdx.x == 0) t.dweight[col] = static_cast<T>(sum);
}

inline void launch(const BackwardCall& call, cudaStream_t stream) {
  dispatch(call.dtype, [&](auto* type) {
    const auto t = tensors_of(call, type);
    if (t.rows > 0) dx_kernel<<<static_cast<unsigned>(t.rows), kBlockSize, 0, stream>>>(t);
    if (t.dweight != nullptr) dweight_kernel<<<static_cast<unsigned>(t.cols), kBlockSize, 0, stream>>>(t);
  });
}

inline const Stage<RmsNormBackward> stage{"03_block_per_column",
                                          "a block per column for dweight, its threads a row apart",
                                          launch,
                                          {0, RmsNormBackward::refuses}};

}  // namespace ladder::backward::block_per_column
