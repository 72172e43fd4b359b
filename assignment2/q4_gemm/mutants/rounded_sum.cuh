// rounded_sum: the 8 is subtracted through s, the sum that the format holds as a float16. llama.cpp does that, and
// its answer is a good one. It is not the exact one that this ladder promises: 11 bits are fewer than float32 has.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::rounded_sum {

struct Term {
  __device__ static float of(const block_q4_0* w, const block_q8_1* x, int64_t b) {
    int products = 0;
    for (int i = 0; i < kBlock; ++i) products += parts::bits_of(w[b], i) * x[b].qs[i];
    const float s = scale_of(x[b].s);  // the fault: d · sum of qs, rounded
    return scale_of(w[b].d) * (scale_of(x[b].d) * static_cast<float>(products) - 8.0f * s);
  }
};

inline const Mutant<Q4GemmBlocks> mutant{"rounded_sum", "the sum of the activations is a float16", parts::launch<Term>,
                                         "elements wrong, first at"};

}  // namespace ladder::q4_gemm::mutants::rounded_sum
