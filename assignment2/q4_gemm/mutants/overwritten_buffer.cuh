// overwritten_buffer: two buffers and cp.async. As soon as a tile is there, the threads ask for the tile after next,
// and its copy goes to the buffer whose tile they have yet to multiply.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::overwritten_buffer {

__global__ void gemm_kernel(const block_q4_0* w, const block_q8_1* x, float* y, int64_t m, int64_t k) {
  __shared__ block_q8_1 tiles[2][parts::kTileBlocks];
  const int64_t row = parts::row_of_thread(), blocks = k / kBlock;
  const block_q8_1* column = x + blockIdx.x * blocks;
  float sum = 0.0f;
  parts::copy_tile(column, blocks, 0, tiles[0]);
  parts::copy_tile(column, blocks, parts::kTileBlocks, tiles[1]);
  int now = 0;
  for (int64_t first = 0; first < blocks; first += parts::kTileBlocks, now ^= 1) {
    __pipeline_wait_prior(1);
    __syncthreads();
    parts::copy_tile(column, blocks, first + 2 * parts::kTileBlocks, tiles[now]);  // the fault: two lines too early
    if (row < m) sum += parts::tile_sum(w + row * blocks, blocks, first, tiles[now]);
    __syncthreads();
  }
  if (row < m) y[blockIdx.x * m + row] = sum;
}

inline const Mutant<Q4GemmBlocks> mutant{"overwritten_buffer", "a copy goes to the buffer that is still read",
                                         parts::launch_per_output<gemm_kernel>, "elements wrong", Shows::on_cpu_device};

}  // namespace ladder::q4_gemm::mutants::overwritten_buffer
