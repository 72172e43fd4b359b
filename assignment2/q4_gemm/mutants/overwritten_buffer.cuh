// overwritten_buffer: two buffers and cp.async. As soon as a tile is there, the threads ask for the tile after next,
// and its copy goes to the buffer whose tile they have yet to multiply.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::overwritten_buffer {

__global__ void gemm_kernel(const block_q4_0* w, const block_q8_1* x, float* y, int64_t m, int64_t k) {
  __shared__ block_q8_1 tiles[2][parts::kTileBlocks];
  const int64_t row = parts::row_of_thread(), blocks = k / kBlock;
  const block_q8_1* column = x + blockIdx.x * blocks;
  const auto copy = [&](int64_t first, block_q8_1* to) {
    for (int64_t i = threadIdx.x; i < 9 * min(blocks - first, int64_t{parts::kTileBlocks}); i += parts::kBlockSize)
      __pipeline_memcpy_async(reinterpret_cast<uint32_t*>(to) + i,
                              reinterpret_cast<const uint32_t*>(column + first) + i, 4);
    __pipeline_commit();
  };

  float sum = 0.0f;
  copy(0, tiles[0]);
  copy(parts::kTileBlocks, tiles[1]);
  int now = 0;
  for (int64_t first = 0; first < blocks; first += parts::kTileBlocks, now ^= 1) {
    __pipeline_wait_prior(1);
    __syncthreads();
    copy(first + 2 * parts::kTileBlocks, tiles[now]);  // the fault: it belongs behind the second barrier
    for (int64_t b = first; b < (row < m ? min(blocks, first + parts::kTileBlocks) : first); ++b) {
      const block_q4_0& weights = w[row * blocks + b];
      const block_q8_1& activations = tiles[now][b - first];
      sum += parts::scale(weights, activations) * static_cast<float>(parts::dot(weights, activations));
    }
    __syncthreads();
  }
  if (row < m) y[blockIdx.x * m + row] = sum;
}

inline void launch(const block_q4_0* w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  gemm_kernel<<<parts::grid_of(m, n), parts::kBlockSize, 0, stream>>>(w, x, y, m, k);
}

inline const Mutant<Q4GemmBlocks> mutant{"overwritten_buffer", "a copy goes to the buffer that is still read", launch,
                                         "elements wrong", Shows::on_cpu_device};

}  // namespace ladder::q4_gemm::mutants::overwritten_buffer
