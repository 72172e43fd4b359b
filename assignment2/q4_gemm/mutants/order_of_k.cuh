// order_of_k: weights as 14_wgmma takes them. A word of eight falls apart into numbers 0 and 2, 4 and 6, 1 and 3, 5 and
// 7, and is multiplied with x in x's own order.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::order_of_k {

__global__ void gemm_kernel(Fragments w, const block_q8_1* x, float* y, int64_t m, int64_t k) {
  const int64_t row = parts::row_of_thread(), column = blockIdx.x, blocks = k / kBlock;
  if (row >= m) return;
  constexpr int kShift[8] = {0, 16, 4, 20, 8, 24, 12, 28};  // of numbers 0, 2, 4, 6, 1, 3, 5, 7
  float sum = 0.0f;
  for (int64_t b = 0; b < blocks; ++b) {
    const block_q8_1& activations = x[column * blocks + b];
    const int64_t piece = row / 64 * w.chunks + b / 2, g = row % 64 / 16 * 8 + row % 8,
                  place = b % 2 * 2 + row % 16 / 8;
    const auto* words = reinterpret_cast<const uint32_t*>(w.numbers + piece * 128 + g * 4) + place;
    int dot = 0;
    for (int i = 0; i < kBlock; ++i) {
      const int q = static_cast<int>(words[i / 8 * 4] >> kShift[i % 8] & 15);
      dot += (q - 8) * activations.qs[i];  // the fault: x's numbers are in another order than q's
    }
    const auto* scales = reinterpret_cast<const uint16_t*>(w.scales + piece * 32 + g);
    sum += scale_of(scales[place]) * scale_of(activations.d) * static_cast<float>(dot);
  }
  y[column * m + row] = sum;
}

inline void launch(Fragments w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  gemm_kernel<<<parts::grid_of(m, n), parts::kBlockSize, 0, stream>>>(w, x, y, m, k);
}

inline const Mutant<Q4GemmFragments> mutant{"order_of_k", "weights in the order of their bits, x in the order of k",
                                            launch, "elements wrong, first at"};

}  // namespace ladder::q4_gemm::mutants::order_of_k
