// 09_multi_stage: four buffers in place of two. Three tiles are on their way while the lanes compute with the fourth.
//
// It removes the wait for memory that is farther away than one tile's arithmetic lasts, and one of the two barriers per
// tile: the barrier that shows a tile to all threads also says that no thread reads the tile before any more.
// It costs 37 KB of shared memory. It leaves: an empty pipeline at the start of each thread block, until 10.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment2/q4_gemm/shared.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::multi_stage {

constexpr int TILE_M = 64, TILE_N = 4, TILE_K = 256, ROWS = 4, kStages = 4;
constexpr int kThreads = TILE_M / ROWS * 32, kTileBlocks = TILE_K / kBlock, kLanesPerRow = 32 / ROWS;
static_assert(kTileBlocks == kLanesPerRow, "a lane has a block");

struct Tile {
  uint4 qs[kThreads];  // of each thread's own block
  block_q8_1 x[TILE_N][kTileBlocks];
};

__global__ void __launch_bounds__(kThreads)
    gemm_q4_0_q8_1_multi_stage_kernel(Repacked w, const block_q8_1* __restrict__ x, float* __restrict__ y, int64_t m,
                                      int64_t n, int64_t k) {
  __shared__ Tile tiles[kStages];
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
  const auto scale_at = [&](int64_t first) -> uint16_t {
    return has_block(first) ? w.d[row * blocks + first + lane] : 0;
  };

  float sums[TILE_N] = {};
  uint16_t scales[kStages - 1];  // of this tile and those after it
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    copy(s * kTileBlocks, tiles[s]);
    __pipeline_commit();  // an empty batch counts, too
    scales[s] = scale_at(s * kTileBlocks);
  }
  int now = 0;
  for (int64_t first = 0; first < blocks; first += kTileBlocks, now = (now + 1) % kStages) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();  // all threads' copies of this tile are there, and no thread reads the tile before
    const int64_t ahead = first + (kStages - 1) * kTileBlocks;
    copy(ahead, tiles[(now + kStages - 1) % kStages]);
    __pipeline_commit();
    const float d = scale_of(scales[0]) / 16.0f;
#pragma unroll
    for (int s = 0; s < kStages - 2; ++s) scales[s] = scales[s + 1];
    scales[kStages - 2] = scale_at(ahead);
    if (!has_block(first)) continue;
    const uint4 sixteen = tiles[now].qs[thread];
    const uint32_t qs[4] = {sixteen.x, sixteen.y, sixteen.z, sixteen.w};
#pragma unroll
    for (int column = 0; column < TILE_N; ++column) {
      if (column >= columns) break;
      const block_q8_1& activations = tiles[now].x[column][lane];
      const int dot = dot_of_16(qs, reinterpret_cast<const int*>(activations.qs));
      sums[column] += d * scale_of(activations.d) * static_cast<float>(dot);
    }
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
  gemm_q4_0_q8_1_multi_stage_kernel<<<grid, kThreads, 0, stream>>>(w, x, y, m, n, k);
}

inline const Stage<Q4GemmRepacked> stage{
    "09_multi_stage", "cp.async and four buffers", launch, {0, Q4GemmRepacked::refuses}};

}  // namespace ladder::q4_gemm::multi_stage
