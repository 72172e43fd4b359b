// repeated_blocks: warps share k, as warpgroups do in 15_warp_specialized. A piece has four blocks of each row, one for
// each warp. The last piece may have fewer. Then the other warps multiply what the piece before has left there.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::repeated_blocks {

constexpr int kRows = 32, kWays = 4;

__global__ void gemm_kernel(const block_q4_0* w, const block_q8_1* x, float* y, int64_t m, int64_t k) {
  __shared__ block_q4_0 weights[kWays][kRows];
  __shared__ block_q8_1 activations[kWays];
  __shared__ float sums[kWays][kRows];
  const int lane = threadIdx.x % 32, way = threadIdx.x / 32;
  const int64_t row = int64_t{blockIdx.y} * kRows + lane, column = blockIdx.x, blocks = k / kBlock;
  float sum = 0.0f;
  for (int64_t first = 0; first < blocks; first += kWays) {
    __syncthreads();
    const bool there = first + way < blocks;
    if (there && row < m) weights[way][lane] = w[row * blocks + first + way];
    if (there && lane == 0) activations[way] = x[column * blocks + first + way];
    __syncthreads();
    if (row < m)  // the fault: `there` is missing
      sum += parts::scale(weights[way][lane], activations[way]) *
             static_cast<float>(parts::dot(weights[way][lane], activations[way]));
  }
  sums[way][lane] = sum;
  __syncthreads();
  if (way == 0 && row < m) y[column * m + row] = sums[0][lane] + sums[1][lane] + sums[2][lane] + sums[3][lane];
}

inline void launch(const block_q4_0* w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(blocks_for(m, kRows)));
  gemm_kernel<<<grid, 32 * kWays, 0, stream>>>(w, x, y, m, k);
}

inline const Mutant<Q4GemmBlocks> mutant{"repeated_blocks", "warps multiply blocks that the last piece does not have",
                                         launch, "elements wrong, first at"};

}  // namespace ladder::q4_gemm::mutants::repeated_blocks
