// v6 without shared memory. A thread turns its block of 4 × 4 elements in registers, as in v6, and writes it where it
// belongs. A warp covers 16 rows and 32 columns, so its requests are 4 pieces of 128 bytes on the way in and 8 pieces
// of 64 bytes on the way out: all sectors are full, and no barrier is needed.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/transpose.h"

namespace ladder::transpose::controls {

constexpr int kTile = 32;  // of a block of 64 threads

template <bool kAligned>
__global__ void __launch_bounds__(64) kernel_without_tile(const float* __restrict__ input, float* __restrict__ output,
                                                          int64_t rows, int64_t cols, unsigned tiles_across) {
  const int64_t row = int64_t{blockIdx.x / tiles_across} * kTile + 4 * (threadIdx.x / 8);
  const int64_t col = int64_t{blockIdx.x % tiles_across} * kTile + 4 * (threadIdx.x % 8);
  float4 v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v[i] = transpose_v6::load<kAligned>(input, (row + i) * cols + col, row + i < rows ? cols - col : 0);
  const auto put = [&](int i, float4 turned) {
    transpose_v6::store<kAligned>(output, (col + i) * rows + row, turned, col + i < cols ? rows - row : 0);
  };
  put(0, make_float4(v[0].x, v[1].x, v[2].x, v[3].x));
  put(1, make_float4(v[0].y, v[1].y, v[2].y, v[3].y));
  put(2, make_float4(v[0].z, v[1].z, v[2].z, v[3].z));
  put(3, make_float4(v[0].w, v[1].w, v[2].w, v[3].w));
}

inline void launch_without_tile(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t wide = blocks_for(cols, kTile), tall = blocks_for(rows, kTile);
  if (wide * tall == 0) return;
  const bool aligned = aligned_for<float4>(input, output) && rows % 4 == 0 && cols % 4 == 0;
  auto* kernel = aligned ? kernel_without_tile<true> : kernel_without_tile<false>;
  kernel<<<static_cast<unsigned>(wide * tall), 64, 0, stream>>>(input, output, rows, cols, static_cast<unsigned>(wide));
}

}  // namespace ladder::transpose::controls
