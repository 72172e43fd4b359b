// 10_persistent: as many thread blocks as the device holds at once, each with output tiles gridDim.x apart. The
// pipeline of 09 runs on from one output tile into the next.
//
// It removes the empty pipeline at the start of all output tiles but a block's first.
// It costs a division per tile of k to find its place, and blocks with one output tile more than others, which all
// wait for. It leaves: multiprocessors without work where there are fewer output tiles than blocks, until 11.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment2/q4_gemm/shared.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::persistent {

constexpr int TILE_M = 64, TILE_N = 4, TILE_K = 256, ROWS = 4, kStages = 4;
constexpr int kThreads = TILE_M / ROWS * 32, kTileBlocks = TILE_K / kBlock, kLanesPerRow = 32 / ROWS;
static_assert(kTileBlocks == kLanesPerRow, "a lane has a block");

struct Tile {
  uint4 qs[kThreads];  // of each thread's own block
  block_q8_1 x[TILE_N][kTileBlocks];
};

// Where a thread's block of weights is in one step.
struct Step {
  int64_t row, first_column, first;  // first: of the row's blocks
  int columns;
};

__global__ void __launch_bounds__(kThreads)
    gemm_q4_0_q8_1_persistent_kernel(Repacked w, const block_q8_1* __restrict__ x, float* __restrict__ y, int64_t m,
                                     int64_t n, int64_t k) {
  __shared__ Tile tiles[kStages];
  const int thread = threadIdx.x, lane = thread % kLanesPerRow;
  const int column_of_word = thread / (9 * kTileBlocks), word = thread % (9 * kTileBlocks);
  const int64_t blocks = k / kBlock, k_tiles = (blocks + kTileBlocks - 1) / kTileBlocks;
  const int64_t tiles_of_n = (n + TILE_N - 1) / TILE_N, outputs = (m + TILE_M - 1) / TILE_M * tiles_of_n;
  const int64_t steps = (outputs - blockIdx.x + gridDim.x - 1) / gridDim.x * k_tiles;  // gridDim.x <= outputs

  const auto place_of = [&](int64_t step) -> Step {
    const int64_t output = blockIdx.x + step / k_tiles * gridDim.x;
    const int64_t first_column = output % tiles_of_n * TILE_N;
    return {output / tiles_of_n * TILE_M + thread / kLanesPerRow, first_column, step % k_tiles * kTileBlocks,
            static_cast<int>(min(n - first_column, int64_t{TILE_N}))};
  };
  const auto has_block = [&](const Step& at) { return at.row < m && at.first + lane < blocks; };
  // Starts the copies of a step and returns its scale; past the last step it does nothing.
  const auto copy = [&](int64_t step, Tile& to) -> uint16_t {
    if (step >= steps) return 0;
    const Step at = place_of(step);
    if (column_of_word < at.columns && at.first + word / 9 < blocks) {
      const auto* from = reinterpret_cast<const uint32_t*>(x + (at.first_column + column_of_word) * blocks + at.first);
      __pipeline_memcpy_async(reinterpret_cast<uint32_t*>(to.x[column_of_word]) + word, from + word, 4);
    }
    if (!has_block(at)) return 0;
    const int64_t block = at.row * blocks + at.first + lane;
    __pipeline_memcpy_async(&to.qs[thread], &w.qs[block], 16);
    return w.d[block];
  };

  float sums[TILE_N] = {};
  uint16_t scales[kStages - 1];  // of this step and those after it
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    scales[s] = copy(s, tiles[s]);
    __pipeline_commit();
  }
  for (int64_t step = 0; step < steps; ++step) {
    const int now = static_cast<int>(step % kStages);
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();  // all threads' copies of this step are there, and no thread reads the step before
    const float d = scale_of(scales[0]) / 16.0f;
#pragma unroll
    for (int s = 0; s < kStages - 2; ++s) scales[s] = scales[s + 1];
    scales[kStages - 2] = copy(step + kStages - 1, tiles[(now + kStages - 1) % kStages]);
    __pipeline_commit();

    const Step at = place_of(step);
    if (has_block(at)) {
      const uint4 sixteen = tiles[now].qs[thread];
      const uint32_t qs[4] = {sixteen.x, sixteen.y, sixteen.z, sixteen.w};
#pragma unroll
      for (int column = 0; column < TILE_N; ++column) {
        if (column >= at.columns) break;
        const block_q8_1& activations = tiles[now].x[column][lane];
        const int dot = dot_of_16(qs, reinterpret_cast<const int*>(activations.qs));
        sums[column] += d * scale_of(activations.d) * static_cast<float>(dot);
      }
    }
    if (at.first + kTileBlocks < blocks) continue;
#pragma unroll
    for (int column = 0; column < TILE_N; ++column) {
      const float sum = sum_of_lanes<kLanesPerRow>(sums[column]);
      if (lane == 0 && at.row < m && column < at.columns) y[(at.first_column + column) * m + at.row] = sum;
      sums[column] = 0.0f;
    }
  }
}

inline void launch(Repacked w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const int64_t outputs = blocks_for(n, TILE_N) * blocks_for(m, TILE_M);
  const int64_t resident = resident_blocks(gemm_q4_0_q8_1_persistent_kernel, kThreads);
  const auto grid = static_cast<unsigned>(std::min(outputs, resident));
  gemm_q4_0_q8_1_persistent_kernel<<<grid, kThreads, 0, stream>>>(w, x, y, m, n, k);
}

inline const Stage<Q4GemmRepacked> stage{
    "10_persistent", "one pipeline over many output tiles", launch, {0, Q4GemmRepacked::refuses}};

}  // namespace ladder::q4_gemm::persistent
