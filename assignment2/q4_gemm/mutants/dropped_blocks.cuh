// dropped_blocks: whole tiles of 8 blocks only. The last k / 32 % 8 blocks of a row are left out, and most shapes of
// models have none.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::dropped_blocks {

__global__ void gemm_kernel(const block_q4_0* w, const block_q8_1* x, float* y, int64_t m, int64_t k) {
  const int64_t row = parts::row_of_thread(), column = blockIdx.x, blocks = k / kBlock;
  if (row >= m) return;
  float sum = 0.0f;
  for (int64_t first = 0; first + 8 <= blocks; first += 8)  // the fault
    for (int64_t b = first; b < first + 8; ++b) {
      const block_q4_0& weights = w[row * blocks + b];
      const block_q8_1& activations = x[column * blocks + b];
      sum += parts::scale(weights, activations) * static_cast<float>(parts::dot(weights, activations));
    }
  y[column * m + row] = sum;
}

inline const Mutant<Q4GemmBlocks> mutant{"dropped_blocks", "the blocks after a row's last whole tile are left out",
                                         parts::launch_per_output<gemm_kernel>, "elements wrong, first at"};

}  // namespace ladder::q4_gemm::mutants::dropped_blocks
