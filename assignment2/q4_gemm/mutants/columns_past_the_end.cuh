// columns_past_the_end: thread blocks with four columns each, the number of them rounded up, and none asks whether a
// column exists. Columns past the end are read from where no x is, and written where no y is.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::columns_past_the_end {

__global__ void gemm_kernel(const block_q4_0* w, const block_q8_1* x, float* y, int64_t m, int64_t k) {
  const int64_t row = parts::row_of_thread(), blocks = k / kBlock;
  if (row >= m) return;
  for (int64_t column = 4 * int64_t{blockIdx.x}; column < 4 * int64_t{blockIdx.x} + 4; ++column) {
    float sum = 0.0f;
    for (int64_t b = 0; b < blocks; ++b) {
      const block_q4_0& weights = w[row * blocks + b];
      const block_q8_1& activations = x[column * blocks + b];
      sum += parts::scale(weights, activations) * static_cast<float>(parts::dot(weights, activations));
    }
    y[column * m + row] = sum;  // the fault: column may be n or more
  }
}

inline void launch(const block_q4_0* w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const dim3 grid = parts::grid_of(m, (n + 3) / 4);
  gemm_kernel<<<grid, parts::kBlockSize, 0, stream>>>(w, x, y, m, k);
}

inline const Mutant<Q4GemmBlocks> mutant{
    "columns_past_the_end", "the last tile reads and writes columns that do not exist", launch, "wrote outside its y"};

}  // namespace ladder::q4_gemm::mutants::columns_past_the_end
