// 11_split_k: up to eight thread blocks share a tile of outputs, each with a part of k. A second kernel adds up what
// they leave in scratch memory, in the same order each time.
//
// It removes idle multiprocessors where there are fewer output tiles than the device holds blocks (counter: blocks).
// It costs a second launch, and scratch memory written and read: 8 bytes for each output and part.
// It leaves: what a launch and the start of a pipeline take.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment2/q4_gemm/shared.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::split_k {

constexpr int TILE_M = 64, TILE_N = 4, TILE_K = 256, ROWS = 4, kStages = 4;
constexpr int kThreads = TILE_M / ROWS * 32, kTileBlocks = TILE_K / kBlock, kLanesPerRow = 32 / ROWS;
static_assert(kTileBlocks == kLanesPerRow, "a lane has a block");

struct Tile {
  uint4 qs[kThreads];  // of each thread's own block
  block_q8_1 x[TILE_N][kTileBlocks];
};

// Part blockIdx.z of the sums, over `part` tiles of k, goes to y + blockIdx.z · n · m.
__global__ void __launch_bounds__(kThreads)
    gemm_q4_0_q8_1_split_k_kernel(Repacked w, const block_q8_1* __restrict__ x, float* __restrict__ y, int64_t m,
                                  int64_t n, int64_t k, int64_t part) {
  __shared__ Tile tiles[kStages];
  const int thread = threadIdx.x, lane = thread % kLanesPerRow;
  const int64_t row = int64_t{blockIdx.y} * TILE_M + thread / kLanesPerRow;
  const int64_t first_column = int64_t{blockIdx.x} * TILE_N, blocks = k / kBlock;
  const int64_t begin = blockIdx.z * part * kTileBlocks, end = min(begin + part * kTileBlocks, blocks);
  const int columns = static_cast<int>(min(n - first_column, int64_t{TILE_N}));
  const int column_of_word = thread / (9 * kTileBlocks), word = thread % (9 * kTileBlocks);

  const auto has_block = [&](int64_t first) { return row < m && first + lane < end; };
  const auto copy = [&](int64_t first, Tile& to) {
    if (has_block(first)) __pipeline_memcpy_async(&to.qs[thread], &w.qs[row * blocks + first + lane], 16);
    if (column_of_word < columns && first + word / 9 < end) {
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
    copy(begin + s * kTileBlocks, tiles[s]);
    __pipeline_commit();
    scales[s] = scale_at(begin + s * kTileBlocks);
  }
  int now = 0;
  for (int64_t first = begin; first < end; first += kTileBlocks, now = (now + 1) % kStages) {
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
    if (lane == 0 && row < m && column < columns) y[(blockIdx.z * n + first_column + column) * m + row] = sum;
  }
}

__global__ void add_parts_kernel(const float* __restrict__ parts, float* __restrict__ y, int64_t count, int splits) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = 0.0f;
  for (int part = 0; part < splits; ++part) sum += parts[part * count + i];
  y[i] = sum;
}

inline void launch(Repacked w, const block_q8_1* x, float* y, float* scratch, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const int64_t outputs = blocks_for(n, TILE_N) * blocks_for(m, TILE_M), k_tiles = blocks_for(k, TILE_K);
  const int64_t room = resident_blocks(gemm_q4_0_q8_1_split_k_kernel, kThreads) / outputs;  // more parts fit at once
  const int64_t most = n > Q4GemmRepacked::kSplitColumns ? 1 : std::min(Q4GemmRepacked::kSplits, k_tiles);
  const int64_t part = blocks_for(k_tiles, std::clamp<int64_t>(room, 1, most));
  const auto splits = static_cast<unsigned>(blocks_for(k_tiles, part));  // none of them is empty
  const dim3 grid(static_cast<unsigned>(blocks_for(n, TILE_N)), static_cast<unsigned>(blocks_for(m, TILE_M)), splits);
  gemm_q4_0_q8_1_split_k_kernel<<<grid, kThreads, 0, stream>>>(w, x, splits > 1 ? scratch : y, m, n, k, part);
  if (splits > 1)
    add_parts_kernel<<<static_cast<unsigned>(blocks_for(n * m, 256)), 256, 0, stream>>>(scratch, y, n * m, splits);
}

inline const Stage<Q4GemmRepacked> stage{
    "11_split_k", "parts of k in several thread blocks", launch, {0, Q4GemmRepacked::refuses}};

}  // namespace ladder::q4_gemm::split_k
