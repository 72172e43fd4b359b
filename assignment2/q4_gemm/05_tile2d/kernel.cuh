// 05_tile2d: a thread block computes a tile of 64 rows and 4 columns. A lane keeps its weights in registers and
// multiplies them with each of the columns.
//
// It removes the reading of weights once per column: once per four columns (counter: bytes that loads ask for).
// It leaves: loads of 2 bytes, 18 bytes apart, until 06 and 07; a barrier before and after each tile of x, with all
// loads of the tile in between, until 08.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment2/q4_gemm/shared.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::tile2d {

// A warp has ROWS rows with 32 / ROWS lanes each. A piece is half a block: 8 bytes of weights, 16 numbers.
template <int TILE_M, int TILE_N, int TILE_K, int ROWS>
__global__ void __launch_bounds__(TILE_M / ROWS * 32)
    gemm_q4_0_q8_1_tile2d_kernel(const block_q4_0* __restrict__ w, const block_q8_1* __restrict__ x,
                                 float* __restrict__ y, int64_t m, int64_t n, int64_t k) {
  constexpr int kThreads = TILE_M / ROWS * 32, kTileBlocks = TILE_K / kBlock, kLanesPerRow = 32 / ROWS;
  static_assert(kThreads <= 1024 && 2 * kTileBlocks % kLanesPerRow == 0, "a row's lanes have equally many pieces");
  __shared__ block_q8_1 tile[TILE_N][kTileBlocks];
  const int lane = threadIdx.x % kLanesPerRow;
  const int64_t row = int64_t{blockIdx.y} * TILE_M + threadIdx.x / kLanesPerRow;
  const int64_t first_column = int64_t{blockIdx.x} * TILE_N, blocks = k / kBlock;
  const int columns = static_cast<int>(min(n - first_column, int64_t{TILE_N}));

  float sums[TILE_N] = {};
  for (int64_t first = 0; first < blocks; first += kTileBlocks) {
    const int count = static_cast<int>(min(blocks - first, int64_t{kTileBlocks}));
    __syncthreads();  // no thread still reads the tile before
    for (int i = threadIdx.x; i < columns * 9 * kTileBlocks; i += kThreads) {
      const int column = i / (9 * kTileBlocks), word = i % (9 * kTileBlocks);
      const auto* from = reinterpret_cast<const uint32_t*>(x + (first_column + column) * blocks + first);
      if (word < 9 * count) reinterpret_cast<uint32_t*>(tile[column])[word] = from[word];
    }
    __syncthreads();
#pragma unroll
    for (int piece = lane; piece < 2 * kTileBlocks; piece += kLanesPerRow) {
      const int b = piece / 2, half = piece % 2;
      if (row >= m || b >= count) break;
      const block_q4_0& weights = w[row * blocks + first + b];
      const auto* halves = reinterpret_cast<const uint16_t*>(weights.qs) + 4 * half;
      int low[2], high[2];
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const uint32_t word = halves[2 * j] | static_cast<uint32_t>(halves[2 * j + 1]) << 16;
        low[j] = low_nibbles(word);
        high[j] = high_nibbles(word);
      }
      const float d = scale_of(weights.d) / 16.0f;
#pragma unroll
      for (int column = 0; column < TILE_N; ++column) {
        if (column >= columns) break;
        const auto* numbers = reinterpret_cast<const int*>(tile[column][b].qs) + 2 * half;
        int dot = 0;
#pragma unroll
        for (int j = 0; j < 2; ++j) dot = __dp4a(high[j], numbers[4 + j], __dp4a(low[j], numbers[j], dot));
        sums[column] += d * scale_of(tile[column][b].d) * static_cast<float>(dot);
      }
    }
  }
#pragma unroll
  for (int column = 0; column < TILE_N; ++column) {
    const float sum = sum_of_lanes<kLanesPerRow>(sums[column]);
    if (lane == 0 && row < m && column < columns) y[(first_column + column) * m + row] = sum;
  }
}

// Every tile that the experiment `tiles` times is an instance of this.
template <int TILE_M, int TILE_N, int TILE_K, int ROWS>
void launch_tile(const block_q4_0* w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                 cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(blocks_for(n, TILE_N)), static_cast<unsigned>(blocks_for(m, TILE_M)));
  gemm_q4_0_q8_1_tile2d_kernel<TILE_M, TILE_N, TILE_K, ROWS><<<grid, TILE_M / ROWS * 32, 0, stream>>>(w, x, y, m, n, k);
}

inline const Stage<Q4GemmBlocks> stage{
    "05_tile2d", "tiles of 64 x 4 outputs", launch_tile<64, 4, 128, 4>, {0, Q4GemmBlocks::refuses}};

}  // namespace ladder::q4_gemm::tile2d
