// 04_column_tiles: 03_block_per_column with 32 columns per block. The lanes of a warp read 32 columns of one row, and
// 32 warps share the rows.
//
// It removes the scattered requests: 32 elements of 16 bits side by side are 2 sectors in place of 32 (counter: sectors
// per load request). What the warps have added up meets in shared memory, whose rows are a word longer than a warp, so
// that columns of it lie in different banks.
// It leaves: the second kernel reads all of dy and x again (counter: bytes that loads ask for).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/backward/shared.cuh"

namespace ladder::backward::column_tiles {

constexpr int kBlockSize = 256;

template <class T>
__global__ void __launch_bounds__(kBlockSize) dx_kernel(const Tensors<T> t) {
  write_dx_and_rstd(t, blockIdx.x);
}

template <class T>
__global__ void __launch_bounds__(kTile* kTile) dweight_kernel(const Tensors<T> t) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t col = int64_t{blockIdx.x} * kTile + threadIdx.x;
  float sum = 0.0f;
  if (col < t.cols)
    for (int64_t row = threadIdx.y; row < t.rows; row += kTile) {
      const int64_t i = row * t.cols + col;
      sum += static_cast<float>(t.dy[i]) * (static_cast<float>(t.x[i]) * t.row_scratch[row]);
    }
  tile[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = warp_reduce_sum(tile[threadIdx.x][threadIdx.y]);
  const int64_t own = int64_t{blockIdx.x} * kTile + threadIdx.y;  // the column that this warp has just added up
  if (threadIdx.x == 0 && own < t.cols) t.dweight[own] = static_cast<T>(sum);
}

inline void launch(const BackwardCall& call, cudaStream_t stream) {
  dispatch(call.dtype, [&](auto* type) {
    const auto t = tensors_of(call, type);
    if (t.rows > 0) dx_kernel<<<static_cast<unsigned>(t.rows), kBlockSize, 0, stream>>>(t);
    if (t.dweight == nullptr) return;
    dweight_kernel<<<static_cast<unsigned>(blocks_for(t.cols, kTile)), dim3(kTile, kTile), 0, stream>>>(t);
  });
}

inline const Stage<RmsNormBackward> stage{
    "04_column_tiles", "32 columns per block for dweight: coalesced", launch, {0, RmsNormBackward::refuses}};

}  // namespace ladder::backward::column_tiles
