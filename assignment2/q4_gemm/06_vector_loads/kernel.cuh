// 06_vector_loads: a block of weights in 5 loads, four of 4 bytes and one of 2, for the 9 of 2 bytes of 05. Every
// second block of an array begins at a multiple of 4: it is d and then words that are off by half a word. The others
// are a d and four words that are aligned.
//
// It removes four of nine load instructions, and needs no other layout (counter: global load requests).
// It leaves: lanes 18 bytes apart, so that a request still touches nearly all sectors of its rows' blocks, until 07.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment2/q4_gemm/shared.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::vector_loads {

constexpr int TILE_M = 64, TILE_N = 4, TILE_K = 256, ROWS = 4;
constexpr int kThreads = TILE_M / ROWS * 32, kTileBlocks = TILE_K / kBlock, kLanesPerRow = 32 / ROWS;
static_assert(kTileBlocks == kLanesPerRow, "a lane has a block");

struct Weights {
  uint32_t qs[4];
  uint16_t d;
};

// No byte outside the block is read: an aligned word before it or past its end may be no memory of ours.
__device__ inline Weights load(const block_q4_0* block) {
  const char* at = reinterpret_cast<const char*>(block);
  const bool is_aligned = reinterpret_cast<uintptr_t>(at) % 4 == 0;
  const auto* words = reinterpret_cast<const uint32_t*>(at + (is_aligned ? 0 : 2));
  const uint32_t half = *reinterpret_cast<const uint16_t*>(at + (is_aligned ? 16 : 0));
  uint32_t w[5];
#pragma unroll
  for (int j = 0; j < 4; ++j) w[j] = words[j];
  w[4] = half;
  Weights weights;
#pragma unroll
  for (int j = 0; j < 4; ++j) weights.qs[j] = is_aligned ? __funnelshift_r(w[j], w[j + 1], 16) : w[j];
  weights.d = static_cast<uint16_t>(is_aligned ? w[0] : half);
  return weights;
}

__global__ void __launch_bounds__(kThreads)
    gemm_q4_0_q8_1_vector_loads_kernel(const block_q4_0* __restrict__ w, const block_q8_1* __restrict__ x,
                                       float* __restrict__ y, int64_t m, int64_t n, int64_t k) {
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
    const Weights weights = load(w + row * blocks + first + lane);
    const float d = scale_of(weights.d) / 16.0f;
#pragma unroll
    for (int column = 0; column < TILE_N; ++column) {
      if (column >= columns) break;
      const block_q8_1& activations = tile[column][lane];
      const int dot = dot_of_16(weights.qs, reinterpret_cast<const int*>(activations.qs));
      sums[column] += d * scale_of(activations.d) * static_cast<float>(dot);
    }
  }
#pragma unroll
  for (int column = 0; column < TILE_N; ++column) {
    const float sum = sum_of_lanes<kLanesPerRow>(sums[column]);
    if (lane == 0 && row < m && column < columns) y[(first_column + column) * m + row] = sum;
  }
}

inline void launch(const block_q4_0* w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(blocks_for(n, TILE_N)), static_cast<unsigned>(blocks_for(m, TILE_M)));
  gemm_q4_0_q8_1_vector_loads_kernel<<<grid, kThreads, 0, stream>>>(w, x, y, m, n, k);
}

inline const Stage<Q4GemmBlocks> stage{
    "06_vector_loads", "words of 4 bytes of blocks aligned to 2", launch, {0, Q4GemmBlocks::refuses}};

}  // namespace ladder::q4_gemm::vector_loads
