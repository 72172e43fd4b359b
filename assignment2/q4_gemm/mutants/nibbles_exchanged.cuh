// nibbles_exchanged: the high nibble of byte i is taken for number i, and the low one for number i + 16.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::nibbles_exchanged {

struct Term {
  __device__ static float of(const block_q4_0* w, const block_q8_1* x, int64_t b) {
    int sum = 0;
    for (int i = 0; i < kBlock; ++i) {
      const int other = (i + kBlock / 2) % kBlock;  // the fault
      sum += (parts::bits_of(w[b], other) - 8) * x[b].qs[i];
    }
    return parts::scale(w[b], x[b]) * static_cast<float>(sum);
  }
};

inline const Mutant<Q4GemmBlocks> mutant{"nibbles_exchanged", "high and low nibbles are exchanged", parts::launch<Term>,
                                         "elements wrong, first at"};

}  // namespace ladder::q4_gemm::mutants::nibbles_exchanged
