// 08_async: the next tile of weights and x is copied to shared memory, asynchronously, while the lanes compute with
// this one: cp.async and two buffers.
//
// It removes the wait for global memory between two tiles, as far as one tile's arithmetic lasts.
// It costs a trip of the weights through shared memory and 18 KB of it. A scale is 2 bytes, too few for cp.async, and
// goes ahead in a register. It leaves: two barriers per tile, and one tile on its way where memory is many tiles away,
// until 09.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment2/q4_gemm/shared.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::async {

constexpr int TILE_M = 64, TILE_N = 4, TILE_K = 256, ROWS = 4;
constexpr int kThreads = TILE_M / ROWS * 32, kTileBlocks = TILE_K / kBlock, kLanesPerRow = 32 / ROWS;
static_assert(kTileBlocks == kLanesPerRow, "a lane has a block");

struct Tile {
  uint4 qs[kThreads];  // of each thread's own block
  block_q8_1 x[TILE_N][kTileBlocks];
};

__global__ void __launch_bounds__(kThreads)
    gemm_q4_0_q8_1_async_kernel(Repacked w, const block_q8_1* __restrict__ x, float* __restrict__ y, int64_t m,
                                int64_t n, int64_t k) {
  __shared__ Tile tiles[2];
  const int thread = threadIdx.x, lane = thread % kLanesPerRow;
  const int64_t row = int64_t{blockIdx.y} * TILE_M + thread / kLanesPerRow;
  const int64_t first_column = int64_t{blockIdx.x} * TILE_N, blocks = k / kBlock;
  const int columns = static_cast<int>(min(n - first_column, int64_t{TILE_N}));
  const int column_of_word = thread / (9 * kTileBlocks), word = thread % (9 * kTileBlocks);

  const auto has_block = [&](int64_t first) { return row < m && first + lane < blocks; };
  const auto copy = [&](int64_t first, Tile& to) {
    if (has_block(first)) __pipeline_memcpy_async(&to.qs[thread], &w.qs[row * blocks + first + lane], 16);
    if (column_of_word < columns && first + word / 9 < blocks) {
      const auto* from = reinterpret_cast<const uint32_t*>(x + (first_column + column_of_word) * blocks + first);
      __pipeline_memcpy_async(reinterpret_cast<uint32_t*>(to.x[column_of_word]) + word, from + word, 4);
    }
  };

  float sums[TILE_N] = {};
  copy(0, tiles[0]);
  __pipeline_commit();
  uint16_t scale = has_block(0) ? w.d[row * blocks + lane] : 0;
  int now = 0;
  for (int64_t first = 0; first < blocks; first += kTileBlocks, now ^= 1) {
    const int64_t next = first + kTileBlocks;
    const uint16_t next_scale = has_block(next) ? w.d[row * blocks + next + lane] : 0;
    copy(next, tiles[now ^ 1]);  // past the end: nothing
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();  // x of this tile, which all threads have copied, is there
    if (has_block(first)) {
      const uint4 sixteen = tiles[now].qs[thread];
      const uint32_t qs[4] = {sixteen.x, sixteen.y, sixteen.z, sixteen.w};
      const float d = scale_of(scale) / 16.0f;
#pragma unroll
      for (int column = 0; column < TILE_N; ++column) {
        if (column >= columns) break;
        const block_q8_1& activations = tiles[now].x[column][lane];
        const int dot = dot_of_16(qs, reinterpret_cast<const int*>(activations.qs));
        sums[column] += d * scale_of(activations.d) * static_cast<float>(dot);
      }
    }
    scale = next_scale;
    __syncthreads();  // no thread still reads the buffer that the next step copies to
  }
#pragma unroll
  for (int column = 0; column < TILE_N; ++column) {
    const float sum = sum_of_lanes<kLanesPerRow>(sums[column]);
    if (lane == 0 && row < m && column < columns) y[(first_column + column) * m + row] = sum;
  }
}

inline void launch(Repacked w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(blocks_for(n, TILE_N)), static_cast<unsigned>(blocks_for(m, TILE_M)));
  gemm_q4_0_q8_1_async_kernel<<<grid, kThreads, 0, stream>>>(w, x, y, m, n, k);
}

inline const Stage<Q4GemmRepacked> stage{"08_async", "cp.async and two buffers", launch, {0, Q4GemmRepacked::refuses}};

}  // namespace ladder::q4_gemm::async
