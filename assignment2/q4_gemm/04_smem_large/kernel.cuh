// 04_smem_large: a tile of 256 numbers, so that each of a row's eight lanes has a whole block of weights.
//
// It removes half of the barriers of 03, and half of the loads of scales: 9 loads a block of weights for 10.
// It leaves: the scattered loads of weights, 18 bytes apart, and every weight read once per column, until 05.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment2/q4_gemm/shared.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::smem_large {

constexpr int kBlockSize = 512, kRowsPerBlock = 64, kLanesPerRow = 8;
constexpr int TILE_K = 256, kTileBlocks = TILE_K / kBlock;
static_assert(kTileBlocks == kLanesPerRow, "a lane has a block");

__global__ void __launch_bounds__(kBlockSize)
    gemm_q4_0_q8_1_smem_large_kernel(const block_q4_0* __restrict__ w, const block_q8_1* __restrict__ x,
                                     float* __restrict__ y, int64_t m, int64_t k) {
  __shared__ block_q8_1 tile[kTileBlocks];
  const int lane = threadIdx.x % kLanesPerRow;
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
    if (row < m && lane < count) {
      const block_q4_0& weights = w[row * blocks + first + lane];
      const auto* halves = reinterpret_cast<const uint16_t*>(weights.qs);
      uint32_t qs[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) qs[j] = halves[2 * j] | static_cast<uint32_t>(halves[2 * j + 1]) << 16;
      const int dot = dot_of_16(qs, reinterpret_cast<const int*>(tile[lane].qs));
      sum += scale_of(weights.d) * (scale_of(tile[lane].d) / 16.0f) * static_cast<float>(dot);
    }
  }
  sum = sum_of_lanes<kLanesPerRow>(sum);
  if (lane == 0 && row < m) y[blockIdx.x * m + row] = sum;
}

inline void launch(const block_q4_0* w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(blocks_for(m, kRowsPerBlock)));
  gemm_q4_0_q8_1_smem_large_kernel<<<grid, kBlockSize, 0, stream>>>(w, x, y, m, k);
}

inline const Stage<Q4GemmBlocks> stage{"04_smem_large", "tiles of 256 activations", launch, {0, Q4GemmBlocks::refuses}};

}  // namespace ladder::q4_gemm::smem_large
