// sum_of_wrong_block: the 8 is subtracted through the sum of the activations, as llama.cpp does, but that of the
// block before. Rows of one block are right.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::sum_of_wrong_block {

struct Term {
  __device__ static float of(const block_q4_0* w, const block_q8_1* x, int64_t b) {
    const int64_t other = b > 0 ? b - 1 : 0;  // the fault
    int products = 0, sum = 0;
    for (int i = 0; i < kBlock; ++i) {
      products += parts::bits_of(w[b], i) * x[b].qs[i];
      sum += x[other].qs[i];
    }
    return parts::scale(w[b], x[b]) * static_cast<float>(products - 8 * sum);
  }
};

inline const Mutant<Q4GemmBlocks> mutant{"sum_of_wrong_block", "the sum of the activations is that of the block before",
                                         parts::launch<Term>, "elements wrong, first at"};

}  // namespace ladder::q4_gemm::mutants::sum_of_wrong_block
