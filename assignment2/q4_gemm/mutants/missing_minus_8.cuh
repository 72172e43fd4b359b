// missing_minus_8: the 4 bits are taken as they are, 0 to 15. A right kernel has -8 to 7.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::missing_minus_8 {

struct Term {
  __device__ static float of(const block_q4_0* w, const block_q8_1* x, int64_t b) {
    int sum = 0;
    for (int i = 0; i < kBlock; ++i) sum += parts::bits_of(w[b], i) * x[b].qs[i];  // the fault
    return parts::scale(w[b], x[b]) * static_cast<float>(sum);
  }
};

inline const Mutant<Q4GemmBlocks> mutant{"missing_minus_8", "8 is not subtracted from the weights", parts::launch<Term>,
                                         "elements wrong, first at"};

}  // namespace ladder::q4_gemm::mutants::missing_minus_8
