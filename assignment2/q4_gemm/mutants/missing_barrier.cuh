// missing_barrier: a tile of x in shared memory, and one barrier per tile in place of two. A fast thread writes the
// next tile while slow ones still read this one.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::missing_barrier {

__global__ void gemm_kernel(const block_q4_0* w, const block_q8_1* x, float* y, int64_t m, int64_t k) {
  __shared__ block_q8_1 tile[parts::kTileBlocks];
  const int64_t row = parts::row_of_thread(), blocks = k / kBlock;
  const block_q8_1* column = x + blockIdx.x * blocks;
  float sum = 0.0f;
  for (int64_t first = 0; first < blocks; first += parts::kTileBlocks) {
    const int64_t count = min(blocks - first, int64_t{parts::kTileBlocks});
    // the fault: nothing waits here until no thread reads the tile any more
    for (int64_t i = threadIdx.x; i < 9 * count; i += parts::kBlockSize)
      reinterpret_cast<uint32_t*>(tile)[i] = reinterpret_cast<const uint32_t*>(column + first)[i];
    __syncthreads();
    for (int64_t b = 0; b < (row < m ? count : 0); ++b) {
      const block_q4_0& weights = w[row * blocks + first + b];
      sum += parts::scale(weights, tile[b]) * static_cast<float>(parts::dot(weights, tile[b]));
    }
  }
  if (row < m) y[blockIdx.x * m + row] = sum;
}

inline const Mutant<Q4GemmBlocks> mutant{"missing_barrier", "a tile is overwritten while other threads still read it",
                                         parts::launch_per_output<gemm_kernel>, "elements wrong, first at",
                                         Shows::on_cpu_device};

}  // namespace ladder::q4_gemm::mutants::missing_barrier
