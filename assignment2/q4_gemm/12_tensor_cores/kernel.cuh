// 12_tensor_cores: the products of a block of q4_0 are one instruction of the tensor cores, for 16 rows and 8 columns
// at once. A word of a block's 16 bytes is exactly what a lane needs of a row: its low and its high nibbles.
//
// It removes 32 dp4a per warp for each such product, and the shuffles at the end (counter: shuffles; in the profiler,
// instructions). It costs columns that no caller wants where n is no multiple of 8.
// It leaves: the scales, applied by ordinary instructions after each block of 32; idle multiprocessors at small n, and
// x in words of 4 bytes.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment2/q4_gemm/mma.cuh"
#include "assignment2/q4_gemm/shared.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::tensor_cores {

constexpr int TILE_M = 64, TILE_K = 128, kStages = 3, kThreads = TILE_M / 16 * 32;  // a warp has 16 rows
constexpr int kTileBlocks = TILE_K / kBlock, kWords = 9 * kTileBlocks, kScales = TILE_M * kTileBlocks / kThreads;

// Eight rows or columns and the four words of a block fall into 32 banks: rows are 20 words apart, columns 36.
template <int TILE_N>
struct Tile {
  uint4 qs[TILE_M][kTileBlocks + 1];
  uint32_t x[TILE_N][kWords];
};

template <int TILE_N>
__global__ void __launch_bounds__(kThreads, TILE_N == 64 ? 3 : 4)
    gemm_q4_0_q8_1_mma_kernel(Repacked w, const block_q8_1* __restrict__ x, float* __restrict__ y, int64_t m, int64_t n,
                              int64_t k) {
  __shared__ Tile<TILE_N> tiles[kStages];
  __shared__ float4 scales[2][TILE_M];  // of this tile's rows and of the next one's, four blocks each
  const int thread = threadIdx.x, group = thread % 32 / 4, t = thread % 4, warp_row = thread / 32 * 16 + group;
  const int64_t first_row = int64_t{blockIdx.y} * TILE_M, first_column = int64_t{blockIdx.x} * TILE_N;
  const int64_t blocks = k / kBlock;

  // What lies outside of the matrices is zero in the tile: then it adds nothing.
  const auto copy = [&](int64_t first, Tile<TILE_N>& to) {
    for (int i = thread; i < TILE_M * kTileBlocks; i += kThreads) {
      const int tile_row = i / 32 * 8 + i / 8 % 4 + i / 4 % 2 * 4, b = i % 4;  // eight lanes, 32 banks
      const int64_t row = first_row + tile_row, block = first + b;
      const bool is_there = row < m && block < blocks;
      __pipeline_memcpy_async(&to.qs[tile_row][b], &w.qs[is_there ? row * blocks + block : 0], 16, is_there ? 0 : 16);
    }
    for (int i = thread; i < TILE_N * kWords; i += kThreads) {
      const int64_t column = first_column + i / kWords;
      const bool is_there = column < n && first + i % kWords / 9 < blocks;
      const auto* from = reinterpret_cast<const uint32_t*>(x + (is_there ? column * blocks + first : 0));
      __pipeline_memcpy_async(&to.x[i / kWords][i % kWords], from + (is_there ? i % kWords : 0), 4, is_there ? 0 : 4);
    }
    __pipeline_commit();
  };
  const auto load_scales = [&](int64_t first, uint16_t* to) {
#pragma unroll
    for (int s = 0; s < kScales; ++s) {
      const int i = s * kThreads + thread;
      const int64_t row = first_row + i / kTileBlocks, block = first + i % kTileBlocks;
      to[s] = row < m && block < blocks ? w.d[row * blocks + block] : 0;
    }
  };
  const auto store_scales = [&](const uint16_t* from, float4* to) {
#pragma unroll
    for (int s = 0; s < kScales; ++s) reinterpret_cast<float*>(to)[s * kThreads + thread] = scale_of(from[s]) / 16.0f;
  };

  float sums[TILE_N / 8][4] = {};
  uint16_t ahead[kScales];
  load_scales(0, ahead);
  for (int s = 0; s < kStages - 1; ++s) copy(s * kTileBlocks, tiles[s]);
  store_scales(ahead, scales[0]);
  load_scales(kTileBlocks, ahead);
  int step = 0;
  for (int64_t first = 0; first < blocks; first += kTileBlocks, ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();  // all threads' copies of this tile are there, and no thread reads the tile before
    copy(first + (kStages - 1) * kTileBlocks, tiles[(step + kStages - 1) % kStages]);
    store_scales(ahead, scales[(step + 1) % 2]);  // of the next tile, which is read after the next barrier
    load_scales(first + 2 * kTileBlocks, ahead);

    const Tile<TILE_N>& tile = tiles[step % kStages];
    const float4 d_low = scales[step % 2][warp_row], d_high = scales[step % 2][warp_row + 8];
    const float d[2][kTileBlocks] = {{d_low.x, d_low.y, d_low.z, d_low.w}, {d_high.x, d_high.y, d_high.z, d_high.w}};
#pragma unroll
    for (int b = 0; b < kTileBlocks; ++b) {
      const uint32_t low = reinterpret_cast<const uint32_t*>(&tile.qs[warp_row][b])[t];
      const uint32_t high = reinterpret_cast<const uint32_t*>(&tile.qs[warp_row + 8][b])[t];
      const int a[4] = {low_nibbles(low), low_nibbles(high), high_nibbles(low), high_nibbles(high)};
#pragma unroll
      for (int j = 0; j < TILE_N / 8; ++j) {
        const uint32_t* column = tile.x[8 * j + group] + 9 * b;
        const int words[2] = {static_cast<int>(column[1 + t]), static_cast<int>(column[5 + t])};
        int products[4] = {};
        int8_mma(products, a, words);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float of_x = scale_of(static_cast<uint16_t>(tile.x[8 * j + 2 * t + i][9 * b]));
          sums[j][i] += d[0][b] * of_x * static_cast<float>(products[i]);
          sums[j][2 + i] += d[1][b] * of_x * static_cast<float>(products[2 + i]);
        }
      }
    }
  }
#pragma unroll
  for (int j = 0; j < TILE_N / 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t row = first_row + warp_row + i / 2 * 8, column = first_column + 8 * j + 2 * t + i % 2;
      if (row < m && column < n) y[column * m + row] = sums[j][i];
    }
}

template <int TILE_N>
void launch_tile(Repacked w, const block_q8_1* x, float* y, int64_t m, int64_t n, int64_t k, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(blocks_for(n, TILE_N)), static_cast<unsigned>(blocks_for(m, TILE_M)));
  gemm_q4_0_q8_1_mma_kernel<TILE_N><<<grid, kThreads, 0, stream>>>(w, x, y, m, n, k);
}

inline void launch(Repacked w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const auto tile = n <= 8 ? launch_tile<8> : n <= 16 ? launch_tile<16> : n <= 32 ? launch_tile<32> : launch_tile<64>;
  tile(w, x, y, m, n, k, stream);
}

inline const Stage<Q4GemmRepacked> stage{
    "12_tensor_cores", "a block of 32 is one instruction for 16 x 8 outputs", launch, {80, Q4GemmRepacked::refuses}};

}  // namespace ladder::q4_gemm::tensor_cores
