// 07_repacked: 06 with weights that were repacked once: the bytes of all blocks in one array, 16 bytes each, and their
// scales in another. A block is one load of 16 bytes, and neighbouring lanes read neighbouring blocks.
//
// It removes three of the five loads of a block and the sectors that they touched in vain (counter: sectors per
// request). It costs a pass over the weights when a model is loaded (formats/README.md), and no byte.
// It leaves: nothing to do while a tile is on its way, until 08.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment2/q4_gemm/shared.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::repacked {

constexpr int TILE_M = 64, TILE_N = 4, TILE_K = 256, ROWS = 4;
constexpr int kThreads = TILE_M / ROWS * 32, kTileBlocks = TILE_K / kBlock, kLanesPerRow = 32 / ROWS;
static_assert(kTileBlocks == kLanesPerRow, "a lane has a block");

__global__ void __launch_bounds__(kThreads)
    gemm_q4_0_q8_1_repacked_kernel(Repacked w, const block_q8_1* __restrict__ x, float* __restrict__ y, int64_t m,
                                   int64_t n, int64_t k) {
  __shared__ block_q8_1 tile[TILE_N][kTileBlocks];
  const int lane = threadIdx.x % kLanesPerRow;
  const int64_t row = int64_t{blockIdx.y} * TILE_M + threadIdx.x / kLanesPerRow;
  const int64_t first_column = int64_t{blockIdx.x} * TILE_N, blocks = k / kBlock;
  const int columns = static_cast<int>(min(n - first_column, int64_t{TILE_N}));

  float sums[TILE_N] = {};
  for (int64_t first = 0; first < blocks; first += kTileBlocks) {
    const int count = static_cast<int>(min(blocks - first, int64_t{kTileBlocks}));
    __syncthreads();  // no thread still reads the tile before
    const int thread = threadIdx.x;
    if (thread < columns * 9 * kTileBlocks) {
      const int column = thread / (9 * kTileBlocks), word = thread % (9 * kTileBlocks);
      const auto* from = reinterpret_cast<const uint32_t*>(x + (first_column + column) * blocks + first);
      if (word < 9 * count) reinterpret_cast<uint32_t*>(tile[column])[word] = from[word];
    }
    __syncthreads();
    if (row >= m || lane >= count) continue;
    const int64_t block = row * blocks + first + lane;
    const uint4 sixteen = w.qs[block];
    const uint32_t qs[4] = {sixteen.x, sixteen.y, sixteen.z, sixteen.w};
    const float d = scale_of(w.d[block]) / 16.0f;
#pragma unroll
    for (int column = 0; column < TILE_N; ++column) {
      if (column >= columns) break;
      const block_q8_1& activations = tile[column][lane];
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
  gemm_q4_0_q8_1_repacked_kernel<<<grid, kThreads, 0, stream>>>(w, x, y, m, n, k);
}

inline const Stage<Q4GemmRepacked> stage{
    "07_repacked", "weights repacked: one load of 16 bytes per block", launch, {0, Q4GemmRepacked::refuses}};

}  // namespace ladder::q4_gemm::repacked
