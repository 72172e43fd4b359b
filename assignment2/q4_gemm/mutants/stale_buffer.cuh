// stale_buffer: two buffers and cp.async. A thread that has asked for the next tile waits until all batches but the
// newest two are there, and there are no more than two: it waits for nothing. It reads what the buffer held before.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::stale_buffer {

__global__ void gemm_kernel(const block_q4_0* w, const block_q8_1* x, float* y, int64_t m, int64_t k) {
  __shared__ block_q8_1 tiles[2][parts::kTileBlocks];
  const int64_t row = parts::row_of_thread(), blocks = k / kBlock;
  const block_q8_1* column = x + blockIdx.x * blocks;
  float sum = 0.0f;
  parts::copy_tile(column, blocks, 0, tiles[0]);
  int now = 0;
  for (int64_t first = 0; first < blocks; first += parts::kTileBlocks, now ^= 1) {
    parts::copy_tile(column, blocks, first + parts::kTileBlocks, tiles[now ^ 1]);
    __pipeline_wait_prior(2);  // the fault: 1 waits for this tile
    __syncthreads();
    if (row < m) sum += parts::tile_sum(w + row * blocks, blocks, first, tiles[now]);
    __syncthreads();
  }
  if (row < m) y[blockIdx.x * m + row] = sum;
}

inline const Mutant<Q4GemmBlocks> mutant{"stale_buffer", "a buffer is read before its copy has arrived",
                                         parts::launch_per_output<gemm_kernel>, "elements wrong", Shows::on_cpu_device};

}  // namespace ladder::q4_gemm::mutants::stale_buffer
