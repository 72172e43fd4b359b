// 03_smem: the 16 warps of a block share a tile of x, 128 numbers of one column, in shared memory. A warp has four rows
// with eight lanes each, and a lane has half a block of weights.
//
// It removes the scattered loads of x: its tile is read once per thread block, in neighbouring words (counter: sectors
// per request). It costs two barriers for each 128 numbers of k.
// It leaves: those barriers, until 04; the scattered loads of weights; every weight read once per column.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment2/q4_gemm/shared.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::smem {

constexpr int kBlockSize = 512, kRowsPerBlock = 64, kLanesPerRow = 8;
constexpr int TILE_K = 128, kTileBlocks = TILE_K / kBlock;

// 16 times the sum of the products of the first or second 8 bytes of a block, 16 numbers.
__device__ inline int dot_of_8(const block_q4_0& weights, const int* x, int half) {
  const auto* halves = reinterpret_cast<const uint16_t*>(weights.qs) + 4 * half;
  int sum = 0;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const uint32_t word = halves[2 * j] | static_cast<uint32_t>(halves[2 * j + 1]) << 16;
    sum = __dp4a(low_nibbles(word), x[2 * half + j], sum);
    sum = __dp4a(high_nibbles(word), x[2 * half + j + 4], sum);
  }
  return sum;
}

__global__ void __launch_bounds__(kBlockSize)
    gemm_q4_0_q8_1_smem_kernel(const block_q4_0* __restrict__ w, const block_q8_1* __restrict__ x,
                               float* __restrict__ y, int64_t m, int64_t k) {
  __shared__ block_q8_1 tile[kTileBlocks];
  const int lane = threadIdx.x % kLanesPerRow, half = lane % 2;
  const int64_t row = int64_t{blockIdx.y} * kRowsPerBlock + threadIdx.x / kLanesPerRow;
  const int64_t blocks = k / kBlock;
  const block_q8_1* column = x + blockIdx.x * blocks;

  float sum = 0.0f;
  for (int64_t first = 0; first < blocks; first += kTileBlocks) {
    const int count = static_cast<int>(min(blocks - first, int64_t{kTileBlocks}));
    const auto* from = reinterpret_cast<const uint32_t*>(column + first);
    __syncthreads();  // no thread still reads the tile before
    if (static_cast<int>(threadIdx.x) < 9 * count) reinterpret_cast<uint32_t*>(tile)[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    if (row < m && lane / 2 < count) {
      const block_q4_0& weights = w[row * blocks + first + lane / 2];
      const block_q8_1& activations = tile[lane / 2];
      const int dot = dot_of_8(weights, reinterpret_cast<const int*>(activations.qs), half);
      sum += scale_of(weights.d) * (scale_of(activations.d) / 16.0f) * static_cast<float>(dot);
    }
  }
  sum = sum_of_lanes<kLanesPerRow>(sum);
  if (lane == 0 && row < m) y[blockIdx.x * m + row] = sum;
}

inline void launch(const block_q4_0* w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(blocks_for(m, kRowsPerBlock)));
  gemm_q4_0_q8_1_smem_kernel<<<grid, kBlockSize, 0, stream>>>(w, x, y, m, k);
}

inline const Stage<Q4GemmBlocks> stage{
    "03_smem", "tiles of 128 activations in shared memory", launch, {0, Q4GemmBlocks::refuses}};

}  // namespace ladder::q4_gemm::smem
