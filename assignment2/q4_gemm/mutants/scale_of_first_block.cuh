// scale_of_first_block: the scale of the weights is read once per row, as if a row had one.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::scale_of_first_block {

struct Term {
  __device__ static float of(const block_q4_0* w, const block_q8_1* x, int64_t b) {
    return parts::scale(w[0], x[b]) * static_cast<float>(parts::dot(w[b], x[b]));  // the fault: w[0]
  }
};

inline const Mutant<Q4GemmBlocks> mutant{"scale_of_first_block", "every block gets the scale of the first",
                                         parts::launch<Term>, "elements wrong, first at"};

}  // namespace ladder::q4_gemm::mutants::scale_of_first_block
