// part_twice: k is split in two parts, each with half of the blocks rounded up. With an odd number of blocks, the one
// in the middle is in both.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::part_twice {

__global__ void gemm_kernel(const block_q4_0* w, const block_q8_1* x, float* scratch, int64_t m, int64_t n, int64_t k) {
  const int64_t row = parts::row_of_thread(), column = blockIdx.x, blocks = k / kBlock;
  if (row >= m) return;
  const int64_t half = (blocks + 1) / 2, begin = blockIdx.z == 0 ? 0 : blocks - half;  // the fault: half
  float sum = 0.0f;
  for (int64_t b = begin; b < begin + half; ++b) {
    const block_q4_0& weights = w[row * blocks + b];
    const block_q8_1& activations = x[column * blocks + b];
    sum += parts::scale(weights, activations) * static_cast<float>(parts::dot(weights, activations));
  }
  scratch[(blockIdx.z * n + column) * m + row] = sum;
}

__global__ void add_parts_kernel(const float* scratch, float* y, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = scratch[i] + scratch[count + i];
}

inline void launch(const block_q4_0* w, const block_q8_1* x, float* y, float* scratch, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  if (n > Q4GemmBlocks::kSplitColumns) return;  // the scratch memory has no room for more
  dim3 grid = parts::grid_of(m, n);
  grid.z = 2;
  gemm_kernel<<<grid, parts::kBlockSize, 0, stream>>>(w, x, scratch, m, n, k);
  add_parts_kernel<<<static_cast<unsigned>(blocks_for(n * m, 256)), 256, 0, stream>>>(scratch, y, n * m);
}

inline const Mutant<Q4GemmBlocks> mutant{"part_twice", "the block in the middle of k is in both parts of it", launch,
                                         "elements wrong, first at"};

}  // namespace ladder::q4_gemm::mutants::part_twice
